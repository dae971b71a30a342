"""What other converters make of old and new models: each result is loaded and compared with its original in ONNX Runtime.

    pip install onnx-migrate onnxsim onnxscript onnxslim polygraphy
    python benchmarks/converters.py              # the tables of docs/comparison.md
    python benchmarks/converters.py --list       # every case, and what came of it
    python benchmarks/converters.py --only Gelu  # the rows with this in their name

Models: the fixtures, which PyTorch exported at opsets 9 to 14, and small models of what converters are asked to do. A result is
*right* if its opset is the one asked for, ONNX Runtime loads it and every output equals the original's to a ten-thousandth of
its scale.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime

ROOT = Path(__file__).parents[1]
SECONDS = 120
SMALL = {
    "linear Resize, opset 10 → 21": (
        '<ir_version: 5, opset_import: ["": 10]> g (float[1,1,3,4] x) => (float[1,1,6,8] y) '
        '<float[4] s = {1, 1, 2, 2}> { y = Resize<mode = "linear"> (x, s) }', 21),
    "nearest Resize by 0.6, opset 10 → 21": (
        '<ir_version: 5, opset_import: ["": 10]> g (float[1,1,5,10] x) => (float[1,1,3,6] y) '
        '<float[4] s = {1, 1, 0.6, 0.6}> { y = Resize<mode = "nearest"> (x, s) }', 21),
    "Upsample, opset 9 → 21": (
        '<ir_version: 4, opset_import: ["": 9]> g (float[1,1,3,4] x) => (float[1,1,6,8] y) '
        '<float[4] s = {1, 1, 2, 2}> { y = Upsample<mode = "linear"> (x, s) }', 21),
    "Softmax with a batch of any size, opset 12 → 21": (
        '<ir_version: 6, opset_import: ["": 12]> g (float[N,3,4] x) => (float[N,3,4] y) { y = Softmax (x) }', 21),
    "Unsqueeze in an If, opset 11 → 21": (
        '<ir_version: 6, opset_import: ["": 11]> g (float[3] x, bool c) => (float[1,3] y) '
        '{ y = If (c) <then_branch = t () => (float[1,3] a) { a = Unsqueeze<axes = [0]> (x) }, '
        'else_branch = e () => (float[1,3] b) { n = Neg (x) b = Unsqueeze<axes = [0]> (n) }> }', 21),
    "Softmax in a local function, opset 12 → 21": (
        '<ir_version: 8, opset_import: ["": 12, "f": 1]> g (float[2,3,4] x) => (float[2,3,4] y) { y = f.Soft (x) } '
        '<domain: "f", opset_import: ["": 12]> Soft (x) => (y) { y = Softmax (x) }', 21),
    "GridSample, opset 18 → 21": (
        '<ir_version: 8, opset_import: ["": 18]> g (float[1,1,4,4] x, float[1,3,3,2] p) => (float[1,1,3,3] y) '
        '{ y = GridSample<mode = "bilinear"> (x, p) }', 21),
    "ReduceMean, opset 18 → 13": (
        '<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x) => (float[2,1] y) '
        '<int64[1] a = {1}> { y = ReduceMean (x, a) }', 13),
    "Split, opset 18 → 12": (
        '<ir_version: 8, opset_import: ["": 18]> g (float[2,6] x) => (float[2,3] y, float[2,3] z) '
        '{ y, z = Split<axis = 1, num_outputs = 2> (x) }', 12),
    "LayerNormalization, opset 17 → 13": (
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,4] y) '
        '<float[4] s = {1, 2, 3, 4}> { y = LayerNormalization (x, s) }', 13),
    "Gelu, opset 20 → 17": (
        '<ir_version: 9, opset_import: ["": 20]> g (float[2,4] x) => (float[2,4] y) { y = Gelu (x) }', 17),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model, the opset to bring it to, and inputs."""

    name: str
    path: Path
    target: int
    feeds: dict[str, Any]


def by_onnx(source: str, result: str, target: int) -> None:
    """Convert with onnx's own converter."""
    from onnx.version_converter import convert_version

    onnx.save(convert_version(onnx.load(source), target), result)


def by_onnxsim(source: str, result: str, target: int) -> None:
    """Convert with `onnxsim --target-opset`."""
    import onnxsim

    onnx.save(onnxsim.simplify(onnx.load(source), target_opset_version=target)[0], result)


def by_onnxscript(source: str, result: str, target: int) -> None:
    """Convert with onnxscript's converter, which leaves a model that it cannot convert at its opset."""
    import onnx_ir
    from onnxscript import version_converter

    model = onnx_ir.load(source)
    version_converter.convert_version(model, target, fallback=False)
    onnx_ir.save(model, result)


def by_onnx_migrate(source: str, result: str, target: int) -> None:
    """Migrate as the command does without options."""
    import onnx_migrate

    onnx_migrate.migrate(source, opset=target).save(result)


TOOLS: dict[str, Callable[[str, str, int], None]] = {
    "onnx-migrate": by_onnx_migrate, "onnx": by_onnx, "onnxsim": by_onnxsim, "onnxscript": by_onnxscript,
}  # fmt: skip


def cases(folder: Path) -> Iterator[tuple[str, Case]]:
    """Return each case after the row of the table that counts it."""
    for index, (name, (text, target)) in enumerate(SMALL.items()):
        path = folder / f"small{index}.onnx"
        model = onnx.parser.parse_model(text)
        onnx.save(model, path)
        feeds = {item.name: _random(item) for item in model.graph.input}
        yield name, Case(name, path, target, feeds)
    for path in sorted((ROOT / "fixtures").glob("*_opset*.onnx")):
        opset = next(item.version for item in onnx.load(path).opset_import if not item.domain)
        recorded = dict(np.load(path.with_suffix(".io.npz")))
        names = [item.name for item in onnxruntime.InferenceSession(path).get_inputs()]
        feeds = {name: recorded[name] for name in names if name in recorded}
        for target in (21, 9):
            if target > opset:
                yield f"fixtures up to {target}", Case(path.stem, path, target, feeds)
            elif target < opset:
                yield f"fixtures down to {target}", Case(path.stem, path, target, feeds)


def _random(item: onnx.ValueInfoProto) -> Any:
    shape = [dim.dim_value or 2 for dim in item.type.tensor_type.shape.dim]
    if item.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
        return np.array(True)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def outcome(tool: str, case: Case, folder: Path) -> str:
    """Return "right", or in a few words what is wrong with a tool's result."""
    result, said = folder / "result.onnx", folder / "said.txt"
    for path in (result, said):
        path.unlink(missing_ok=True)
    child = multiprocessing.get_context("fork").Process(target=_convert, args=(tool, case, result, said))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        return "too slow"
    if child.exitcode:
        return f"crashed ({child.exitcode})"
    if not result.exists():
        return f"refused: {said.read_text()}"
    return _judge(case, result)


def _convert(tool: str, case: Case, result: Path, said: Path) -> None:
    try:
        TOOLS[tool](str(case.path), str(result), case.target)
    except Exception as error:  # what a tool says is the outcome
        said.write_text(" ".join(str(error).split())[:150])
        result.unlink(missing_ok=True)


def _judge(case: Case, result: Path) -> str:
    opset = next(item.version for item in onnx.load(result).opset_import if not item.domain)
    if opset != case.target:
        return f"left at opset {opset}"
    try:
        actual = _run(result, case.feeds)
    except Exception as error:  # so is what ONNX Runtime says of it
        return f"does not run: {' '.join(str(error).split())[:120]}"
    for old, new in zip(_run(case.path, case.feeds), actual, strict=True):
        scale = max(1.0, float(np.abs(old).max(initial=0)))
        if old.shape != new.shape or not np.allclose(old, new, rtol=0, atol=1e-4 * scale):
            return "other numbers"
    return "right"


def _run(path: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    found: list[Any] = onnxruntime.InferenceSession(path, options).run(None, feeds)
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    rows: dict[str, dict[str, list[str]]] = {}
    with tempfile.TemporaryDirectory() as name:
        for row, case in cases(Path(name)):
            for tool in TOOLS if arguments.only in row else ():
                found = outcome(tool, case, Path(name))
                rows.setdefault(row, {}).setdefault(tool, []).append(found)
                if arguments.list:
                    print(f"{row} | {case.name} | {tool} | {found}", flush=True)
    heads = [f"{tool} {importlib.metadata.version(tool)}" for tool in TOOLS]
    print("| | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for row, found_by in rows.items():
        print(f"| {row} | " + " | ".join(_cell(found) for found in found_by.values()) + " |")


def _cell(found: list[str]) -> str:
    if len(found) == 1:
        return found[0].partition(":")[0]
    return f"{found.count('right')} of {len(found)} right, {found.count('other numbers')} other numbers"


if __name__ == "__main__":
    main()
