"""Names of local variables and comments: the shares may only become better."""

from __future__ import annotations

from tools.names import measure, sources

GENERIC_NAMES, COMMENTS = 0.02, 0.02
"""The most local names that are generic, and the least lines that are comments, as shares."""


def test_few_names_are_generic_and_comments_say_why() -> None:
    whole = measure(sources())

    assert whole.generic_share <= GENERIC_NAMES
    assert whole.comment_share >= COMMENTS
