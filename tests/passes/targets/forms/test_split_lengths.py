"""The lengths of a Split's parts are written as its opset wants them."""

from __future__ import annotations

import pytest

from tests.passes.targets.test_fit_forms import fit


@pytest.mark.parametrize(("opset", "attributes"), [(11, ""), (13, ""), (18, ", num_outputs = 2")])
def test_lengths(opset: int, attributes: str) -> None:
    length = 5 if opset == 18 else 6
    parts = (3, 2) if opset == 18 else (3, 3)
    proto, _ = fit(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[2,{length}] x) => (float[2,{parts[0]}] y, float[2,{parts[1]}] z)
        {{ y, z = Split <axis = -1{attributes}> (x) }}""",
        "split_lengths",
    )
    (node,) = proto.graph.node
    if opset < 13:
        assert [list(item.ints) for item in node.attribute if item.name == "split"] == [list(parts)]
    else:
        assert len(node.input) == 2
        assert [item.name for item in node.attribute] == ["axis"]


def test_an_unknown_length_is_warned_of() -> None:
    source = """<ir_version: 8, opset_import: ["": 13]> g (float[2,N] x) => (float[2,M] y, float[2,M] z)
    { y, z = Split <axis = 1> (x) }"""
    proto, log = fit(source, "split_lengths")
    assert [note.code for note in log.notes] == ["form-kept"]
    assert len(proto.graph.node[0].input) == 1
