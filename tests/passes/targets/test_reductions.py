"""The reductions that OpenCV computes wrongly, as its wheels computed them."""

from __future__ import annotations

import pytest

from onnx_migrate.compatibility import CompatibilityChecker
from onnx_migrate.model.model import Model
from onnx_migrate.standard.targets import resolve
from tests.harness import model

RELEASES = ("4.7.0.72", "4.8.1.78", "4.9.0.80", "4.12.0.88", "5.0.0.93")


def answers(text: str) -> str:
    """Return a letter for each release: w for a node that is wrong, p for one that perhaps is, and a point for none."""
    checker, found = CompatibilityChecker(Model(model(text))), ""
    for release in RELEASES:
        (target,) = resolve([f"opencv=={release}"])
        said = [item for item in checker.advise(target).objections if "wrong numbers" in item.reason]
        assert all(item.wrong != ("open dims decide" in item.reason) for item in said)
        found += "w" if any(item.wrong for item in said) else "p" if said else "."
    return found


@pytest.mark.parametrize(
    ("shape", "axes", "found"),
    [
        ("1,256,3,3", "2, 3", "....."),
        ("1,512,3,3", "2, 3", ".w..."),  # 512 results of 3 rows are 1,536
        ("1,511,3,3", "2, 3", "....."),
        ("1,43,64,64", "0", "....."),  # a copy
        ("1,2,64,512", "1, 2, 3", "....."),  # one result
        ("2,2,64,6", "2", "....."),
        ("2,3,64,64", "1", ".w..."),
        ("1,n,3,3", "2, 3", ".p..."),
        ("1,1,n,8", "3", ".p..."),
        ("1,512,n,3", "2, 3", ".p..."),
        ("1,512,3,n", "2, 3", ".w..."),
        ("3,4,2,2", "3", ".ww.."),
        ("2,4,2,2", "3", "....."),
        ("n,4,2,2", "3", ".pp.."),
        ("3,4,2,1", "3", "....."),
        ("2,3,4,5", "1, 2, 3", ".www."),
        ("2,2,4,5", "1, 2, 3", "....."),
        ("2,n,4,5", "1, 2, 3", ".ppp."),
        ("4,3,5,6", "0, 1, 3", ".wwww"),
        ("n,3,5,6", "0, 1, 3", ".pppp"),
        ("4,3,1,6", "0, 1, 3", ".www."),
        ("4,3,5,6", "-1, -2", "....."),
    ],
)
def test_what_is_wrong_depends_on_shape_and_axes(shape: str, axes: str, found: str) -> None:
    assert (
        answers(f"11 (float[{shape}] x) => (float[a,b,c,d] y) {{ y = ReduceSum<axes = [{axes}]>(x) }}")
        == found
    )


@pytest.mark.parametrize(
    ("given", "axes", "found"),
    [("", "<int64[2] a = {-3, 3}>", ".w..."), (", int64[2] a", "", ".pppp")],
    ids=["constant", "open"],
)
def test_axes_that_are_an_input_are_read_where_they_are_known(given: str, axes: str, found: str) -> None:
    assert (
        answers(f"18 (float[4,9,80,64] x{given}) => (float[b,c,d,e] y) {axes} {{ y = ReduceMax(x, a) }}")
        == found
    )
