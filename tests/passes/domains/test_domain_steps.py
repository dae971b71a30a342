"""What brings the nodes of one domain to an opset; the tests of ai.onnx.ml and of plug-ins have the cases."""

from __future__ import annotations

import onnx
import pytest
from onnx_migrate.passes.domains.domain_steps import lift_domain, lower_domain, newest_import

from onnx_migrate import files
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

ML = "ai.onnx.ml"
TEXT = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (float[2,3] x) => (float[2,3] y) { y = local.F (x) }
<opset_import: ["": 17, "ai.onnx.ml": 2], domain: "local"> F (a) => (b) { b = ai.onnx.ml.Binarizer (a) }"""


def source() -> onnx.ModelProto:
    proto = model(TEXT)
    proto.opset_import.add(domain="local", version=1)
    return proto


def imports(proto: onnx.ModelProto) -> list[int]:
    return [
        entry.version
        for owner in (proto, *proto.functions)
        for entry in owner.opset_import
        if entry.domain == ML
    ]


def test_the_newest_import_is_that_of_any_body() -> None:
    assert newest_import(source(), ML) == 3
    assert newest_import(source(), "com.example") is None


def test_every_body_is_lifted_and_lowered() -> None:
    loaded, log = files.load(source()), ChangeLog()

    lift_domain(loaded, ML, 4, log, "here", newer="refuse", beside=17)
    assert imports(loaded.proto) == [4, 4]
    lower_domain(loaded, ML, 1, log, "here", beside=17)

    assert imports(loaded.proto) == [1, 1]
    assert [note.message for note in log.notes if note.code == "ml-opset"] == [
        f"{ML} 3 became 4",
        f"{ML} 4 became 1",
    ]


@pytest.mark.parametrize(("newer", "expected"), [("keep", [3, 3]), ("lower", [3, 2])])
def test_a_newer_model_stays_or_waits(newer: str, expected: list[int]) -> None:
    loaded = files.load(source())
    lift_domain(loaded, ML, 1, ChangeLog(), "here", newer=newer, beside=17)  # type: ignore[arg-type]
    assert imports(loaded.proto) == expected
    with pytest.raises(CannotMigrate) as caught:
        lift_domain(loaded, ML, 1, ChangeLog(), "here", newer="refuse", beside=17)
    assert caught.value.code == "downgrade"
