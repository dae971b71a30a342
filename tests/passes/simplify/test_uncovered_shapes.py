"""A fold does not uncover a declaration that contradicts the graph."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.pass_registry import builtin_passes, make_pass
from onnx_migrate.errors import PassError
from onnx_migrate.files import load
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.resize import lengths_differ
from tests.harness import model, random_feeds, run, same
from tests.steps import operators

TEXT = """17 (float[2,3] x) => (float[2,3] y) <bool c = {1}> { a = Relu(x) y = If (c) <
    then_branch = t () => (float[6] p) { s = Constant<value = int64[1] {6}>()  p = Reshape(a, s) },
    else_branch = e () => (float[2,3] q) { q = Identity(a) }> }"""


def mend(source: onnx.ModelProto, before: onnx.ModelProto) -> ChangeLog:
    builtin_passes()
    from onnx_migrate.passes.simplify.simplify import mend_declarations

    log = ChangeLog()
    mend_declarations(Model(source), before, log, "simplify")
    return log


def test_a_rank_that_a_folded_branch_had_hidden_is_corrected() -> None:
    source = model(TEXT)
    log = ChangeLog()

    result = make_pass("simplify", isolated=False).run(load(source), log).proto

    assert operators(result) == ["Relu", "Reshape"]
    assert [dim.dim_value for dim in result.graph.output[0].type.tensor_type.shape.dim] == [6]
    assert [(note.pass_name, note.code) for note in log.notes] == [
        ("simplify", "simplified"),
        ("simplify", "output-dims"),
    ]
    same(run(source, random_feeds(source)), run(result, random_feeds(source)), "simplified")


def test_right_declarations_stay() -> None:
    source = model("17 (float[N] x) => (float[N] y) { y = Relu(x) }")
    before = source.SerializeToString()

    assert mend(source, source).notes == []
    assert source.SerializeToString() == before


def test_a_contradiction_that_is_new_is_an_error() -> None:
    """Nothing is corrected where onnx infers another length of a Resize than runtimes compute."""
    head = "17 (float[1,1,1,SIZE] x) => (float[1,1,N] y)"
    size, scale = next(
        (size, scale)
        for scale in np.arange(0.1, 3, 0.1, np.float32)
        for size in range(2, 40)
        if lengths_differ(size, scale)
    )
    scales = f"<float[4] s = {{1., 1., 1., {scale}}}>"
    wrong = model(f"{head.replace('SIZE', str(size))} {scales} {{ y = Resize(x, , s) }}")
    right = model(
        f"{head.replace('SIZE', str(size))} {{ f = Constant<value_ints = [1, 1, -1]>()  y = Reshape(x, f) }}"
    )

    with pytest.raises(PassError, match="contradicts itself") as caught:
        mend(wrong, right)

    assert caught.value.code == "not-simplified"
    assert mend(wrong, wrong).notes == []
