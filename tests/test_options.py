"""The declared options are the keywords of the library's calls, with types that a checker follows."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import onnx_migrate
from onnx_migrate.declared import declared
from onnx_migrate.options import Options
from tests.support.paths import ROOT

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


CALLS = {
    'migrate("m.onnx", opset=17, runtime=["tract"], dynamic={"x": [0]}, verify="require").save("o")': None,
    'migrate(source="m.onnx", passes=[print], cancel=None, pipeline=default_pipeline(fix="N=1"))': None,
    'migrate("m.onnx", opsett=17)': 'did you mean "opset"?',
    'migrate("m.onnx", verify="maybe")': 'Argument "verify" to',
    'migrate("m.onnx", 17)': "Too many positional arguments",
    "migrate(17)": "Argument 1 to",
    "default_pipeline(opset=1.5)": 'Argument "opset" to',
}
"""Calls, and what mypy says of them; None for nothing."""


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="types are checked with the newest releases of what is imported"
)
def test_a_type_checker_knows_the_keywords(tmp_path: Path) -> None:
    script = tmp_path / "calls.py"
    lines = ["from onnx_migrate import default_pipeline, migrate", *CALLS]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(script)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    for number, (call, said) in enumerate(CALLS.items(), 2):
        found = [line for line in ended.stdout.splitlines() if f"calls.py:{number}: error" in line]
        assert bool(found) == (said is not None), (call, ended.stdout)
        assert said is None or said in found[0]
