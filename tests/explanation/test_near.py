from __future__ import annotations

from onnx_migrate.explanation.near import names, near_error_texts, near_names, operators_in


def test_names() -> None:
    assert near_names("reszie") == ("Resize",)
    assert near_names("") == ()
    assert near_names("far too many words for any name") == ()


def test_error_texts_by_the_words_they_share() -> None:
    near = near_error_texts("some adapter lookup failed: no adapter found from this version for that")
    assert near[0].name.startswith("no-adapter")
    assert near_error_texts("1 2 3") == ()


def test_an_error_text_by_a_part_that_was_cut_within_a_word() -> None:
    assert near_error_texts("ould not find an implementa")[0].name == "could-not-find-an-implementation-for"
    assert near_error_texts("implement") == ()


def test_operators_by_their_spelling() -> None:
    assert operators_in(
        "failed at /model/GridSample_3 (GridSample) and Gelu; where it is, Shape not known"
    ) == ("GridSample", "Gelu")


def test_every_kind_of_name() -> None:
    known = names()
    assert {
        "needs-rank",
        "softmax-13",
        "softmax-13-down",
        "Resize",
        "tensorrt",
        "unsupported-model-ir-version",
    } <= set(known)
    assert list(known) == sorted(set(known))
