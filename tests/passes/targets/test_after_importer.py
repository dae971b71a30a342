"""Results are held against the tables: what migrates for a release has only what its rows say that it takes.

Runtimes that cannot be run here have no other test. What is refused must name a node, and an operator that the row does not
take; what is not must compute the same numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate import MigrateError, migrate
from onnx_migrate.errors import Where
from onnx_migrate.standard.targets import Targets, shipped
from onnx_migrate.standard.targets.target import Target
from tests.fixtures.test_torch_exports import NAMES, case
from tests.harness import random_feeds, run
from tests.passes.targets.importer import complaints, tables, taken
from tests.support.paths import FIXTURES

ALL = tables()
ROWS = [(name, index) for name, table in ALL.items() for index in range(len(table["release"]))]
LAST = [(name, len(table["release"]) - 1) for name, table in ALL.items()]
OLD = (
    "conv_relu_upsample_opset9",
    "crnn_opset9",
    "unet_opset11",
    "transformer_opset9",
    "pad_maxpool_opset11",
)

REFUSALS = {
    "target-lacks", "target-form", "runtime-opset", "runtime-ir", "no-equal", "needs-constant", "needs-type", "needs-rank",
    "needs-shape", "needs-value", "no-such-type",
}  # fmt: skip
"""The codes with which a model may be refused for a target."""

WARNED = {
    "runtime-opset": "opset",
    "form-kept": " with ",
    "resize-kept": "Resize with axes",
    "not-lowered": "opset",
}
"""Warnings of the report, and the complaint that each announces."""


@cache
def subject(name: str) -> tuple[onnx.ModelProto, dict[str, Any], list[Any]]:
    """Return a model, its inputs, and what it computes."""
    if name in NAMES:
        return case(name, 18)
    proto = onnx.load(FIXTURES / f"{name}.onnx")
    feeds = random_feeds(proto)
    return proto, feeds, run(proto, feeds)


def hold(table_name: str, index: int, name: str) -> str:
    """Migrate a model to a row and hold the result against it; return the code of a refusal, "" for a result."""
    text = ALL[table_name]
    table = shipped(table_name)
    row = table.releases[index]
    target = Target(table, row, row.since, row.since, table_name)
    source, feeds, expected = subject(name)
    try:
        found = migrate(source, runtime=Targets((target,)), simplify=False, verify="off", isolated=False)
    except MigrateError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert refusal.code in REFUSALS, (name, refusal)
        if refusal.code == "target-lacks":
            limited = "takes" in str(refusal)
            place = refusal.where or Where()
            assert place.node or "fixed dims only" in str(refusal), refusal
            assert limited or not taken(text, row.since, place.operator), (name, refusal)
            assert table.title in str(refusal)
        return refusal.code
    allowed = [WARNED[note.code] for note in found.report.notes if note.code in WARNED]
    wrong = [
        item
        for item in complaints(text, text["release"][index], found.model)
        if not any(part in item for part in allowed)
    ]
    assert not wrong, (name, wrong)
    changed = any(note.code in ("resize-intent", "other-numbers") for note in found.report.notes)
    for theirs, ours in zip(expected, run(found.model, feeds), strict=True):
        if not changed:
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4, err_msg=name)
    return ""


@pytest.mark.sample(4)
@pytest.mark.parametrize(("place", "row"), list(enumerate(LAST)), ids=[name for name, _ in LAST])
def test_a_sample_of_models_fits_the_last_row(place: int, row: tuple[str, int]) -> None:
    hold(*row, NAMES[place % len(NAMES)])
    hold(*row, OLD[place % len(OLD)])


@pytest.mark.parametrize("name", ["vit", "gpt", "diffusion", "grid_sample"])
def test_tensorrt_8_5_takes_what_its_opset_has_and_it_has_not(name: str) -> None:
    (index,) = [at for at, row in enumerate(ALL["tensorrt"]["release"]) if row["from"] == "8.5"]
    assert hold("tensorrt", index, name) in ("", "target-lacks")


@pytest.mark.campaign
@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{name}-{ALL[name]['release'][at].get('from', '')}" for name, at in ROWS]
)
def test_every_model_fits_every_row(row: tuple[str, int]) -> None:
    for name in (*NAMES, *OLD):
        hold(*row, name)


def test_a_wrong_result_would_be_seen() -> None:
    source, _, _ = subject("vit")
    tensorrt = ALL["tensorrt"]
    (row,) = [row for row in tensorrt["release"] if row["from"] == "8.4"]
    found = list(complaints(tensorrt, row, source))
    assert "operator LayerNormalization" in found
    assert "opset 18" in found
