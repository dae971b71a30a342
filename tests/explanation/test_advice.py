"""Advice fits the model: it is tried on its structure, and what cannot help is left out."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.explanation.asked import Answer, explain
from onnx_migrate.explanation.in_model import ModelVerdict, ask_model
from onnx_migrate.explanation.model_facts import model_facts
from onnx_migrate.explanation.operator_facts import contributed_facts, version_facts
from tests.cli.running import Run
from tests.harness import require_opset
from tests.support.skips import Elsewhere, import_or_skip

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that writes a model of a graph, and returns its path."""

    def write(graph: str, opset: int = 20, ir: int = 9, more: str = "") -> str:
        path = tmp_path / "m.onnx"
        head = f'<ir_version: {ir}, opset_import: ["": {opset}{more}]>'
        onnx.save(onnx.parser.parse_model(f"{head} {graph}"), path)
        return str(path)

    return write


def advice(text: str, path: str = "") -> list[str]:
    """Return the commands that are advised, without the paths, and the words of the rest."""
    found = explain(text, shlex.quote(path) if path else "")
    assert isinstance(found, Answer)
    return [
        remedy.command.partition(" out.onnx ")[2] or remedy.command or remedy.text
        for remedy in found.errors[0].remedies
    ]


def verdict(text: str, path: str) -> ModelVerdict:
    found = explain(text, shlex.quote(path))
    assert isinstance(found, Answer)
    return ask_model(found.errors[0], path)


def kernel(operator: str, version: int, node: str = "n") -> str:
    return f"Could not find an implementation for {operator}({version}) node with name '{node}'"


QLINEAR = """g (float[1,2,5,5] x) => (float[1,1,5,5] y)
<float s = {0.02}, uint8 z = {128}, int8[1,2,1,1] w = {-17, 30}, int8 o = {0}, float t = {0.05}> {
    q = QuantizeLinear(x, s, z)
    [conv] r = QLinearConv(q, s, z, w, s, o, t, o)
    y = DequantizeLinear(r, t, o)
}"""


@pytest.mark.parametrize(
    ("operator", "version"),
    [
        ("QLinearConv", 10),
        ("QLinearMatMul", 10),
        ("ConvInteger", 10),
        ("MatMulInteger", 10),
        ("QLinearAdd", 1),
    ],
)
def test_a_missing_quantised_kernel_is_replaced_by_pairs(operator: str, version: int) -> None:
    advised = advice(kernel(operator, version))
    assert advised[0] == "--quantized-form qdq"
    assert not any("fp32" in item or "--opset" in item or "cannot fix" in item for item in advised)


def test_the_pairs_are_tried_on_the_model(make: Make) -> None:
    found = verdict(kernel("QLinearConv", 10, "conv"), make(QLINEAR, 13, 7))
    assert (found.raises, found.mends) == (True, True)
    assert [where.node for where in found.places] == ["conv"]
    assert found.outlook.endswith("--quantized-form qdq rewrites 1 of 1 node of QLinearConv")


def test_pairs_that_change_nothing_are_no_remedy(make: Make) -> None:
    found = verdict(kernel("QLinearMatMul", 10), make("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"))
    assert found.raises is False
    found = verdict(
        f"{kernel('QLinearConv', 10)} Opset 5 is under development and support for this is limited",
        make("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"),
    )
    assert found.mends is None


@pytest.mark.parametrize(
    ("operator", "version", "opset"),
    [
        ("Gelu", 20, 19), ("GridSample", 20, 19), ("GridSample", 16, 15), ("Trilu", 14, 13), ("HardSwish", 14, 13),
        ("Mish", 18, 17), ("Einsum", 12, 11), ("LayerNormalization", 17, 16), ("GroupNormalization", 21, 20),
        ("RMSNormalization", 23, 22), ("Swish", 24, 23), ("ConvTranspose", 22, 21), ("Resize", 19, 18),
    ],
)  # fmt: skip
def test_an_older_opset_is_advised_where_the_operator_can_be_written_for_it(
    operator: str, version: int, opset: int
) -> None:
    require_opset(version)
    assert advice(kernel(operator, version))[0] == f"--opset {opset}"


@pytest.mark.parametrize(("operator", "version"), [("ImageDecoder", 20), ("StringSplit", 20), ("Unique", 11)])
def test_no_older_opset_is_advised_where_the_operator_cannot(operator: str, version: int) -> None:
    advised = advice(kernel(operator, version))
    assert not any("--opset" in item for item in advised)
    assert any(item.startswith("No older opset helps") for item in advised)


def test_an_operator_of_onnx_runtime_is_written_with_the_standard() -> None:
    assert advice(kernel("BiasGelu", 1))[0] == "--to-onnx-ops"
    assert "cannot fix" in advice(kernel("EPContext", 1))[0]


GELU = "g ({0}[1,4] x) => ({0}[1,4] y) {{ [n] y = Gelu(x) }}"


@pytest.mark.parametrize(
    ("dtype", "advised"), [("float", False), ("float16", True), ("double", True), ("bfloat16", True)]
)
def test_float32_is_advised_to_models_of_other_types_alone(make: Make, dtype: str, advised: bool) -> None:
    found = advice(kernel("Gelu", 20), make(GELU.format(dtype)))
    assert found[0] == "--opset 19"
    assert ("--precision fp32" in found) is advised


def test_a_cast_and_a_constant_count_as_types_of_the_model(make: Make) -> None:
    casts = make("g (float[1] x) => (float[1] y) { h = Cast <to = 10> (x) y = Cast <to = 1> (h) }")
    assert model_facts(casts)["other_floats"] == "float16"
    constant = make(
        "g (float[1] x) => (float[1] y) { c = Constant <value = double[1] {1.0}> () d = Cast <to = 1> (c) y = Add(x, d) }"
    )
    assert model_facts(constant)["other_floats"] == "double"


def test_the_older_opset_is_tried_and_the_rest_is_marked_as_untried(make: Make) -> None:
    found = verdict(kernel("Gelu", 20), make(GELU.format("float16")))
    assert found.mends is True
    assert "--opset 19 reaches opset 19; 1 node to change" in found.outlook
    squeeze = make("g (float[N,1,4] x) => (float[N,4] y) { [n] y = Squeeze(x) }", 17, 8)
    found = verdict("TensorRT 8.6: Cannot infer squeeze dimensions from a dynamic shape!", squeeze)
    assert found.mends is None
    assert found.outlook.startswith("not tried here: onnx-migrate ")


DYNAMIC = "Dynamic shape is not supported for now, for input:x"


@pytest.mark.parametrize(
    ("inputs", "advised"),
    [
        ("float[N,3,H,W] x", "--fix-shape N=1 --fix-shape H=320 --fix-shape W=320"),
        ("float[N,T] x, float[N,4] z", "--fix-shape N=1 --fix-shape T=128"),
        ("float[?,4] x", "--fix-shape x:1,4"),
    ],
)
def test_commands_name_the_open_dims_of_the_model(make: Make, inputs: str, advised: str) -> None:
    path = make(f"g ({inputs}) => (y) {{ y = Relu(x) }}")
    assert advice(DYNAMIC, path) == [advised]


def test_a_model_of_fixed_dims_is_not_advised_to_fix_them(make: Make) -> None:
    (advised,) = advice(DYNAMIC, make("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"))
    assert advised.startswith("Every dim of this model's inputs is a number already")
    found = advice("IIfConditionalOutputLayer inputs must have the same shape", make(GELU.format("float")))
    assert found[0].endswith("--no-control-flow")
    assert "Leave --fix-shape out" not in " ".join(found)


def test_the_nodes_that_the_text_names_are_named_alone(make: Make) -> None:
    path = make("g (float[1,4] x) => (float[1,4] y) { [a] b = Gelu(x) [c] d = Gelu(b) [e] y = Gelu(d) }")
    assert [where.node for where in verdict(kernel("Gelu", 20, "c"), path).places] == ["c"]
    both = f"{kernel('Gelu', 20, 'c')}\n{kernel('Gelu', 20, 'e')}"
    assert [where.node for where in verdict(both, path).places] == ["c", "e"]
    assert len(verdict(kernel("Gelu", 20, "other"), path).places) == 3


def test_no_file_and_no_model(tmp_path: Path) -> None:
    assert model_facts("") == model_facts("'no such file.onnx'") == {}
    (tmp_path / "m.onnx").write_bytes(b"\xff\xff")
    with pytest.raises(LoadError):
        explain(DYNAMIC, str(tmp_path / "m.onnx"))


def test_facts_of_versions() -> None:
    assert version_facts("Gelu", 20) == {
        "op_newest": "20", "opset_before_version": "19", "version_is_first": "yes",
    }  # fmt: skip
    assert version_facts("Relu", 1) == {"op_newest": "14", "version_before_7": "yes"}
    assert version_facts("GridSample", 21)["opset_before_version"] == "19"
    assert "version_stays" in version_facts("Unique", 11)
    assert contributed_facts("com.microsoft.QGemm") == {"op_quantized": "yes", "op_written_out": "yes"}
    assert contributed_facts("EPContext") == {}


def test_what_is_advised_for_a_missing_kernel_makes_the_model_load(
    cli: Run, folder: Path, make: Make
) -> None:
    onnxruntime = import_or_skip("onnxruntime", Elsewhere.INSTALLED)
    path = make(QLINEAR, 13, 7)
    with pytest.raises(Exception, match="QLinearConv") as refusal:
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (command, _) = advice(str(refusal.value), path)
    assert cli(path, "out.onnx", *command.split(), "--no-simplify").code == 0
    onnxruntime.InferenceSession(str(folder / "out.onnx"), providers=["CPUExecutionProvider"])


def test_a_comparison_that_failed_leads_to_verify(make: Make) -> None:
    path = make("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
    for text in (
        "why is my accuracy lower than in PyTorch?",
        "AssertionError: \nNot equal to tolerance rtol=0.001, atol=1e-05\n\nMismatched elements: 12 / 1000 (1.2%)",
        "Tensor-likes are not close!\n\nMismatched elements: 3 / 8 (37.5%)",
    ):
        assert advice(text, path)[0].startswith("onnx-migrate verify ")


def test_float32_is_not_advised_where_nothing_else_is(make: Make) -> None:
    text = "[TensorRT v8502] No low-precision conv kernel available"
    assert "--for tensorrt==8.5 --precision fp32" in advice(text)
    (only,) = advice(text, make("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"))[:1]
    assert "fp32" not in only
