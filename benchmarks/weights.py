"""Time and peak memory of getting a model's weights from one file to another, side by side with `cp`.

    python benchmarks/weights.py --baseline --command \\
        'onnx-migrate {source} {target} --no-simplify --no-verify' --proof

Makes a 1.5 GB single-file model and a 4 GB one with external data in a temporary folder (12 GB of disk at
most). `cp` is timed alone and with the `sync` that makes it as durable as a save. Rounds alternate; the table
gives their median, as the first touch of fresh memory makes any one round vary, and the least.
A child's peak memory is at least this script's own, which it is forked from.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from onnx import TensorProto, helper

from onnx_migrate.files.byte_copy import write_pieces
from onnx_migrate.files.wire.protobuf import header

BLOCK = 1 << 20
LIBRARY = """
import sys
from onnx_migrate.files import load, save
model = load(sys.argv[1])
model.proto.opset_import[0].version += 1
save(model, sys.argv[2], external=sys.argv[3] == "True")
"""
BASELINE = """
import sys
import onnx
model = onnx.load(sys.argv[1])
model.opset_import[0].version += 1
onnx.save(model, sys.argv[2], save_as_external_data=sys.argv[3] == "True", location="b.onnx.data")
"""
CONVERTER = """
import sys
import onnx, onnx.version_converter
model = onnx.version_converter.convert_version(onnx.load(sys.argv[1]), 17)
onnx.save(model, sys.argv[2])
"""


@dataclass(frozen=True)
class Run:
    """Wall time in seconds and peak resident memory in MB of a command and its children."""

    seconds: float
    megabytes: float
    failed: bool = False


def make(folder: Path, size: int, external: bool) -> Path:
    """Write a model of Adds whose weights, 48 MB each, are repetitions of shuffled random pages."""
    count, each = max(size // (48 * BLOCK), 1), 48 * BLOCK
    block = os.urandom(BLOCK)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x" if i == 0 else f"t{i - 1}", f"w{i}"], [f"t{i}"]) for i in range(count)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info(f"t{count - 1}", TensorProto.FLOAT, ["N"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = folder / "a.onnx"
    weights = [TensorProto(name=f"w{i}", dims=[each // 4], data_type=TensorProto.FLOAT) for i in range(count)]
    with path.open("wb") as file, (folder / "a.onnx.data" if external else path).open("ab") as data:
        if external:
            for i, tensor in enumerate(weights):
                tensor.data_location = TensorProto.EXTERNAL
                entries = {"location": "a.onnx.data", "offset": str(i * each), "length": str(each)}
                for key, value in entries.items():
                    tensor.external_data.add(key=key, value=value)
            model.graph.initializer.extend(weights)
            file.write(model.SerializeToString())
        else:
            # Put together by hand: no serialiser takes payloads from elsewhere, which is what is measured.
            heads = [tensor.SerializeToString() + header(9, each) for tensor in weights]
            inner = model.graph.SerializeToString()
            total = len(inner) + sum(len(header(5, len(h) + each)) + len(h) + each for h in heads)
            model.ClearField("graph")
            file.write(model.SerializeToString() + header(7, total) + inner)
            file.flush()
        for i in range(count):
            if not external:
                write_pieces(data.fileno(), [header(5, len(heads[i]) + each), heads[i]])
            turned = block[i * 4096 % BLOCK :] + block[: i * 4096 % BLOCK]
            for _ in range(48):
                write_pieces(data.fileno(), [turned])
        os.fsync(data.fileno())
    return path


def run(command: list[str]) -> Run:
    """Run a command to its end and ask the system what it took."""
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    return Run(time.monotonic() - start, usage.ru_maxrss / 1024, status != 0)


def measure(
    source: Path, external: bool, template: str, rounds: int, baseline: bool, proof: bool
) -> dict[str, list[Run]]:
    """Return each contender's rounds; before each the target's folder is emptied."""
    target = source.parent / "out"
    size = str(external)
    files = [str(source)] + ([str(source) + ".data"] if external else [])
    sync = f"cp {shlex.join(files)} {target} && sync {target}/*"
    contenders = {
        "cp": ["cp", *files, str(target)],
        "cp + sync": ["sh", "-c", sync],
        "load + save": [sys.executable, "-c", LIBRARY, str(source), str(target / "b.onnx"), size],
    }
    if template:
        filled = template.format(source=shlex.quote(str(source)), target=shlex.quote(str(target / "b.onnx")))
        contenders["command"] = shlex.split(filled)
    if proof:
        whole = [sys.executable, "-m", "onnx_migrate", str(source), str(target / "b.onnx"), "--quiet"]
        contenders["verified"] = [*whole, "--no-simplify"]
        contenders["simplified, verified"] = whole
    if baseline:
        contenders["onnx.load + save"] = [
            sys.executable,
            "-c",
            BASELINE,
            str(source),
            str(target / "b.onnx"),
            size,
        ]
        contenders["onnx.version_converter"] = [
            sys.executable,
            "-c",
            CONVERTER,
            str(source),
            str(target / "b.onnx"),
        ]
    runs: dict[str, list[Run]] = {}
    for number in range(rounds):
        for name, command in contenders.items():
            if number and name.startswith("onnx."):
                continue  # once is enough to wait for
            target.mkdir(exist_ok=True)
            done = run(command)
            runs.setdefault(name, []).append(done)
            for path in target.iterdir():
                path.unlink()
            os.sync()
    return runs


def main() -> None:
    """Run the benchmark and print one table for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--command", default="", help="a command line with {source} and {target} to measure too"
    )
    parser.add_argument(
        "--baseline", action="store_true", help="onnx's own load, save and version converter too"
    )
    parser.add_argument(
        "--proof",
        action="store_true",
        help="onnx-migrate with verification, without the simplifier and with it",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the models' sizes")
    parser.add_argument("--folder", help="where to make the temporary folder")
    options = parser.parse_args()
    for label, size, external in (
        ("1.5 GB, one file", int(1.5e9 * options.scale), False),
        ("4 GB, external data", int(4e9 * options.scale), True),
    ):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            source = make(Path(folder), size, external)
            results = measure(
                source, external, options.command, options.rounds, options.baseline, options.proof
            )
        print(f"\n{label}\n{'':24}{'median s':>9}{'least s':>9}{'× cp':>7}{'× cp+sync':>11}{'peak MB':>9}")
        middle = {name: median(one.seconds for one in runs) for name, runs in results.items()}
        for name, runs in results.items():
            against = [middle[name] / middle[other] for other in ("cp", "cp + sync")]
            least, peak = min(one.seconds for one in runs), max(one.megabytes for one in runs)
            note = "  failed" if any(one.failed for one in runs) else ""
            print(
                f"{name:24}{middle[name]:9.2f}{least:9.2f}{against[0]:7.2f}{against[1]:11.2f}{peak:9.0f}{note}"
            )


if __name__ == "__main__":
    main()
