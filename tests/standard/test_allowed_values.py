"""The values of attributes by version; the table agrees with the texts of the standard."""

from __future__ import annotations

import pytest
from onnx import defs, helper

from onnx_migrate.standard import allowed_values as module
from onnx_migrate.standard.allowed_values import allowed_values, value_violation
from onnx_migrate.standard.schema import versions
from tests.support.skips import Elsewhere, skip


@pytest.mark.parametrize("key", module._VALUES, ids=".".join)
def test_each_value_is_in_the_text_of_its_version(key: tuple[str, str, str]) -> None:
    domain, operator, attribute = key
    for since, values in module._VALUES[key].items():
        if since > max(versions(domain, operator), default=0):
            skip("this onnx does not know the version", Elsewhere.NEWEST)
        text = (
            defs.get_schema(operator, max(since, versions(domain, operator)[0]), domain)
            .attributes[attribute]
            .description
        )
        for value in values:
            if value != "tf_half_pixel_for_nn" and not value.startswith("SAME"):
                assert value.lower() in text.lower(), (key, since, value)


@pytest.mark.parametrize("key", module._VALUES, ids=".".join)
def test_each_default_is_allowed(key: tuple[str, str, str]) -> None:
    domain, operator, attribute = key
    for version in versions(domain, operator):
        found = defs.get_schema(operator, version, domain).attributes.get(attribute)
        allowed = allowed_values(domain, operator, attribute, version)
        if found is None or not found.default_value.name or allowed is None:
            continue
        assert found.default_value.s.decode() in allowed


@pytest.mark.parametrize(
    ("operator", "attributes", "invalid", "valid"),
    [
        ("Resize", {"coordinate_transformation_mode": "half_pixel_symmetric"}, 18, 19),
        ("ScatterND", {"reduction": "max"}, 16, 18),
        ("ScatterElements", {"reduction": "min"}, 17, 18),
        ("GridSample", {"mode": "linear"}, 19, 20),
        ("GridSample", {"mode": "bicubic"}, 20, 16),
    ],
)
def test_values_that_came_later(operator: str, attributes: dict[str, str], invalid: int, valid: int) -> None:
    node = helper.make_node(operator, ["x"], ["y"], **attributes)

    complaint = value_violation(node, invalid)
    assert complaint is not None
    assert next(iter(attributes.values())) in complaint
    assert value_violation(node, valid) is None


@pytest.mark.parametrize(("operator", "mode", "version"), [("Pad", "wrap", 11), ("Resize", "cubic", 10)])
def test_values_that_onnx_runtime_takes_before_they_came(operator: str, mode: str, version: int) -> None:
    assert value_violation(helper.make_node(operator, ["x"], ["y"], mode=mode), version) is None
    assert value_violation(helper.make_node(operator, ["x"], ["y"], mode="area"), version) is not None


def test_element_types() -> None:
    assert value_violation(helper.make_node("Cast", ["x"], ["y"], to=1), 13) is None
    assert value_violation(helper.make_node("Cast", ["x"], ["y"], to=0), 13) is not None
    assert value_violation(helper.make_node("EyeLike", ["x"], ["y"], dtype=99), 13) is not None
    assert value_violation(helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=0), 21) is None
    assert value_violation(helper.make_node("Cast", ["x"], ["y"], to=99, domain="com.acme"), 13) is None
