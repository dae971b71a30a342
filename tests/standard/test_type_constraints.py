"""Type constraints are those of onnx.defs, and types of outputs follow from those of inputs."""

from __future__ import annotations

from onnx_migrate.standard.type_constraints import constraints, judge

FLOAT, INT = "tensor(float)", "tensor(int64)"


def test_formal_parameters() -> None:
    found = constraints("", "Concat", 13)
    assert found is not None
    assert found.formal(7, output=False) == found.inputs[0]
    assert found.formal(1, output=True) is None
    assert constraints("", "NeverWas", 1) is None
    assert constraints("", "Constant", 1) is None  # its constraint was never applied


def test_the_types_of_outputs() -> None:
    assert judge("", "Add", 14, (FLOAT, None), (None,)) == (None, (FLOAT,))
    assert judge("", "Shape", 15, (None,), (None,)) == (None, (INT,))
    assert judge("", "TopK", 11, (FLOAT, INT), (None, None)) == (None, (FLOAT, INT))
    assert judge("", "Loop", 16, (INT, "tensor(bool)", FLOAT), (None,)) == (None, (None,))


def test_versions_differ() -> None:
    assert judge("", "Clip", 12, ("tensor(int32)",), (None,))[0] is None
    complaint, _ = judge("", "Clip", 11, ("tensor(int32)",), (None,))
    assert complaint == "has tensor(int32) as input 0 (input), which Clip-11 does not take there"
