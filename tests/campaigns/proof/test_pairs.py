"""Samples of the campaigns on pairs: the generator makes pairs that differ, and the judge and `verify` see it."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from random import Random

import numpy as np
import onnx
import pytest

from tests.campaigns.proof import pairs
from tests.campaigns.proof.base import written
from tests.campaigns.proof.forked import Died, call
from tests.campaigns.proof.judge import Unloadable, difference, runner
from tests.campaigns.proof.mutations import changes
from tests.campaigns.proof.rewrites import REWRITES
from tests.campaigns.proof.surroundings import SURROUNDINGS, Unfit
from tests.campaigns.proof.witness import search

BASES = {base.name: base for base in written()}


@pytest.mark.parametrize("name", BASES)
def test_written_models_run(name):
    base = BASES[name]
    assert runner(base.model)(base.feed)


def test_pairs_are_the_same_for_a_seed():
    def drawn(seed):
        rows = next(pairs.pairs([BASES["clip_far"], BASES["classes"]], seed))
        return [
            (pair.change, pair.surrounding, pair.other.SerializeToString())
            for row in rows
            for pair in islice(row, 15)
        ]

    assert drawn(0) == drawn(0) != drawn(1)


def test_every_kind_of_change_is_made():
    rng = Random(0)
    kinds = {kind for base in BASES.values() for kind, _, _ in changes(base.model, rng)}
    assert kinds == {
        "attribute",
        "constant",
        "input dropped",
        "input repeated",
        "input swapped",
        "operator dropped",
        "sibling",
    }


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_model_in_a_surrounding_runs(name):
    placed = 0
    for base in (BASES["conv_net"], BASES["classes"], BASES["clip_far"]):
        with suppress(Unfit, Unloadable):  # of some operators there is no kernel for doubles
            model, feed = SURROUNDINGS[name](base.model, base.model, base.feed)
            placed += bool(runner(model)(feed))
    assert placed


@pytest.mark.parametrize(
    ("base", "change", "corner"),
    [
        ("clip_far", "input 2 dropped", "thousands"),
        ("two_thresholds", "one ulp up", "thresholds"),
        ("loop_limit", "plus 1", "integers of the model"),
        ("text_case", "case_change_action b'LOWER' becomes NONE", "recorded"),
        ("random_normal_like", "scale 1.0 becomes 10.0", "random"),
        ("slice_long", "plus 1", "size"),
    ],
)
def test_the_witness_of_a_corner(base, change, corner):
    rng, model, feed = Random(0), BASES[base].model, BASES[base].feed
    if base == "slice_long":
        feed = {"x": np.ones([1, 3], np.float32)}
    found = [search(model, other, feed) for _, label, other in changes(model, rng) if change in label]
    assert any(not isinstance(one, str) and corner in f"{one.corner} size" for one in found), found


def test_a_model_has_no_witness_against_itself_or_a_copy_with_other_names():
    for name in ("masked_attention", "tree_classifier", "dropout", "zip_map"):
        base = BASES[name]
        other = onnx.ModelProto.FromString(base.model.SerializeToString())
        REWRITES["nodes renamed"](other)
        assert isinstance(search(base.model, other, base.feed), str)


@pytest.mark.parametrize(
    ("ours", "theirs", "differ"),
    [
        (np.float32([1, 2]), np.float32([1, 2.0003]), True),
        (np.float32([1, 2]), np.float32([1, 2.0001]), False),
        (np.float16([1, 2]), np.float16([1, 2.02]), True),
        (np.float16([1, 2]), np.float16([1, 2.008]), False),
        (np.float32([1, np.nan]), np.float32([np.nan, 1]), True),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), False),
        (np.float32([1, np.inf]), np.float32([1, -np.inf]), True),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([0.0]), np.float32([2e-6]), True),
        (np.float32([0.0]), np.float32([5e-7]), False),
        (np.int64([1, 2]), np.int64([1, 3]), True),
        (np.array(["a", "b"], object), np.array(["a", "B"], object), True),
        ([np.float32([1])], [np.float32([1]), np.float32([2])], True),
        ([{"a": 1.0}], [{"b": 1.0}], True),
        (None, np.float32([1]), True),
    ],
)
def test_the_judge(ours, theirs, differ):
    assert bool(difference([ours], [theirs])) is differ


@pytest.mark.cold
def test_a_child_that_dies_ends_its_case_alone():
    import signal
    import time

    with pytest.raises(Died):
        call(signal.raise_signal, signal.SIGKILL)
    with pytest.raises(Died, match="in time"):
        call(time.sleep, 60, seconds=0.2)
    with pytest.raises(RuntimeError, match="ValueError"):
        call(int, "x")
    assert call(int, "5") == 5


SAMPLE = [
    ("classes", "ArgMax: replaced by ArgMin"),
    ("integers", "constant three: element 0 plus 1"),
    ("sequence_scaled", "constant three: element 0 times 1.05"),
    ("sequence_construct", "inputs 0 and 1 swapped"),
    ("optional", "constant three: element 0 times 1.05"),
    ("zip_map_text", "classlabels_strings"),
    ("tree_classifier", "classlabels_int64s"),
    ("random_normal_like", "scale 1.0 becomes 10.0"),
    ("dropout_off", "constant t: element 0 inverted"),
    ("branch_of_number", "replaced by Mul"),
    ("scan_sum", "Add: replaced by Mul"),
    ("masked_attention", "axis -1 becomes"),
    ("conv_net", "epsilon"),
    ("quantised_pairs", "constant s: all times 1.05"),
    ("float16_net", "constant f: all times 1.05"),
]
"""Models and changes that ordinary inputs show; `--pairs 1000` tries the others."""


@pytest.mark.parametrize(("name", "change"), SAMPLE)
def test_verify_is_not_fooled_by_a_sample(name, change):
    base = BASES[name]
    changed = [made for made in changes(base.model, Random(0)) if change in made[1]]
    assert changed
    for kind, label, other in changed:
        pair = pairs.Pair(name, base.operator, kind, label, "plain", base.model, other, base.feed)
        assert pairs.trial(pair, exact=True).verdict != "verified", label


@pytest.mark.campaign
def test_verify_is_fooled_by_at_most_one_pair_of_a_hundred(tmp_path, capsys):
    import sys
    from unittest.mock import patch

    with patch.object(sys, "argv", ["pairs", "--pairs", "1000", "--save", str(tmp_path)]):
        assert pairs.main() == 0, capsys.readouterr().out
