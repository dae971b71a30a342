"""The check of the project's English finds sentences that are hard to read, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.prose.__main__ import TEXTS, Share, ceilings, judged, lowered, shares
from tools.prose.rules import findings
from tools.prose.sentences import Block, Sentence, sentences
from tools.prose.texts import blocks_of, kinds_of, markdown


def rules(text: str, *, fragment: bool = False) -> set[str]:
    return {finding.rule for finding in findings(Sentence(1, text, fragment))}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("long", "The model " + "and the node " * 8 + "end."),
        ("what", "What needs it says so."),
        ("what", "Where that changes a result, the model stays."),
        ("what", "It runs, but whatever fails is an error."),
        ("of-which", "A model, of which two nodes change, is written."),
        ("semicolons", "It runs; it ends; it stops."),
        ("word", "The model is mended."),
        ("word", "The opset comes down to nine."),
        ("passive", "The model is refused."),
        ("passive", "A node is not also named here."),
        ("verb", "Only errors and warnings."),
    ],
)
def test_a_sentence_that_is_hard_to_read_has_a_finding(rule: str, text: str) -> None:
    assert rule in rules(text)


@pytest.mark.parametrize(
    "text",
    [
        "What does this error message mean?",
        "onnx-migrate refuses the model.",
        "The model is refused by TensorRT.",
        "Outputs differ by no more than rounding.",
        "`--quiet` prints only errors.",
        "Commands that need ONNX Runtime explain how to install it.",
    ],
)
def test_a_plain_sentence_has_none(text: str) -> None:
    assert rules(text) == set()


def test_a_fragment_needs_no_verb() -> None:
    assert rules("one line per model", fragment=True) == set()


def test_sentences_keep_their_lines() -> None:
    source = (
        "# Title\n\nThe first sentence is here. The\nsecond one ends here.\n\n"
        "- An item is a text.\n\n```sh\nwhat is code\n```\n"
    )

    assert [(sentence.line, sentence.text) for sentence in sentences(markdown(source))] == [
        (3, "The first sentence is here."),
        (3, "The second one ends here."),
        (6, "An item is a text."),
    ]


def test_markup_is_no_text() -> None:
    (sentence,) = sentences([Block(1, "The **[guide](a_long/path.md)** shows `a; b; c` and <b>more</b>.")])

    assert sentence.text == "The guide shows X and more ."


def test_the_kinds_of_text_of_a_module(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""A module has a docstring."""\n'
        "LIMIT = 3\n"
        '"""The limit counts the nodes."""\n'
        "# This comment says why it is so.\n"
        "def f(x):\n"
        '    """Return the name of a node."""\n'
        '    raise ValueError(f"the model {x} has too many nodes")\n'
        '@click.command()\n@click.option("-q", help="Print only the errors and warnings.")\n'
        'def quiet():\n    """Print as little as possible now."""\n',
        encoding="utf-8",
    )

    def texts(kind: str) -> list[tuple[int, str]]:
        return [(item.line, item.text) for item in sentences(blocks_of(path, kind))]

    assert sorted(texts("docstrings")) == [
        (1, "A module has a docstring."),
        (3, "The limit counts the nodes."),
        (6, "Return the name of a node."),
    ]
    assert texts("comments") == [(4, "This comment says why it is so.")]
    assert texts("messages") == [(7, "the model X has too many nodes")]
    assert sorted(texts("help")) == [
        (9, "Print only the errors and warnings."),
        (11, "Print as little as possible now."),
    ]


def test_each_kind_has_a_ceiling_and_the_readme_has_no_finding() -> None:
    found = list(judged([ROOT / "README.md"]))

    assert shares(found)["readme"].faulty == 0
    assert ceilings()["readme"] == 0
    assert set(ceilings()) >= {kind for name in TEXTS for kind in kinds_of(name)}


def test_a_ceiling_is_lowered_and_never_raised() -> None:
    text = '[percent]\nreadme = 0.0\ndocs = 5.0\n"error texts" = 2.0\n'
    found = {"readme": Share(1, 10), "docs": Share(1, 30), "error texts": Share(3, 10)}

    assert lowered(text, found) == '[percent]\nreadme = 0.0\ndocs = 3.4\n"error texts" = 2.0\n'
