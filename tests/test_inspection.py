"""What a model is said to contain, and what migrating it would do, without doing it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper, parser

from onnx_migrate import migrate
from onnx_migrate.compatibility import Support
from onnx_migrate.errors import LoadError, UsageError
from onnx_migrate.inspection import Operator, inspect
from onnx_migrate.json_form import json_of
from onnx_migrate.standard.targets import known_names
from tests.support.small_model import FAST, UPSAMPLE, small

NESTED = """<ir_version: 8, opset_import: ["":13, "own": 1]>
g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = t () => (float[2] p) { p = Relu(x) },
        else_branch = e () => (float[2] r) { r = own.twice(x) }
    >
}
<domain: "own", opset_import: ["": 14]>
twice (a) => (b) { b = Add(a, a) }"""


def test_operators_are_counted_in_all_bodies_each_by_its_own_opset() -> None:
    found = inspect(onnx.parser.parse_model(NESTED), opset=13)

    assert found.operators == (
        Operator("", "Add", 14, 1),
        Operator("", "If", 13, 1),
        Operator("", "Relu", 13, 1),
        Operator("own", "twice", None, 1),
    )
    assert found.nodes == 4
    assert found.functions == ("own:twice",)


def test_the_plan_is_what_a_migration_does() -> None:
    found, done = inspect(UPSAMPLE), migrate(UPSAMPLE, **FAST)

    assert found.plan is not None
    assert found.target == done.report.after.opset == 17
    assert [item.reason for item in found.plan.changes] == [item.reason for item in done.report.changes]
    assert found.plan.after == done.report.after
    assert found.refusal is None


def test_a_refusal_is_a_value_and_a_wrong_argument_is_raised() -> None:
    source = parser.parse_model(
        '<ir_version: 7, opset_import: ["": 11]> g (float[4] x) => (float[n] y) { y = Unique(x) }'
    )
    refused = inspect(source, opset=9)

    assert refused.plan is None
    assert refused.refusal is not None
    assert refused.refusal.code == "no-equal"
    assert json_of(refused)["refusal"]["code"] == "no-equal"
    assert json_of(refused)["changes"] is None
    with pytest.raises(UsageError):
        inspect(small(), opset="soon")


def test_missing_weights_are_a_problem_and_nothing_more(tmp_path: Path) -> None:
    proto = small()
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((64, 64), np.float32), "big"))
    proto.graph.input.append(helper.make_tensor_value_info("big", onnx.TensorProto.FLOAT, [64, 64]))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=1024)
    whole = inspect(tmp_path / "m.onnx")
    (tmp_path / "m.data").unlink()

    found = inspect(tmp_path / "m.onnx")

    assert whole.problems == ()
    assert "m.data" in found.problems[0]
    assert found.external_files == whole.external_files == ("m.data",)
    assert found.weight_bytes == whole.weight_bytes == 64 * 64 * 4 + 12 * 4
    assert found.operators == whole.operators
    assert (found.refusal, found.reachability) == (None, whole.reachability)
    assert found.plan is not None
    assert whole.plan is not None
    assert found.plan.changes == whole.plan.changes
    with pytest.raises(LoadError):
        inspect(tmp_path / "gone.onnx")


def test_a_runtime_decides_the_target() -> None:
    found = inspect(small(), runtime="onnxruntime==1.14")
    assert found.plan is not None
    assert found.plan.passes[-1] == "runtime_limits"
    assert found.target == 18
    assert inspect(small(), runtime=["onnxruntime==1.14", "opencv==4.7"]).target == 12
    assert inspect(small(), opset=15, runtime="onnxruntime==1.14").target == 15


def test_advice_on_runtimes_is_typed() -> None:
    found = inspect(small(), runtime=["onnxruntime==1.14", "tensorrt==6.0"])
    assert [item.standing for item in found.advice] == [Support.AS_IS, Support.AFTER]
    assert found.outlooks == ()

    everywhere = inspect(small(), runtime="all")
    assert everywhere.advice == ()
    assert [item.advice.target.name for item in everywhere.outlooks] == list(known_names())
    assert inspect(small()).outlooks == ()


def test_operators_of_other_domains_are_counted_with_what_is_written_of_them() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1, "com.microsoft.nchwc": 1, "com.acme": 1]>
    g (float[2,8] x) => (float[2,8] y) { a = com.microsoft.Gelu (x) b = com.microsoft.Gelu (a)
    c = com.microsoft.nchwc.ReorderInput (b) y = com.acme.Thing (c) }"""
    found = {item.name: item for item in inspect(onnx.parser.parse_model(text)).foreign}
    assert (found["Gelu"].count, found["Gelu"].written, found["Gelu"].direct) == (2, True, 20)
    assert (found["ReorderInput"].written, "ORT_ENABLE_EXTENDED" in found["ReorderInput"].hint) == (
        False,
        True,
    )
    assert found["Thing"].reason == "no form of it is known"
