"""The pass lower_opset: what it refuses before it begins, and bodies of several opsets."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate import migrate
from onnx_migrate.errors import CannotMigrate, UsageError
from tests.harness import model, random_feeds, require_opset, run, same_bits
from tests.steps import lower, operators
from tests.support.targets import targets_of

MIXED = """<ir_version: 8, opset_import: ["":15, "local":1]>
    g (float[2,3,4] x) => (float[2,3,4] y) { a = local.Act(x)  y = Softmax<axis=0>(a) }
<domain: "local", opset_import: ["":11]> Act (a) => (b) { b = Softmax<axis=1>(a) }"""


def test_a_function_older_than_the_target_is_lifted_and_the_graph_lowered() -> None:
    source = model(MIXED)
    feeds = random_feeds(source)

    result, _ = lower(source, 13)

    assert [function.opset_import[0].version for function in result.functions] == [13]
    (actual,) = run(result, feeds)
    flat = run(model("11 (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"), feeds)[0]
    same_bits(
        run(model("13 (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=0>(x) }"), {"x": flat}),
        [actual],
        "mixed",
    )


def test_below_opset_7_nothing_could_be_verified() -> None:
    with pytest.raises(UsageError, match="below 7") as caught:
        lower(MIXED, 6)
    assert caught.value.code == "no-such-opset"


def test_an_older_model_stays_as_it_is() -> None:
    source = model(MIXED.replace('"":15', '"":11'))
    result, log = lower(source, 11)
    assert result.SerializeToString() == source.SerializeToString()
    assert not log.changes


def test_what_a_step_writes_and_a_later_one_drops_is_not_left_behind() -> None:
    """Shape-15 writes a Slice with constant inputs, which are attributes below opset 10."""
    source = "15 (float[2, N] x) => (int64[] y) { y = Shape <start = 1> (x) }"
    assert len(lower(source, 14)[0].graph.initializer) == 3
    assert not lower(source, 9)[0].graph.initializer


def test_a_function_for_which_a_step_writes_integers_is_inlined_below_opset_9() -> None:
    """Below, integers are initializers, which a function has none of."""
    source = """9 (int64[2, N, 4] x) => (int64[] y) { y = local.F (x) }
        <domain: "local", opset_import: ["": 9]> F (a) => (b) { b = Flatten <axis = 2> (a) }"""
    result, _ = lower(source, 8)
    assert not result.functions
    assert operators(result)[-1] == "Reshape"


OLD = targets_of('title = "Old"\n[[release]]\nopset = 8')


def test_erf_comes_to_opset_8_for_a_runtime_and_not_by_number() -> None:
    require_opset(20)
    source = model("20 (float[2,9] x) => (float[2,9] y, float[2,9] z) { y = Gelu (x) z = Erf (x) }")
    feeds = random_feeds(source)
    found = migrate(source, runtime=OLD, simplify=False)

    assert found.model.opset_import[0].version == 8
    assert "Erf" not in operators(found.model)
    assert any("opset 8 has no Erf" in change.reason for change in found.report.changes)
    for theirs, ours in zip(run(source, feeds), run(found.model, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-6)
    with pytest.raises(CannotMigrate, match="Erf begins with opset 9"):
        migrate(source, opset=8, simplify=False)


def test_what_has_no_decomposition_is_refused_by_the_lowering() -> None:
    source = model(
        "13 (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[a,c,d,e] y) { y = RoiAlign (x, r, b) }"
    )
    with pytest.raises(CannotMigrate, match="RoiAlign"):
        migrate(source, runtime=OLD, simplify=False)
