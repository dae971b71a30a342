"""What a run does with passes that fail, change numbers, narrow inputs, or break what they ensure."""

from __future__ import annotations

import gc
from typing import ClassVar

import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate import ModelProperty
from onnx_migrate.engine import pipeline_run
from onnx_migrate.engine.obligations import Behind, Chain, Obligation, PassResult
from onnx_migrate.engine.other_numbers import OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult, paused_garbage_collection
from onnx_migrate.errors import IllegalModel, InvalidModel, MigrateError, PassError
from onnx_migrate.files import load
from onnx_migrate.model.model import Model
from onnx_migrate.pipelines import default_pipeline
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts import Verdict
from tests.engine.passes import TEXT, Own
from tests.harness import model


class Scales(Own):
    """Multiplies the weight by `factor`, and adds a note."""

    name = "scales"
    factor: ClassVar[float] = 2.0

    def run(self, model: Model, log: ChangeLog) -> Model:
        for tensor in model.proto.graph.initializer if type(self).factor != 1 else ():
            value = numpy_helper.to_array(tensor) * type(self).factor
            tensor.CopyFrom(numpy_helper.from_array(value.astype("float32"), tensor.name))
        log.note(self.name, "user-pass", "scaled")
        return model


class Meant(ObligedPass, Scales):
    name = "meant"

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        return PassResult(Scales.run(self, model, log), OtherNumbers("meant", "a test"))


class Takes(Obligation):
    """Holds always."""

    def prove(self, prover: object, before: Model, after: Model, behind: Behind) -> Verdict:
        return behind.verdict


class Narrows(ObligedPass, Scales):
    name = "narrows"

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        return PassResult(Scales.run(self, model, log), Takes())


class Optional(Scales):
    name = "optional"
    optional = True


class Fails(Optional):
    name = "fails"

    def run(self, model: Model, log: ChangeLog) -> Model:
        super().run(model, log)
        raise MigrateError("no luck")


def weight(found: Model) -> float:
    return float(numpy_helper.to_array(found.proto.graph.initializer[0])[0])


def run(*passes: Own, log: ChangeLog | None = None, require_optional: bool = False) -> PipelineResult:
    log = ChangeLog() if log is None else log
    return Pipeline(passes).run(load(model(TEXT)), log, require_optional=require_optional)


def test_the_given_model_is_not_changed() -> None:
    given = load(model(TEXT))

    result = Pipeline((Scales(),)).run(given, ChangeLog())

    assert (weight(given), weight(result.model)) == (2.0, 4.0)
    (segment,) = result.segments
    assert segment.original is given
    assert segment.result is result.model


def test_a_pass_that_changes_numbers_ends_a_segment() -> None:
    log = ChangeLog()

    result = run(Meant(), log=log)

    first, last = result.segments
    (link,) = result.links
    assert (link.name, link.leads_to, result.links_to(1)) == ("meant", 1, (link,))
    assert (link.before, link.after) == (first.result, last.original)
    assert [weight(item) for item in (first.original, first.result, last.original, last.result)] == [
        2.0,
        2.0,
        4.0,
        4.0,
    ]
    assert [note.code for note in log.notes] == ["user-pass", "other-numbers"]


def test_one_that_is_allowed_to_and_does_not_ends_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scales, "factor", 1.0)
    assert len(run(Meant()).segments) == 1


def test_the_model_after_a_first_pass_with_an_obligation_begins_the_only_segment() -> None:
    result = run(Narrows(), Scales())
    (segment,), (link,) = result.segments, result.links
    assert (weight(segment.original), weight(segment.result)) == (4.0, 8.0)
    assert (weight(link.before), weight(link.after), link.leads_to) == (2.0, 4.0, 0)


def test_passes_before_one_with_an_obligation_are_in_a_segment_of_their_own() -> None:
    result = run(Scales(), Narrows())
    assert [weight(segment.result) for segment in result.segments] == [4.0, 8.0]
    assert [link.leads_to for link in result.links] == [1]


def test_only_an_obligation_that_says_so_lets_the_interface_change() -> None:
    class Renames(Narrows):
        def apply(self, model: Model, log: ChangeLog) -> PassResult:
            model.proto.graph.output[0].name = "z"
            model.proto.graph.node[-1].output[0] = "z"
            return PassResult(model, Takes())

    with pytest.raises(PassError, match="changed the interface"):
        run(Renames())


def test_other_runtimes_run_the_original_before_numbers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Takes, "baseline", lambda self, earlier, after: after)
    log = ChangeLog()
    run(Narrows(), Meant(), log=log)
    chain = log.fact(Chain, "", "")
    assert chain is not None
    assert weight(chain.baseline(load(model(TEXT)))) == 4.0


def test_a_failing_optional_pass_leaves_the_model_and_the_log_as_they_were() -> None:
    log = ChangeLog()

    result = run(Scales(), Fails(), log=log)

    assert weight(result.model) == 4.0
    assert not result.can_leave_out
    assert [note.code for note in log.notes] == ["user-pass", "left-out"]
    assert "no luck" in log.notes[1].message
    with pytest.raises(MigrateError, match="no luck"):
        run(Fails(), require_optional=True)


def test_an_optional_pass_can_be_left_out_afterwards() -> None:
    log = ChangeLog()

    result = run(Scales(), Optional(), log=log)
    without = result.without_optional("other numbers")

    assert (weight(result.model), weight(without.model)) == (8.0, 4.0)
    assert [note.code for note in log.notes] == ["user-pass", "left-out"]
    assert without.segments[0].original is result.segments[0].original
    assert not run(Optional(), require_optional=True).can_leave_out


def test_only_exact_changes_of_this_package_must_be_bit_identical() -> None:
    source = load(model(TEXT.replace('"":17', '"":11')))

    own = Pipeline((make_pass("migrate_opset", opset=17),)).run(source, ChangeLog())
    foreign = Pipeline((make_pass("migrate_opset", opset=17), Own())).run(source, ChangeLog())

    assert own.segments[0].unsimplified is own.model
    assert foreign.segments[0].unsimplified is None


class Unsorts(Own):
    name = "unsorts"
    ensures = frozenset({ModelProperty.SORTED})

    def run(self, model: Model, log: ChangeLog) -> Model:
        nodes = list(model.proto.graph.node)
        del model.proto.graph.node[:]
        model.proto.graph.node.extend(reversed(nodes))
        return model


class Undeclared(Unsorts):
    name = "undeclared"
    ensures = frozenset()


class Invalid(Own):
    name = "invalid"

    def run(self, model: Model, log: ChangeLog) -> Model:
        model.proto.graph.node[0].op_type = "NeverWas"
        return model


def test_a_pass_that_breaks_what_it_ensures_fails_by_name() -> None:
    with pytest.raises(
        PassError, match="pass 'unsorts' says that it leaves nodes in topological order, but 'b'"
    ) as caught:
        run(Unsorts())
    assert caught.value.code == "missing-property"


@pytest.mark.parametrize(("limit", "seen"), [(10_000, True), (2, False)])
def test_passes_of_this_package_are_checked_on_small_models(
    limit: int, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleanup = make_pass("cleanup")
    monkeypatch.setattr(pipeline_run, "CHECKED_NODES", limit)
    monkeypatch.setattr(type(cleanup), "_rename_duplicates", lambda *arguments: None)
    source = model(TEXT)
    for node in source.graph.node:
        node.name = "same"
    pipeline = Pipeline((cleanup,))

    if seen:
        with pytest.raises(PassError, match="'cleanup' says that it leaves node names that are unique"):
            pipeline.run(load(source), ChangeLog())
    else:
        pipeline.run(load(source), ChangeLog())


def test_what_a_pass_needs_is_looked_for_before_it_runs() -> None:
    with pytest.raises(
        PassError, match=r"'cleanup' needs nodes in topological order(?s:.*)run migrate_opset before"
    ):
        run(Undeclared(), make_pass("cleanup"))

    sorted_again = run(Undeclared(), make_pass("migrate_opset", opset=17), make_pass("cleanup"))
    assert [node.op_type for node in sorted_again.model.proto.graph.node] == ["Mul", "Identity", "Relu"]


def test_an_invalid_node_reaches_neither_an_optional_pass_nor_the_end() -> None:
    for passes in ((Invalid(),), (Invalid(), make_pass("simplify", isolated=False))):
        with pytest.raises(IllegalModel, match="NeverWas"):
            run(*passes)


def test_an_invalid_node_of_the_source_is_not_blamed_on_a_pass_before_an_optional_one() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[4] x, int64[4] i) => (float[4] y) { y = Add(x, i) }'
    )
    passes = (make_pass("migrate_opset", opset=17), make_pass("simplify", isolated=False))
    with pytest.raises(InvalidModel) as caught:
        Pipeline(passes).run(load(onnx.parser.parse_model(text)), ChangeLog())
    assert caught.value.code == "type-mismatch"


def test_an_exception_is_a_pass_error_with_its_cause() -> None:
    class Bug(Own):
        name = "bug"

        def run(self, model: Model, log: ChangeLog) -> Model:
            raise KeyError("gone")

    with pytest.raises(PassError, match="pass 'bug' failed: KeyError") as caught:
        run(Bug())
    assert isinstance(caught.value.__cause__, KeyError)


def test_inputs_and_outputs_stay() -> None:
    class Adds(Own):
        name = "adds"

        def run(self, model: Model, log: ChangeLog) -> Model:
            model.proto.graph.output.append(helper.make_tensor_value_info("a", 1, [2, 3]))
            return model

    with pytest.raises(PassError, match="'adds' changed the interface") as caught:
        run(Adds())
    assert caught.value.code == "interface-changed"


def test_every_pass_leaves_what_it_ensures() -> None:
    """With an unsorted model whose nodes share a name; each pass of the default pipeline is checked after it ran."""
    source = model(TEXT.replace('"":17', '"":11'))
    nodes = list(source.graph.node)
    del source.graph.node[:]
    source.graph.node.extend(reversed(nodes))
    for node in source.graph.node:
        node.name = "same"

    result = default_pipeline(opset=17, dynamic="x:N,3", simplify=False).run(load(source), ChangeLog())

    assert len({node.name for node in result.model.proto.graph.node}) == 3
    onnx.checker.check_model(result.model.proto, full_check=True)


def test_collection_is_off_in_the_block_and_on_after_it_even_after_an_error() -> None:
    assert gc.isenabled()

    with pytest.raises(ValueError, match="inside"), paused_garbage_collection():
        raise ValueError("inside" if not gc.isenabled() else "collected")

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_garbage_collection(), paused_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
