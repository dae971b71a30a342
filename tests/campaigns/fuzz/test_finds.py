"""What the fuzzer found stays mended."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.campaigns.fuzz.finds import FINDS, find
from tests.campaigns.fuzz.oracle import check
from tests.support.skips import Elsewhere, skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", FINDS, ids=lambda path: path.stem)
def test_what_was_found_is_mended(path: Path) -> None:
    case, result = find(path)
    outcome = check(case)
    if outcome.result in ("too-new", "no-such-opset") and outcome.result not in result:
        skip(
            f"onnx {onnx.__version__} does not know the opset of this model, or that it is to have",
            Elsewhere.NEWEST,
        )
    assert outcome.finds == ()
    assert outcome.result in result.split(" or ")
