"""A model whose header alone is at fault is mended without a run, a weight that is read, or the simplifier."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rich.console import Console

from onnx_migrate import files, migrate, process
from onnx_migrate.migration import Migration
from onnx_migrate.model.weights import Weights
from onnx_migrate.report.text import print_report
from onnx_migrate.rewrite.annotations import drop_unused_imports
from onnx_migrate.verdicts import Kind
from tests.harness import model
from tests.support.paths import FIXTURES
from tests.support.small_model import HERE

TEXT = """<ir_version: 10, opset_import: ["": 15, "ai.onnx.ml": 5, "com.ms.internal.nhwc": 1]>
g (float[2,3] x) => (float[2,3] y) <float[1] w = {2.}, float[1] v = {3.}> {
  k = Mul (w, v) a = Mul (x, k) y = Relu (a)
}"""
"""What onnxsim would fold."""


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any child process, which simplifies, loads and runs models, fail the test."""

    def refuse(*arguments: object, **_: object) -> None:
        raise AssertionError(f"{arguments[0]} was run")

    monkeypatch.setattr(process, "run", refuse)


def mended(source: Any = None, **options: Any) -> Migration:
    return migrate(model(TEXT) if source is None else source, **{"opset": "13+", "ir_version": 9} | options)


def printed(migration: Migration) -> list[str]:
    stream = io.StringIO()
    print_report(migration.report, Console(file=stream, width=300))
    return stream.getvalue().splitlines()


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("opset", ["13+", "15", 15, None])
def test_the_header_alone_changes(opset: Any) -> None:
    result = mended(opset=opset)

    expected = model(TEXT)
    expected.ir_version = 9
    del expected.opset_import[1:]
    assert result.model == expected
    assert result.report.header_only
    verification = result.report.verification
    assert verification is not None
    assert (verification.kind, verification.evaluator) == (Kind.VERIFIED, "a comparison of the graphs")
    assert printed(result) == [
        "<ModelProto>: IR 10 → 9, imports of ai.onnx.ml, com.ms.internal.nhwc removed; the graph is unchanged"
    ]


@pytest.mark.usefixtures("nothing_runs")
def test_annotations_go_with_the_ir_version() -> None:
    source = model(TEXT)
    source.graph.node[0].metadata_props.add(key="module", value="net.0")
    result = mended(source)

    assert not result.model.graph.node[0].metadata_props
    (line,) = printed(result)
    assert "annotations removed; the graph is unchanged" in line


@pytest.mark.usefixtures("nothing_runs")
def test_a_fixture_takes_this_way() -> None:
    source = onnx.load(FIXTURES / "classifier_opset12.onnx")
    source.ir_version = 10
    assert mended(source, opset="12+").report.header_only


def test_no_large_weight_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = model(TEXT)
    values = np.arange(1 << 16, dtype=np.float32)
    source.graph.initializer.append(onnx.numpy_helper.from_array(values, "large"))
    source.graph.output.append(onnx.helper.make_tensor_value_info("large", 1, [1 << 16]))
    onnx.save(source, tmp_path / "source.onnx")
    plain = Weights.array

    def small_only(weights: Weights, tensor: onnx.TensorProto) -> Any:
        assert tensor.data_location != onnx.TensorProto.EXTERNAL, f"{tensor.name} was read"
        return plain(weights, tensor)

    monkeypatch.setattr(Weights, "array", small_only)
    monkeypatch.setattr(files, "inline", lambda *_: pytest.fail("all weights were read"))
    mended(tmp_path / "source.onnx").save(tmp_path / "mended.onnx")
    monkeypatch.undo()

    result = onnx.load(tmp_path / "mended.onnx")
    assert result.ir_version == 9
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(result.graph.initializer[-1]), values)


def another_node(proto: onnx.ModelProto) -> None:
    proto.graph.node[-1].op_type = "Abs"


def another_weight(proto: onnx.ModelProto) -> None:
    proto.graph.initializer[0].float_data[0] += 1e-6


def same_meaning(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].input[:] = reversed(proto.graph.node[1].input)


WITH_DEAD_NODE = TEXT.replace("y = Relu (a)", "d = Relu (a) y = Relu (a)")  # one that nothing reads
WITH_FUNCTION = """<ir_version: 10, opset_import: ["": 14, "own": 1]>
g (float[2,3] x) => (float[2,3] y) { y = own.F (x) }
<domain: "own", opset_import: ["": 14]> F (x) => (y) { y = Relu (x) }"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (WITH_DEAD_NODE, {}),
        (WITH_FUNCTION, {"ir_version": 7, "opset": None}),
        (TEXT, {"ir_version": 3, "opset": 8}),
        (TEXT, {"opset": 16}),
        (TEXT, {"opset": 14, "ir_version": 8}),
        (TEXT, {"dynamic_batch": True}),
        (TEXT, {"passes": [same_meaning]}),
        (TEXT, {"simplify": "require"}),
        (TEXT, {"ir_version": None}),
    ],
    ids=["dead node", "function", "listed", "newer", "older", "dynamic", "pass", "simplified", "default"],
)
def test_a_graph_that_changes_is_run(text: str, options: dict[str, Any]) -> None:
    result = mended(model(text), **options, **HERE)

    assert not result.report.header_only
    assert result.report.verification is not None
    assert result.report.verification.evaluator.startswith("onnxruntime")
    assert len(printed(result)) > 1


@pytest.mark.parametrize("change", [another_node, another_weight], ids=["node", "weight"])
def test_a_pass_that_changes_numbers_is_caught_here_too(change: Any) -> None:
    from onnx_migrate import VerificationFailed

    with pytest.raises(VerificationFailed):
        mended(passes=[change], atol=0.0, rtol=0.0, **HERE)


def test_a_model_that_changes_is_simplified_and_one_that_does_not_is_not() -> None:
    assert len(mended().model.graph.node) == 3
    assert len(mended(model(WITH_DEAD_NODE), **HERE).model.graph.node) == 2
    assert len(mended(simplify="require", **HERE).model.graph.node) == 2


def test_a_higher_ir_version_is_loaded() -> None:
    source = model(TEXT.replace("ir_version: 10", "ir_version: 8").replace('"ai.onnx.ml": 5, ', ""))
    result = mended(source, ir_version=10, **HERE)

    assert result.report.header_only
    assert result.report.verification is not None
    notes = result.report.verification.notes
    assert list(notes) == [
        "the graph and the weights are those of the original, so the result was loaded and not run"
    ]


def test_imports_that_something_uses_stay() -> None:
    source = model(WITH_FUNCTION)
    source.opset_import.add(domain="third", version=1)
    assert drop_unused_imports(source) == ["third"]
    assert [entry.domain for entry in source.opset_import] == ["", "own"]
