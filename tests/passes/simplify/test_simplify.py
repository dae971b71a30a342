"""onnxsim behind its guard: what it may change, what is put back, and when it is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.errors import PassError
from onnx_migrate.files import inline, load
from onnx_migrate.isolate import Limits
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, random_feeds, run, same

TEXT = """<ir_version: 8, opset_import: ["":17], producer_name: "maker", model_version: 7, doc_string: "words">
g (float[N,3] x) => (float[N,3] y) <float[1] w = {2.}, float[1] v = {3.}> {
  k = Mul(w, v)  a = Mul(x, k)  b = Identity(a)  y = Relu(b)
}"""


def simplify(source: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    item = builtin_passes()["simplify"](isolated=False, **options)  # type: ignore[call-arg]
    return inline(item.run(load(source), ChangeLog()))


def test_constants_are_folded_and_the_rest_stays() -> None:
    source = model(TEXT)
    source.metadata_props.add(key="k", value="v")
    source.graph.input[0].type.denotation = "IMAGE"
    source.graph.quantization_annotation.add(tensor_name="y")

    result = simplify(source)

    assert [node.op_type for node in result.graph.node] == ["Mul", "Relu"]
    same(run(source, random_feeds(source)), run(result, random_feeds(source)), "simplified")
    for field in (
        "producer_name",
        "model_version",
        "doc_string",
        "metadata_props",
        "opset_import",
        "ir_version",
    ):
        assert getattr(result, field) == getattr(source, field), field
    assert result.graph.input == source.graph.input
    assert result.graph.output == source.graph.output
    assert result.graph.quantization_annotation == source.graph.quantization_annotation


def test_where_there_is_nothing_to_do_nothing_is_done() -> None:
    once = load(simplify(model(TEXT)))
    log = ChangeLog()
    assert builtin_passes()["simplify"](isolated=False).run(once, log) is once  # type: ignore[call-arg]
    assert log.notes == []


def test_weights_that_are_computed_stay_computed() -> None:
    source = model("""<ir_version: 8, opset_import: ["":17]>
g (float[1,4] x) => (float[1,3000000] y) <int64[2] n = {4, 3000000}> { w = ConstantOfShape(n)  y = MatMul(x, w) }""")

    result = simplify(source)

    assert result.ByteSize() < 4096
    assert [node.op_type for node in result.graph.node] == ["ConstantOfShape", "MatMul"]


def test_a_result_beyond_the_budget_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxsim

    def bloat(proto: onnx.ModelProto, **options: object) -> tuple[onnx.ModelProto, bool]:
        proto.graph.initializer.append(numpy_helper.from_array(np.ones(1 << 20, np.float32), "fat"))
        return proto, True

    monkeypatch.setattr(onnxsim, "simplify", bloat)
    with pytest.raises(PassError, match=r"grow from .* are allowed") as caught:
        simplify(model(TEXT))

    assert caught.value.code == "not-simplified"


def test_an_overridable_initializer_is_not_folded() -> None:
    source = model(TEXT)
    source.graph.input.append(helper.make_tensor_value_info("w", 1, [1]))

    with pytest.raises(PassError, match="callers can override it"):
        simplify(source)


def test_a_hang_ends(tmp_path: Path) -> None:
    item = builtin_passes()["simplify"](limits=Limits(seconds=0.01))  # type: ignore[call-arg]

    with pytest.raises(PassError, match="not done after"):
        item.run(load(model(TEXT)), ChangeLog())
