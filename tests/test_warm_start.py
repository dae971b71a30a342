"""The process that tests fork others from imports modules that exist; a name that does not is slow, and says nothing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.support.warm_server import MODULES


@pytest.mark.parametrize("name", MODULES)
def test_what_is_imported_before_the_forks_exists(name: str) -> None:
    assert find_spec(name) is not None
