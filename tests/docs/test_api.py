"""docs/api.md has every public name, by the path at which it is defined."""

from __future__ import annotations

import re
from pydoc import locate

import onnx_migrate
from tests.support.paths import ROOT

PATHS = re.findall(r"(?m)^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"))


def test_every_path_leads_to_a_name() -> None:
    assert [path for path in PATHS if locate(path) is None] == []


def test_every_public_name_is_there() -> None:
    names = {path.rpartition(".")[2] for path in PATHS}

    assert set(onnx_migrate.__all__) - {"__version__"} <= names
