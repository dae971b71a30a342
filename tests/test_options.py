"""The declared options are the keywords of the library's calls; tests/typed_calls.py has what a checker says of them."""

from __future__ import annotations

import inspect

import pytest

import onnx_migrate
from onnx_migrate.declared import declared
from onnx_migrate.errors import UsageError
from onnx_migrate.options import Options

DECLARED = {item.name: item for item in declared(Options)}


@pytest.mark.parametrize(
    "call", [onnx_migrate.migrate, onnx_migrate.default_pipeline], ids=lambda call: call.__name__
)
def test_the_signature_has_every_option_with_its_default(call) -> None:  # type: ignore[no-untyped-def]
    keywords = {
        name: item
        for name, item in inspect.signature(call).parameters.items()
        if item.kind is item.KEYWORD_ONLY
    }
    assert list(keywords) == list(DECLARED)
    assert {name: item.default for name, item in keywords.items()} == {
        name: item.default for name, item in DECLARED.items()
    }


def test_the_help_of_migrate_explains_every_argument() -> None:
    text = inspect.getdoc(onnx_migrate.migrate) or ""
    arguments = text.partition("Args:\n")[2].partition("\n\n")[0]
    lines = [line for line in arguments.splitlines() if not line.startswith("     ")]
    assert [line.partition(":")[0].strip() for line in lines] == ["source", *DECLARED]
    assert max(map(len, text.splitlines())) <= 130


def test_a_keyword_that_is_misspelt_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"migrate\(\) got an unexpected keyword argument 'opsett'; did you mean 'opset'\?"
    ):
        onnx_migrate.migrate("x.onnx", opsett=17)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="source"):
        onnx_migrate.migrate(opset=17)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        onnx_migrate.migrate("x.onnx", 17)  # type: ignore[call-arg]


SWITCHES = [name for name, item in DECLARED.items() if item.type == "bool"]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_text_is_no_value_of_a_switch(name: str) -> None:
    """Every text would be true, also "no"."""
    with pytest.raises(UsageError, match=f"{name}='no' is not known"):
        Options(**{name: "no"})
    assert getattr(Options(**{name: True}), name) is True
