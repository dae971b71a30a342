"""The tables, codes, figures and the snippet of docs/resize.md are true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate.report.codes import CODES
from tests.harness import model, run, same
from tests.resize.grid import NEAREST
from tests.resize.oracle import Spec, index_map
from tests.resize.tables import FORMS, PAGE, TABLES, filled, source
from tests.steps import lift

TEXT = PAGE.read_text(encoding="utf-8")


def test_tables_are_as_generated() -> None:
    assert set(re.findall(r"<!-- table: (\w+) -->", TEXT)) == set(TABLES)
    assert filled(TEXT) == TEXT


@pytest.mark.parametrize(
    "call", [(opset, call) for _, opset, call in FORMS], ids=[name for name, _, _ in FORMS]
)
def test_rewrites_compute_the_same(call: tuple[int, str]) -> None:
    old = source(*call)
    x = np.random.default_rng(0).standard_normal((9, 10)).astype(np.float32)

    result, _ = lift(old, 13)

    for given in ([0.5, 1.05], [2, 2], [0.5, 0.5]) if "given" in call[1] else ([],):
        feeds = {"x": x, **({"given": np.array(given, np.float32)} if given else {})}
        same(run(old, feeds), run(result, feeds), call[1])


def test_codes_exist() -> None:
    named = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", TEXT)

    assert len(named) > 8
    assert set(named) - {"onnx-migrate"} <= set(CODES)


def test_no_mode_of_opset_13_equals_tf_half_pixel_for_nn_rounded_up() -> None:
    wanted = index_map(Spec(11, coordinates="tf_half_pixel_for_nn", nearest="ceil"), 2, 4, 8).tolist()

    for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for nearest in NEAREST:
            assert index_map(Spec(13, coordinates=coordinates, nearest=nearest), 2, 4, 8).tolist() != wanted


def test_lengths_differ_as_often_as_the_page_says() -> None:
    pairs = [(n, k) for n in range(1, 300) for k in range(1, 300)]
    scales = [(n, np.float32(k) / np.float32(n)) for n, k in pairs]
    differ = [int(float(s) * n) != int(np.float32(n) * s) for n, s in scales]

    assert 0.35 < sum(differ) / len(pairs) < 0.45


def test_the_snippet_shows_index_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = model(
        "10 (float[1,1,10,10] x) => (float[a,b,c,d] y) <float[4] s = {1., 1., 1., 0.6}> { y = Resize(x, s) }"
    )
    onnx.save(before, tmp_path / "before.onnx")
    onnx.save(lift(before, 13)[0], tmp_path / "after.onnx")
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None

    exec(code[1], {})

    assert capsys.readouterr().out.splitlines() == ["[0. 2. 4. 5. 7. 9.]"] * 2
