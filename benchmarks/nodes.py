"""Time and memory of a migration against the number of nodes, from opset 9 to 21; and of `--help`.

    python benchmarks/nodes.py [--baseline]

Each model is a chain of Softmax, Unsqueeze, Squeeze, Upsample and Clip in turn, the five operators whose steps rewrite
a node. `--baseline` runs onnx.version_converter on the smallest, for at most 300 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper

BASELINE = """import onnx, sys
from onnx import version_converter
onnx.save(version_converter.convert_version(onnx.load(sys.argv[1]), 21), sys.argv[2])"""


def chain(count: int) -> onnx.ModelProto:
    """Return a chain of `count` nodes at opset 9, without value_info."""
    value, nodes = "x", []
    for index in range(count):
        output, name = f"v{index}", f"n{index}"
        kinds = [
            ("Softmax", [value], {"axis": 1}),
            ("Unsqueeze", [value], {"axes": [0]}),
            ("Squeeze", [value], {"axes": [0]}),
            ("Upsample", [value, "scales"], {"mode": "nearest"}),
            ("Clip", [value], {"min": 0.0, "max": 6.0}),
        ]
        operator, inputs, attributes = kinds[index % 5]
        nodes.append(helper.make_node(operator, inputs, [output], name=name, **attributes))
        value = output
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 1, 1])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)


def measure(command: list[str], limit: float = 300.0) -> tuple[float, float] | None:
    """Run a command; return its seconds and peak memory in MB, or None when it takes longer than `limit`."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        done, status, usage = os.wait4(child.pid, os.WNOHANG)
        if done:
            break
        if time.perf_counter() - start > limit:
            child.kill()
            os.wait4(child.pid, 0)
            return None
        time.sleep(0.005)
    if status:
        raise SystemExit(f"{command} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--baseline", action="store_true", help="run onnx.version_converter too")
    arguments = parser.parse_args()
    tool = [sys.executable, "-m", "onnx_migrate"]
    times = [measure([*tool, "--help"]) for _ in range(5)]
    print(f"--help: {min(item[0] for item in times if item):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        for count in (50_000, 100_000):
            path = Path(folder, f"{count}.onnx")
            onnx.save(chain(count), path)
            options = ["--opset", "21", "--no-simplify", "--no-verify", "--quiet"]
            runs = [measure([*tool, str(path), str(Path(folder, "out.onnx")), *options]) for _ in range(3)]
            best = min(item for item in runs if item)
            print(f"{count:,} nodes: {best[0]:.2f} s, {best[1]:.0f} MB")
        if arguments.baseline:
            found = measure(
                [
                    sys.executable,
                    "-c",
                    BASELINE,
                    str(Path(folder, "50000.onnx")),
                    str(Path(folder, "base.onnx")),
                ]
            )
            print(
                "onnx.version_converter, 50,000 nodes:",
                "not done after 300 s" if found is None else f"{found[0]:.1f} s",
            )


if __name__ == "__main__":
    main()
