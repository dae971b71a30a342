"""The pass lower_opset: what it refuses before it begins, and bodies of several opsets."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from tests.harness import model, random_feeds, run
from tests.lowering import lower, same_bits

MIXED = """<ir_version: 8, opset_import: ["":15, "local":1]>
g (float[2,3,4] x) => (float[2,3,4] y) { a = local.Act(x)  y = Softmax<axis=0>(a) }
<domain: "local", opset_import: ["":11]> Act (a) => (b) { b = Softmax<axis=1>(a) }"""


def test_a_function_older_than_the_target_is_lifted_and_the_graph_lowered() -> None:
    source = model(MIXED)
    feeds = random_feeds(source)

    result, _ = lower(source, 13)

    assert [function.opset_import[0].version for function in result.functions] == [13]
    (actual,) = run(result, feeds)
    flat = run(
        model("""<ir_version: 7, opset_import: ["":11]>
g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"""),
        feeds,
    )[0]
    same_bits(
        run(
            model("""<ir_version: 7, opset_import: ["":13]>
g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=0>(x) }"""),
            {"x": flat},
        ),
        [actual],
        "mixed",
    )


def test_below_opset_7_nothing_could_be_verified() -> None:
    with pytest.raises(UsageError, match="below 7") as caught:
        lower(model(MIXED), 6)
    assert caught.value.code == "no-such-opset"


def test_an_older_model_stays_as_it_is() -> None:
    source = model(MIXED.replace('"":15', '"":11'))
    result, log = lower(source, 11)
    assert result.SerializeToString() == source.SerializeToString()
    assert not log.changes
