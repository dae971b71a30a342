"""Errors that ONNX Runtime and onnx raise here are recognised, and the first command that is given mends the model."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import onnx.version_converter
import pytest

from onnx_migrate.explanation.asked import Answer, explain
from onnx_migrate.standard.schema import newest_opset
from tests.cli.running import Run
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip

SCALES = "s = Constant <value = float[4] {1,1,2,2}> () "
FED = "float a, float b, float c"


def run(path: Path) -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def check(path: Path) -> None:
    onnx.checker.check_model(onnx.load(path))


def lower(path: Path) -> None:
    onnx.version_converter.convert_version(onnx.load(path), 12)


def text_of(use: Callable[[Path], None], path: Path) -> str:
    try:
        use(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("use", [run, check])
@pytest.mark.parametrize(
    ("name", "head", "inputs", "nodes", "output"),
    [
        ("no-op-registered-for-with-domain-version-of", (6, 10), FED, "y = Range(a, b, c)", "float[N]"),
        ("no-op-registered-for-with-domain-version-of", (8, 17), "float[1,4] x", "y = Gelu(x)", "float[1,4]"),
        (
            "op-registered-for-is-deprecated-in-domain-version-of",
            (6, 11),
            "float[1,3,4,4] x",
            SCALES + "y = Upsample(x, s)",
            "float[1,3,8,8]",
        ),
        (
            "unrecognized-attribute-for-operator",
            (8, 18),
            "float[1,4] x",
            "y = ReduceMean <axes = [1]> (x)",
            "float[1,1]",
        ),
        (
            "unrecognized-attribute-for-operator",
            (9, 19),
            "int8[4,4] x, float[4,2] s",
            "y = DequantizeLinear <axis = 1, block_size = 2> (x, s)",
            "float[4,4]",
        ),
        (
            "unrecognized-attribute-for-operator",
            (6, 13),
            "float[1,4] x",
            "y = Squeeze <axes = [0]> (x)",
            "float[4]",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, (str, tuple)) else None,
)
def test_what_onnx_runtime_and_the_checker_refuse_is_mended(
    cli: Run,
    folder: Path,
    use: Callable[[Path], None],
    name: str,
    head: tuple[int, int],
    inputs: str,
    nodes: str,
    output: str,
) -> None:
    ir, opset = head
    path = folder / "bad.onnx"
    onnx.save(
        onnx.parser.parse_model(
            f'<ir_version: {ir}, opset_import: ["": {opset}]> g ({inputs}) => ({output} y) {{ {nodes} }}'
        ),
        path,
    )
    mended(cli, path, use, name)


def mended(cli: Run, path: Path, use: Callable[[Path], None], name: str) -> None:
    """Assert that the text is recognised, that the model is said to raise it, and that the first command ends it."""
    text = text_of(use, path)
    assert text, "the model is not refused"
    found = explain(text, path.name)
    assert isinstance(found, Answer)
    assert [item.name for item in found.errors] == [name], text
    command = next(remedy.command for remedy in found.errors[0].remedies if remedy.command)

    assert "would raise this" in cli("explain", path.name, text).out
    assert cli(*shlex.split(command)[1:], "--no-simplify").code == 0, command
    assert text_of(use, path.with_name("out.onnx")) == ""


def test_a_newer_ir_version(cli: Run, folder: Path) -> None:
    model = onnx.load("small.onnx")
    model.ir_version = onnx.IR_VERSION
    onnx.save(model, "new.onnx")
    if not text_of(run, folder / "new.onnx"):
        skip("this ONNX Runtime loads all IR versions that this onnx writes", Elsewhere.ONE_RELEASE)
    mended(cli, folder / "new.onnx", run, "unsupported-model-ir-version")


def test_an_ir_version_that_the_checker_does_not_know(folder: Path) -> None:
    model = onnx.load("small.onnx")
    model.ir_version = 99
    onnx.save(model, "new.onnx")
    found = explain(text_of(check, folder / "new.onnx"))
    assert isinstance(found, Answer)
    assert found.errors[0].facts["max_ir"] == str(onnx.IR_VERSION)


@pytest.mark.parametrize("domain", ["ai.onnx.ml", "com.ms.internal.nhwc"])
def test_an_unused_import_of_a_newer_version(cli: Run, folder: Path, domain: str) -> None:
    model = onnx.load("small.onnx")
    model.opset_import.add(domain=domain, version=90)
    onnx.save(model, "new.onnx")
    mended(cli, folder / "new.onnx", run, "only-guarantees-support-for-released-opset-versions")


def test_an_operator_of_2018(cli: Run, folder: Path) -> None:
    node = "y = ConstantFill <input_as_shape = 1, value = 1.0> (x)"
    text = f'<ir_version: 3, opset_import: ["": 8]> g (int64[2] x) => (y) {{ {node} }}'
    onnx.save(onnx.parser.parse_model(text), "old.onnx")
    mended(cli, folder / "old.onnx", run, "is-not-a-registered-function-op")


@pytest.mark.parametrize(
    ("name", "opset", "nodes"),
    [
        ("no-adapter-from-version-for", 13, "y = Cast <to = 1> (x)"),
        ("no-previous-version-of-exists", 14, "y = HardSwish(x)"),
        (
            "is-not-supported-when-converting-from-opset",
            18,
            SCALES + 'y = Resize <antialias = 1, mode = "linear"> (x, , s)',
        ),
        ("no-initializer-or-constant-input-to-node-found", 13, "y = Unsqueeze(x, j)"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_the_version_converter_says_is_recognised(
    folder: Path, name: str, opset: int, nodes: str
) -> None:
    path = folder / "m.onnx"
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[1,3,4,4] x, int64[1] j) => (float[N,M,K,L] y) {{ {nodes} }}'
    onnx.save(onnx.parser.parse_model(text), path)
    said = text_of(lower, path)
    if not said:
        skip("this release of onnx converts the model", Elsewhere.NEWEST)
    found = explain(said)
    assert isinstance(found, Answer), said
    names = [item.name for item in found.errors]
    assert names == [name] or (newest_opset() != SUPPORTED and names[0].startswith("no-adapter")), said
