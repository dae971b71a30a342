"""Declared shapes that contradict the graph are corrected, unless inference itself is wrong."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from onnx_migrate import migrate
from onnx_migrate.engine.obligations import PassResult
from onnx_migrate.engine.other_numbers import OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.facts import onnx_inference
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

TEXT = "17 (float[N,3,4,4] x) => (float[N,3,1,1] y) { a = Relu(x)  y = GlobalAveragePool(a) }"


def corrected(source: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    log = ChangeLog()
    result = make_pass("declared_shapes").run(Model(source), log).proto
    return result, [note.code for note in log.notes]


def test_correct_declarations_are_kept() -> None:
    source = model(TEXT)
    source.graph.value_info.append(helper.make_tensor_value_info("a", 1, ["N", 3, 4, 4]))
    before = source.SerializeToString()

    result, codes = corrected(source)

    assert result.SerializeToString() == before
    assert codes == []


def test_a_wrong_output_is_corrected_and_its_symbols_are_kept() -> None:
    source = model(TEXT)
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, ["N", 3, 7, 7]))

    result, codes = corrected(source)

    assert result.graph.output[0] == model(TEXT).graph.output[0]
    assert codes == ["output-dims"]
    onnx.checker.check_model(result, full_check=True)


def test_a_wrong_rank_is_corrected() -> None:
    source = model(TEXT)
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [3]))

    result, _ = corrected(source)

    assert len(result.graph.output[0].type.tensor_type.shape.dim) == 4


def test_wrong_value_info_is_removed() -> None:
    source = model(TEXT)
    source.graph.value_info.append(helper.make_tensor_value_info("a", 1, ["N", 5, 4, 4]))

    result, codes = corrected(source)

    assert not result.graph.value_info
    assert codes == ["value-info"]


def test_nothing_is_corrected_where_onnx_infers_another_length_than_runs() -> None:
    # 5 × 1.8 is 9 in single precision, as runtimes compute it, and 8 as onnx infers it.
    source = model(
        '17 (float[1,1,5,5] x) => (float[1,1,9,9] y) <float[4] s = {1., 1., 1.8, 1.8}> { y = Resize<mode="nearest">(x, , s) }'
    )
    before = source.SerializeToString()

    result, codes = corrected(source)

    assert result.SerializeToString() == before
    assert codes in (["shapes-in-doubt"], [])


@pytest.mark.parametrize(("declared", "inferences"), [("[N,3,1,1]", 1), ("[N,3,7,7]", 2)])
def test_what_was_inferred_for_the_migration_is_inferred_again_only_where_it_contradicts_the_model(
    declared: str, inferences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = onnx_inference._inferred
    monkeypatch.setattr(onnx_inference, "_inferred", lambda model: asked.append(model) or real(model))
    source = model(
        f"9 (float[N,3,4,4] x) => (float{declared} y) {{ a = Softmax<axis = 3>(x)  y = GlobalAveragePool(a) }}"
    )

    result = migrate(source, opset=13, simplify=False, verify="off")

    assert len(asked) == inferences
    assert [dim.dim_value for dim in result.model.graph.output[0].type.tensor_type.shape.dim] == [0, 3, 1, 1]


class Reshapes(ObligedPass):
    """Makes the pool at the end a Relu, which keeps the lengths of its input."""

    name = "reshapes"

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        model.proto.graph.node[-1].op_type = "Relu"
        return PassResult(model, OtherNumbers(self.name, "a test"))


def test_a_pass_that_changes_numbers_may_change_dims() -> None:
    source = model(
        "9 (float[N,3,4,4] x) => (float[N,3,1,1] y) { a = Softmax<axis = 3>(x)  y = GlobalAveragePool(a) }"
    )
    passes = (make_pass("migrate_opset", opset=13), Reshapes(), make_pass("declared_shapes"))

    result = Pipeline(passes).run(Model(source), ChangeLog()).model.proto

    assert [dim.dim_value for dim in result.graph.output[0].type.tensor_type.shape.dim] == [0, 3, 4, 4]
