"""Where numbers first differ, in words and as JSON."""

from __future__ import annotations

import json

from onnx_migrate.verdicts.first_difference import FirstDifference


def test_the_pass_and_the_node_are_named() -> None:
    found = FirstDifference(("mine",), "relu_3", "Relu", "v3", "differs")

    assert str(found) == "the numbers first differ after pass 'mine', at node 'relu_3' (Relu)"
    assert json.loads(json.dumps(found.as_dict())) == {
        "passes": ["mine"],
        "node": "relu_3",
        "operator": "Relu",
        "value": "v3",
        "problem": "differs",
    }


def test_passes_that_cannot_be_told_apart_are_all_named() -> None:
    assert str(FirstDifference(("a", "b"))) == "the numbers first differ after pass 'a' or 'b'"
