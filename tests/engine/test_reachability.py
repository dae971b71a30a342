"""The opsets that are found reachable, compared with migrations that try each of them."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate import files
from onnx_migrate.engine.reachability import find_reachable_opsets
from tests.support.paths import FIXTURES

NEWEST = onnx.defs.onnx_opset_version()

TEXTS = {
    "below 9 only": ("g (float[N] x, float k, float a) => (float[M] y) { y = Tile (x, k, a) }", 5),
    "nodes of three fates": (
        "g (float[N] x, float k, float a) => (float[M] y) {"
        " t = Tile (x, k, a) s = LpPool <p = 2.5> (t) u = NeverWas (s) y = Softmax <axis = 1> (u) }",
        1,
    ),
    "above 10": (
        "g (float x, float w) => (float y) { y = ConvTranspose <output_shape = [1, 2, 8, 8]> (x, w) }",
        9,
    ),
    "fine": ("g (float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 11),
    "not an operator": ("g (float[2] x) => (float[2] y) { y = NeverWas (x) }", 11),
    "no ai.onnx": ("g (float[2] x) => (float[2] y) { y = com.acme.Own (x) }", 0),
}


def model(name: str) -> onnx.ModelProto:
    text, opset = TEXTS[name]
    imports = f'"": {opset}, "com.acme": 1' if opset else '"com.acme": 1'
    proto = onnx.parser.parse_model(f"<ir_version: 7, opset_import: [{imports}]> {text}")
    if name == "above 10":
        for value in (*proto.graph.input, *proto.graph.output):
            value.type.tensor_type.ClearField("shape")
    return proto


def reached(proto: onnx.ModelProto, opset: int) -> bool:
    try:
        onnx_migrate.migrate(proto, opset=opset, simplify=False, verify=False)
    except (onnx_migrate.CannotMigrate, onnx_migrate.IllegalModel):
        return False
    return True


@pytest.mark.parametrize("name", [name for name, (_, opset) in TEXTS.items() if opset])
def test_the_opsets_found_are_those_that_migrations_reach(name: str) -> None:
    proto, own = model(name), TEXTS[name][1]

    found = find_reachable_opsets(files.load(proto))

    assert list(found.opsets) == [
        opset
        for opset in range(min(own, 7), NEWEST + 1)
        if (opset == own and reached(proto, own)) or reached(proto, opset)
    ]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*opset9.onnx")), ids=lambda path: str(path.stem))
def test_the_fixtures_reach_what_migrations_reach(path: Path) -> None:
    found, proto = find_reachable_opsets(files.load(path)), onnx.load(path)

    tried = (7, 8, 10, 11, 17, NEWEST)
    assert [opset for opset in found.opsets if opset in tried] == [
        opset for opset in tried if reached(proto, opset)
    ]


def test_nodes_that_form_a_cycle_reach_no_opset() -> None:
    text = "g (float[2] x) => (float[2] y) { t = Add (x, y) y = Relu (t) }"
    proto = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": 7]> {text}')

    found = find_reachable_opsets(files.load(proto))

    assert (found.opsets, [refusal.error.code for refusal in found.refusals]) == ((), ["cycle"])


def test_every_refusal_names_the_opsets_that_it_prevents() -> None:
    found = find_reachable_opsets(files.load(model("nodes of three fates")))

    refused = [(refusal.error.code, refusal.opsets) for refusal in found.refusals]
    assert sorted(refused) == [
        ("needs-rank", (6, 7, 8)),
        ("no-equal", tuple(range(2, NEWEST + 1))),
        ("unknown-operator", tuple(range(1, NEWEST + 1))),
    ]


def test_the_model_is_not_edited() -> None:
    loaded = files.load(model("nodes of three fates"))
    before = loaded.proto.SerializeToString()

    find_reachable_opsets(loaded)

    assert loaded.proto.SerializeToString() == before


def test_a_model_of_other_domains_only_has_no_opset_to_raise() -> None:
    assert find_reachable_opsets(files.load(model("no ai.onnx"))).opsets == ()


def test_a_model_from_the_future() -> None:
    proto = model("fine")
    proto.opset_import[0].version = 999

    found = find_reachable_opsets(files.load(proto))

    assert (found.opsets, [refusal.error.code for refusal in found.refusals]) == ((), ["too-new"])
