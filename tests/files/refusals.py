"""How tests ask for the error of a load."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files.loading import load


def refusal(source: object) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(source)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value
