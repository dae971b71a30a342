"""What tests of verify/ share beside the harness."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from onnx_migrate.verify.equivalence import corner_runs


@pytest.fixture
def without_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run random feeds alone, on which a fault that a test is about does not show."""

    def no_feeds(*_: object, **__: object) -> Iterable[object]:
        return ()

    monkeypatch.setattr(corner_runs, "_affordable", no_feeds)
