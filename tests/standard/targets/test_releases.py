"""How numbers of releases compare, and which release is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import onnxruntime
import pytest

from onnx_migrate.standard.targets import releases
from onnx_migrate.standard.targets.releases import installed, is_later, is_number, key, plain


def test_releases_compare_by_their_numbers() -> None:
    ascending = ["", "1.6", "1.10", "1.10.1", "2", "2023.1"]

    assert sorted(ascending, key=key) == ascending
    assert key("10") == key("10.0") < key("10.0.1")


@pytest.mark.parametrize(
    ("release", "newest", "later"),
    [
        ("1.31.1", "1.31", False), ("1.32", "1.31", True), ("2", "1.31", True), ("1.31", "1.31.1", False),
        ("5.0", "5.0", False), ("5", "5.0", False), ("5.1", "5", False), ("6", "5", True),
    ],
)  # fmt: skip
def test_a_release_is_later_by_as_many_numbers_as_the_newest_has(
    release: str, newest: str, later: bool
) -> None:
    assert is_later(release, newest) == later


def test_names_and_numbers() -> None:
    assert plain("ONNX Runtime-Web") == plain("onnxruntime_web") == "onnxruntimeweb"
    assert [text for text in ("1", "1.2", "", "1.", "v1", "22H2") if is_number(text)] == ["1", "1.2"]


def test_the_first_distribution_that_is_installed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed(["no-such-distribution", "onnxruntime"]) == onnxruntime.__version__.partition("+")[0]

    def version(package: str) -> str:
        if package == "b":
            return "4.8.1rc1"
        raise PackageNotFoundError(package)

    monkeypatch.setattr(releases, "version", version)
    assert installed(["a", "b"]) == "4.8.1"
    assert installed(["a"]) is None
