"""An original that a runtime refuses for the shapes it infers is run all the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.verify import Kind, Runnable, verify
from tests.harness import ORT_NEWEST

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
RESIZE = """(float[1,1,13,13] x) => (float[1,1,25,25] y) {{
    [resize] r = Resize<mode = "linear"> (x, "", {given}) [add] y = Add (r, c)
}}"""


def net(text: str, **tensors: object) -> Runnable:
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in tensors.items())
    return Runnable(structure=model.SerializeToString())


SKIP = np.arange(625, dtype=np.float32).reshape(1, 1, 25, 25)


@pytest.mark.parametrize(("skip", "kind"), [(SKIP, Kind.VERIFIED), (SKIP + 1, Kind.DIFFERS)])
def test_a_length_inferred_wrong_is_no_hindrance(skip: object, kind: Kind) -> None:
    scales = net(RESIZE.format(given="s"), s=np.float32([1, 1, 25 / 13, 25 / 13]), c=SKIP)
    sizes = net(RESIZE.format(given='"", s'), s=np.int64([1, 1, 25, 25]), c=skip)
    verdict = verify(scales, sizes, exact=sizes, isolated=False)
    assert verdict.kind is kind
    assert verdict.exact == (kind is Kind.VERIFIED)
    told = ["Incompatible dimensions" in note for note in verdict.notes]
    assert told == ([True] if ORT_NEWEST >= 26 else []), "older runtimes load it as it is"


def test_what_does_not_load_then_either_is_unverified() -> None:
    broken = net(
        "(float[2,4] x) => (float[2,4] y) { [bad] r = Reshape (x, s) y = Relu (r) }", s=np.int64([5])
    )
    verdict = verify(broken, broken, isolated=False)
    assert verdict.kind is Kind.UNVERIFIED
    assert verdict.node == "bad"
