"""How pipelines are put together, and which orders are refused."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from onnx_migrate.engine.pass_infra import as_pass
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import UsageError
from onnx_migrate.pipelines import default_pipeline
from tests.engine.passes import Own, double_weights, skip_identity


def test_passes_are_listed_ordered_and_left_out() -> None:
    first, second = as_pass(skip_identity), as_pass(double_weights)

    pipeline = Pipeline((first,)).add(second, before="skip_identity")

    assert pipeline.names == ("double_weights", "skip_identity")
    assert pipeline.without("skip_identity").names == ("double_weights",)
    assert Pipeline((first,)).add(second, after="skip_identity").names == ("skip_identity", "double_weights")
    with pytest.raises(UsageError, match="has no pass 'x'"):
        pipeline.without("x")
    with pytest.raises(UsageError, match="two passes"):
        pipeline.add(first)
    with pytest.raises(UsageError, match="`before` and `after`"):
        pipeline.add(Own(), before="skip_identity", after="skip_identity")


@pytest.mark.parametrize(
    ("early", "late"),
    [
        (("resize_form", {}), ("migrate_opset", {"opset": 17})),
        (("migrate_ml", {"opset": 3}), ("migrate_opset", {"opset": 17})),
        (("simplify", {}), ("dynamic_dims", {"dynamic": "x:N"})),
    ],
    ids=lambda item: item[0],
)
def test_an_order_that_cannot_work_is_refused(
    early: tuple[str, dict[str, Any]], late: tuple[str, dict[str, Any]]
) -> None:
    passes = [make_pass(name, **options) for name, options in (early, late)]

    with pytest.raises(UsageError) as caught:
        Pipeline(tuple(passes))

    assert caught.value.code == "pass-order"
    assert f"{early[0]!r} cannot run before {late[0]!r}" in str(caught.value)
    assert Pipeline(tuple(reversed(passes))).names == (late[0], early[0])
    assert Pipeline(tuple(passes[:1])).names == (early[0],), "a model may be at its target without the pass"


def test_a_pass_of_ones_own_has_its_place_in_the_order() -> None:
    from onnx_migrate import ModelProperty

    class NeedsTarget(Own):
        name = "needs_target"
        requires = frozenset({ModelProperty.TARGET_OPSET})

    pipeline = default_pipeline(opset=17)

    assert "needs_target" in pipeline.add(NeedsTarget(), after="migrate_opset").names
    with pytest.raises(UsageError, match="put migrate_opset before needs_target"):
        pipeline.add(NeedsTarget(), before="migrate_opset")


def test_a_function_goes_anywhere() -> None:
    def rename(model: onnx.ModelProto) -> None:
        model.producer_name = "me"

    pipeline = default_pipeline(opset=17, dynamic="x:N")
    for name in pipeline.names:
        assert pipeline.add(rename, before=name).names.index("rename") == pipeline.names.index(name)
