"""Runtimes that run control flow on the CPU beside them: it is written with plain nodes as far as that can be done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import onnx_migrate
from onnx_migrate.model.graphs import all_nodes
from tests.harness import model
from tests.support.plain_nodes import header

CHIP = 'name = "chip"\n[[release]]\nopset = 17\nfalls_back = true\n'
IF = "v = If (c) <then_branch = t () => (float[2] p) { p = Exp (x) }, else_branch = e () => (float[2] q) { q = Neg (x) }>"
LOOP = "w = Loop (n, , v) <body = b (int64 i, bool d, float[2] a) => (bool e, float[2] s) { e = Identity (d) s = Sin (a) }>"


@pytest.fixture
def migrated(tmp_path: Path):  # type: ignore[no-untyped-def]
    def of(table: str, nodes: str, **options: object) -> tuple[Counter[str], list[str]]:
        (tmp_path / "chip.toml").write_text(table, encoding="utf-8")
        source = model(header("float[2] x, bool c, int64 n", "float[2] w") + f"{{ {nodes} }}")
        result = onnx_migrate.migrate(source, runtime=str(tmp_path / "chip.toml"), simplify=False, **options)  # type: ignore[arg-type]
        assert result.report.verification is not None
        assert result.report.verification.verified
        kept = [note.message for note in result.report.notes if note.code == "control-flow-kept"]
        return Counter(node.op_type for node in all_nodes(result.model)), kept

    return of


def test_what_has_a_plain_form_gets_it(migrated) -> None:  # type: ignore[no-untyped-def]
    found, kept = migrated(CHIP, IF.replace("v =", "w ="))
    assert found["Exp"] == found["Neg"] == 1
    assert not found["If"]
    assert not kept
    assert migrated(CHIP.replace("true", "false"), IF.replace("v =", "w ="))[0]["If"] == 1


def test_what_has_none_is_kept_and_named(migrated) -> None:  # type: ignore[no-untyped-def]
    found, (kept,) = migrated(CHIP, f"{IF} {LOOP}")
    assert found["If"] == found["Loop"] == 1
    assert "the number of its rounds, 'n', is computed at run time" in kept
    found, kept = migrated(CHIP, f"{IF} {LOOP}", fix_values="n=2")
    assert found["Sin"] == 2
    assert not found["If"] + found["Loop"]
    assert not kept


def test_what_is_listed_stays(migrated) -> None:  # type: ignore[no-untyped-def]
    table = f'{CHIP}[[operator]]\nnames = ["If"]\n'
    assert migrated(table, IF.replace("v =", "w ="))[0]["If"] == 1


def test_what_is_lacking_goes_also_where_the_rest_stays(migrated) -> None:  # type: ignore[no-untyped-def]
    table = f'{CHIP}[[operator]]\nnames = ["If"]\nlacking = true\n'
    found, kept = migrated(table, f"{IF} {LOOP}")
    assert found["Loop"] == 1
    assert not found["If"]
    assert len(kept) == 1


@pytest.mark.parametrize(("options", "loops"), [({}, 1), ({"fix_values": "n=2"}, 0)])
def test_mnn_gets_a_loop_where_it_cannot_be_unrolled(options: dict[str, str], loops: int) -> None:
    """MNN 3.6 runs vital-model-chars2vec, whose loops have computed numbers of rounds, and fails the node tests of Loop."""
    source = model(header("float[2] x, int64 n", "float[2] w") + f"{{ {LOOP.replace(', v)', ', x)')} }}")
    result = onnx_migrate.migrate(source, runtime="mnn==3.6", simplify=False, **options)  # type: ignore[arg-type]
    assert [node.op_type for node in all_nodes(result.model)].count("Loop") == loops
    codes = {note.code for note in result.report.notes}
    assert (
        codes >= {"control-flow-kept", "operators-not-known"} if loops else "control-flow-kept" not in codes
    )
