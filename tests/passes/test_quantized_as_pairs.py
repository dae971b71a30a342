"""`--quantized-form qdq`: integer operators as float ones between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_migrate
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.passes.contrib.level_1 import integers
from tests.passes.contrib.level_2 import products, scale, small, zero
from tests.passes.contrib.one_node import Case, session
from tests.steps import operators

COLUMNS = np.asarray(np.linspace(0.01, 0.03, 6), "float32")


def cases() -> list[Case]:
    x = integers(0, 256, 1, 4, 6, 7, dtype="uint8")
    w, b = small("int8", 6, 4, 3, 3), integers(-99, 99, 6, dtype="int32")
    found = []
    for several in (False, True):
        given = {
            "x": x, "xs": scale(0.0527), "xz": zero("uint8", 2), "w": w, "ws": COLUMNS if several else scale(0.0213),
            "wz": np.zeros(6 if several else (), "int8"), "ys": scale(0.2131), "yz": zero("uint8", 3), "b": b,
        }  # fmt: skip
        constants = [name for name in given if name != "x"]
        found.append(
            Case("QLinearConv", given, {"pads": [1, 1, 1, 1]}, constants, domain="", label=f"{several}")
        )
        given = {
            "a": integers(0, 256, 5, 8, dtype="uint8"), "as": scale(0.0527), "az": zero("uint8", 2), "b": small("int8", 8, 6),
            "bs": COLUMNS if several else scale(0.0213), "bz": np.zeros(6 if several else (), "int8"), "ys": scale(0.1131),
            "yz": zero("uint8", 3),
        }  # fmt: skip
        constants = [name for name in given if name != "a"]
        found.append(Case("QLinearMatMul", given, {}, constants, domain="", label=f"{several}"))
    given = {
        "a": integers(0, 256, 5, 8, dtype="uint8"),
        "b": small("int8", 8, 6),
        "az": zero("uint8", 2),
        "bz": np.full(6, 3, "int8"),
    }
    found.append(Case("MatMulInteger", given, {}, ("b", "az", "bz"), domain=""))
    given = {"x": x, "w": small("uint8", 6, 4, 3, 3), "xz": zero("uint8", 2), "wz": zero("uint8", 1)}
    found.append(Case("ConvInteger", given, {"strides": [2, 1]}, ("w", "xz", "wz"), domain=""))
    found += [case for case in products() if case.operator == "QGemm"][:8]
    return found


@pytest.mark.parametrize("case", cases(), ids=str)
def test_integer_operators_become_pairs_and_compute_the_same_steps(case: Case) -> None:
    proto = case.model(13)
    before = session(proto).run(None, case.feeds)[0]
    result = make_pass("quantized_as_pairs").run(Model(case.model(13)), ChangeLog()).proto
    assert "DequantizeLinear" in operators(result)
    assert case.operator not in operators(result)
    after = session(result).run(None, case.feeds)[0]
    assert before.dtype == after.dtype
    gap = np.abs(before.astype(np.float64) - after.astype(np.float64))
    if before.dtype == np.float32:
        assert gap.max() <= 1e-6 * np.abs(before).max()
    else:
        assert gap.max() <= (1 if before.dtype.itemsize == 1 else 0)
        assert (gap > 0).mean() <= 0.02


@pytest.mark.parametrize("case", cases()[:4], ids=str)
def test_an_importer_of_one_scale_gets_pairs_where_there_are_several(case: Case) -> None:
    several = case.label == "True"
    result = onnx_migrate.migrate(case.model(17), runtime="openvino==2026.4", simplify=False)
    assert (case.operator in operators(result.model)) != several
    assert ("DequantizeLinear" in operators(result.model)) == several
    assert result.report.verified


def test_another_form_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        onnx_migrate.migrate(model("13 (float[2] x) => (float[2] y) { y = Relu (x) }"), quantized="int4")  # type: ignore[arg-type]
