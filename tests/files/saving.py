"""What tests that save models share."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnx_migrate.errors import SaveError
from onnx_migrate.files import inline, load, save
from onnx_migrate.model.model import Model
from tests.files.feature_models import model, weight


def other() -> onnx.ModelProto:
    """A model that differs from `plain` in structure and in weights."""
    return model([weight("w", 7), weight("v", 8, 5000)], doc_string="other")


def changed(path: Path) -> Model:
    loaded = load(path)
    loaded.proto.producer_name = "changed"
    return loaded


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def refusal(code: str, *args: object, **kwargs: object) -> SaveError:
    with pytest.raises(SaveError) as caught:
        save(*args, **kwargs)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    return caught.value


def moved(path: Path) -> Model:
    """Return the model at a path with its weights elsewhere, as the simplifier leaves them."""
    read = load(path)
    found = load(inline(read))
    found.origin = read.origin
    return found
