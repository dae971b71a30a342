"""What exporters intended: told of, and restored on request, as an assumption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, version_converter
from onnx_migrate.passes.resize.resize_intent import intended

from onnx_migrate import migrate
from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.report import Report
from onnx_migrate.rewrite.change_log import Exactness, Note
from onnx_migrate.rewrite.node_view import NodeView
from onnx_migrate.rewrite.resize.spec import read_resize
from tests.harness import model, run, same
from tests.resize.shaped import apply_resize_passes, feed, resizes, run_time
from tests.steps import operators
from tests.support.paths import FIXTURES
from tests.support.small_model import HERE


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("shape", ["1,2,5,7", "N,2,5,7", "N,2,H,W"])
@pytest.mark.parametrize("wanted", ["10., 21.", "3., 21.", "4., 3."])
def test_scales_computed_from_sizes_become_sizes(mode: str, shape: str, wanted: str) -> None:
    result, log = apply_resize_passes(run_time(mode, shape, wanted), 13, intent=True)

    x = feed(1, 2, 5, 7)
    new = run(result, x)[0]
    sizes = [int(float(number)) for number in wanted.split(",")]
    coordinates = "half_pixel" if mode == "linear" else "asymmetric"
    restored = f"""13 (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[4] n = {{1, 2, {sizes[0]}, {sizes[1]}}}> {{
  y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}", nearest_mode="floor">(x, , , n)
}}"""
    np.testing.assert_array_equal(new, run(model(restored), x)[0])
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]
    assert "Gather" not in operators(result)


def test_scales_from_the_shape_of_another_tensor_are_kept() -> None:
    source = run_time("linear", "N,2,H,W")
    source.graph.input.add().CopyFrom(helper.make_tensor_value_info("other", 1, ["N", 2, "P", "Q"]))
    next(node for node in source.graph.node if node.op_type == "Shape").input[0] = "other"

    result, _ = apply_resize_passes(source, 13, intent=True)

    assert "Div" in operators(result)
    assert not resizes(result)[0].input[3:]


def test_constant_scales_that_run_to_one_element_less() -> None:
    length, out = next(
        (n, k)
        for n in range(3, 400)
        for k in range(2, 400)
        if int(np.float32(k / n) * np.float32(n)) == k - 1
    )
    source = model(f"""10 (float[1,1,2,{length}] x) => (float[a,b,c,d] y)
<float[4] s = {{1., 1., 1., {float(np.float32(out / length))!r}}}> {{ y = Resize<mode="linear">(x, s) }}""")
    source.producer_name = "pytorch"

    plain, _ = apply_resize_passes(source, 13)
    restored, _ = apply_resize_passes(source, 13, intent=True)

    assert run(plain, feed(1, 1, 2, length))[0].shape[-1] == out - 1
    assert run(restored, feed(1, 1, 2, length))[0].shape[-1] == out


def test_other_producers_are_not_changed() -> None:
    source = run_time("linear", "1,2,5,7")
    source.producer_name = "keras2onnx"

    plain, _ = apply_resize_passes(source, 13)
    restored, log = apply_resize_passes(source, 13, intent=True)

    assert plain == restored
    assert all(change.exactness is Exactness.EXACT for change in log.changes)


def old_resize(operator: str, mode: str, scales: str) -> onnx.ModelProto:
    return model(f"""{9 if operator == "Upsample" else 10} (float[1,2,5,7] x) => (float[a,b,c,d] y)
<float[4] s = {{1., 1., {scales}}}> {{
  y = {operator}<mode="{mode}">(x, s)
}}""")


@pytest.mark.parametrize("at", [11, 13, 17])
@pytest.mark.parametrize(
    ("operator", "mode", "scales"),
    [("Upsample", "linear", "2., 1.7"), ("Resize", "linear", "2., 0.6"), ("Resize", "nearest", "0.6, 0.4")],
)
def test_a_node_of_the_version_converter_is_repaired(operator: str, mode: str, scales: str, at: int) -> None:
    original = old_resize(operator, mode, scales)
    converted = version_converter.convert_version(original, at)
    x = feed(1, 2, 5, 7)

    plain, plain_log = apply_resize_passes(converted, 18)
    repaired, log = apply_resize_passes(converted, 18, intent=True)

    (warning,) = (note for note in plain_log.notes if note.severity == "warning")
    assert (warning.code, "--resize-intent restores" in warning.message) == ("converted-resize", True)
    same(run(converted, x), run(plain, x), "as it is")
    same(run(original, x), run(repaired, x), "as it was")
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_node_of_pytorch_and_the_version_converter(mode: str) -> None:
    """A linear one computed half_pixel in PyTorch too, and is kept."""
    converted = version_converter.convert_version(old_resize("Upsample", mode, "2., 2."), 13)
    converted.producer_name = "pytorch"

    _, plain_log = apply_resize_passes(converted, 17)
    result, log = apply_resize_passes(converted, 17, intent=True)

    kept = mode == "linear"
    assert ("asymmetric" not in str(resizes(result)[0])) == kept
    (warning,) = (note for note in plain_log.notes if note.severity == "warning")
    assert (warning.code, "nothing needs to be done" in warning.message) == ("converted-resize", kept)
    assert [note.code for note in log.notes if note.severity == "warning"] == ["converted-resize"] * kept


# Real exports


NAMES = sorted(
    path.stem
    for pattern in ("resize_*", "conv_relu_upsample_*", "detector*", "control_flow*")
    for path in FIXTURES.glob(f"{pattern}.onnx")
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("to", [13, 19])
def test_what_pytorch_exported(name: str, to: int) -> None:
    source = onnx.load(FIXTURES / f"{name}.onnx")
    recorded = np.load(FIXTURES / f"{name}.io.npz")
    feeds = {value.name: recorded[value.name] for value in source.graph.input}

    plain, _ = apply_resize_passes(source, to)
    restored, _ = apply_resize_passes(source, to, intent=True)

    same(run(source, feeds), run(plain, feeds), "as the file says")
    for value, actual in zip(restored.graph.output, run(restored, feeds), strict=True):
        np.testing.assert_allclose(actual, recorded[value.name], atol=2e-5, rtol=1e-4, err_msg=value.name)


SMALLEST = FIXTURES / "conv_relu_upsample_opset9.onnx"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """The input that was recorded, as a user gives it."""
    with np.load(SMALLEST.with_suffix(".io.npz")) as recorded:
        np.savez(tmp_path / "inputs.npz", x=recorded["x"])
    return tmp_path / "inputs.npz"


def told(report: Report) -> list[Note]:
    return [note for note in report.notes if note.code == "exporter-intent"]


@pytest.mark.parametrize("opset", [9, 10, 11, 17])
@pytest.mark.parametrize("source", [9, 10])
def test_the_distance_on_the_recorded_inputs(source: int, opset: int, inputs: Path) -> None:
    path = FIXTURES / f"conv_relu_upsample_opset{source}.onnx"
    report = migrate(path, opset=opset, simplify=False, input_data=inputs, **HERE).report

    (note,) = told(report)
    assert "--resize-intent writes half_pixel" in note.message
    assert note.message.endswith(". Then output 'y' differs by up to 37 % of its largest value")
    assert ("with --opset 11 or newer" in note.message) == (opset < 11)
    assert note.severity == "info"
    assert report.verification is not None
    assert report.verification.grade == "bit-identical"


def test_the_distance_is_that_of_what_the_option_writes() -> None:
    """Of the two results, run apart."""
    import onnxruntime as ort

    with np.load(SMALLEST.with_suffix(".io.npz")) as recorded:
        x, pytorch = recorded["x"], recorded["y"]
    plain, meant = (
        migrate(SMALLEST, opset=17, resize_intent=intent, simplify=False, verify=False).model
        for intent in (False, True)
    )
    one, other = (ort.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0] for m in (plain, meant))

    assert np.abs(one - other).max() == pytest.approx(2.25, abs=0.005)
    assert np.abs(other - pytorch).max() < 1e-5


def test_without_verification_the_note_has_no_figure() -> None:
    (note,) = told(migrate(SMALLEST, opset=17, simplify=False, verify=False).report)
    assert note.message.endswith(". --resize-intent writes half_pixel")


def test_all_nodes_of_a_model_are_one_note() -> None:
    (note,) = told(migrate(FIXTURES / "resize_bilinear_opset10.onnx", simplify=False, verify=False).report)
    assert note.message.startswith("'/Resize' and 2 more: ")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("resize_nearest_opset9", {}),
        ("resize_bilinear_opset11", {}),
        ("conv_relu_upsample_opset9", {"resize_intent": True}),
        ("conv_relu_upsample_opset9", {"ir_version": 5}),
    ],
)
def test_nothing_is_told_where_the_two_agree(path: str, options: dict[str, object]) -> None:
    report = migrate(FIXTURES / f"{path}.onnx", simplify=False, verify=False, **options).report  # type: ignore[arg-type]
    assert not told(report)


def test_other_producers_meant_what_they_wrote() -> None:
    proto = onnx.load(SMALLEST)
    proto.producer_name = "keras2onnx"
    assert not told(migrate(proto, simplify=False, verify=False).report)


def test_a_node_in_a_branch_is_found() -> None:
    source = model("""9 (float[1,1,2,2] x, bool c) => (float[1,1,4,4] y) <float[4] s = {1., 1., 2., 2.}> {
  y = If (c) <
    then_branch = t () => (float[1,1,4,4] a) { [inner] a = Upsample <mode = "linear"> (x, s) },
    else_branch = e () => (float[1,1,4,4] b) { b = Upsample <mode = "nearest"> (x, s) }>
}""")
    source.producer_name = "pytorch"
    (note,) = told(migrate(source, opset=17, simplify=False, **HERE).report)

    assert note.message.startswith("'inner': ")
    assert "differs by up to" in note.message


def test_the_numbers_after_the_option_are_compared_with_what_is_said(inputs: Path) -> None:
    report = migrate(SMALLEST, opset=17, resize_intent=True, input_data=inputs, **HERE).report

    assert report.verification is not None
    assert [str(statement) for statement in report.verification.statements] == [
        "conversion: bit-identical",
        "resize intent: other numbers, as you asked: output 'y' differs by up to 37 % of its largest value",
    ]
    assert report.verification.compared_with == "the model after resize_intent"


@pytest.mark.parametrize(
    ("scale", "length", "expected"),
    [
        (31 / 7, 7, [1, 31]),  # runs as 30
        (25 / 13, 13, None),  # runs as 25
        (1.7999, 5, None),  # rounded to a few decimals: runs as 8, and the intended length is ambiguous
        (1.5, 5, None),  # 7, as PyTorch computes too
        (2.0, 5, None),
    ],
)
def test_intended_lengths(scale: float, length: int, expected: list[int] | None) -> None:
    def meant(dims: str) -> list[int | None] | None:
        node = model(
            f"10 (float[{dims}] x) => (float[a,b] y) <float[2] s = {{1., {float(np.float32(scale))!r}}}> {{ y = Resize(x, s) }}"
        )
        view = NodeView(
            node.graph.node[0],
            scopes(node, Weights(), result_ir_version=4)[0],
            Where("graph", "y", "Resize", 10),
        )
        spec = read_resize(view, view.constant_value)
        found = None if spec is None else intended(spec)
        return None if found is None else [axis.size for axis in found.axes]

    assert meant(f"1,{length}") == expected
    assert meant(f"N,{length}") == (None if expected is None else [None, *expected[1:]])
    assert meant("1,N") is None
