"""Compares any two models as a migration compares its result with the original."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import onnx

from onnx_migrate import files
from onnx_migrate.declared import formerly
from onnx_migrate.engine.validity import accepted, check_nodes
from onnx_migrate.errors import InvalidModel, require_onnxruntime
from onnx_migrate.facts.narrow_floats import is_narrow, narrowest
from onnx_migrate.messages import first_of
from onnx_migrate.model.interface import (
    Interface,
    Port,
    listed_initializers,
    lists_some_initializers,
    port_named,
)
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.model.names import Names
from onnx_migrate.process import CancelToken, Ending, Limits, Raised, Returned, TimedOut, stoppable
from onnx_migrate.process.progress import OWN_STAGES, ProgressListener, Reporter
from onnx_migrate.safe_open.transfers import transfers_within
from onnx_migrate.verdicts import Kind, RuntimeProof, Verdict, proofs_text
from onnx_migrate.verify import InputData, Runnable, Settings
from onnx_migrate.verify.divergence.first import DIVERGENCE, Divergence
from onnx_migrate.verify.equivalence.counterparts import rename_values
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.kernel import decide
from onnx_migrate.verify.other_runtimes.places import asked_for
from onnx_migrate.verify.other_runtimes.proof import prove_models
from onnx_migrate.verify.precision.cast_run import CAST_RUN, CastRun
from onnx_migrate.verify.precision.closeness import CLOSENESS, Closeness
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Libraries, inputs_of, interruption, libraries_of
from onnx_migrate.verify.tolerances import OutputLimits, require_outputs, tolerance_of
from onnx_migrate.verify.weight_data import other_weights

__all__ = ["compare"]

T = TypeVar("T")

_PRECISIONS = ("float", "float16", "bfloat16")

_NARROW: dict[int, str] = {onnx.TensorProto.FLOAT16: "float16", onnx.TensorProto.BFLOAT16: "bfloat16"}

_DRAWS = 2
"""Number of random inputs for models of different precision."""

_SHOWN = 5
"""Maximum number of weights that a note names."""


@formerly(prove_in="run_in")
def compare(
    original: files.Source,
    other: files.Source,
    *,
    exact: bool = False,
    cast: bool = False,
    names: Mapping[str, str] | None = None,
    input_data: InputData | None = None,
    max_inputs: int = 1000,
    mean: str | float | Sequence[float] | None = None,
    std: str | float | Sequence[float] | None = None,
    layout: Literal["nchw", "nhwc"] | None = None,
    rtol: OutputLimits = None,
    atol: OutputLimits = None,
    seed: int = 0,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    ort_library: Libraries = (),
    run_in: str | Sequence[str] = (),
    all_values: bool = False,
    progress: ProgressListener | None = None,
    cancel: CancelToken | None = None,
) -> Verdict:
    """Run two models on the same inputs and return whether they compute the same.

    Names, types and order of inputs and outputs must be equal too. With `exact`, ONNX Runtime runs both models without
    optimisations, and outputs must be bit-identical. With `cast` their floating-point types may differ. Then a simulation
    rounds every value of a narrow type after each node of the original. `other` may have the error that this rounding causes
    (docs/precision.md).

    `names` maps names of inputs and outputs of `original` to those of `other`. If the numbers differ,
    `Verdict.first_difference` is the first different value, with its nodes. `run_in` names further runtimes to run both models
    in. The models differ if one of these runtimes does not run `other` correctly. `all_values` adds `Verdict.values`: the
    distance of each inner value from its counterpart in `other`, on one input. The other arguments are those of `migrate`.

    Raises LoadError for an unreadable model and InvalidModel for an invalid one. Raises UsageError if `input_data` does not fit
    the models, or if ONNX Runtime is not installed. `compare` checks nodes against their schemas only if ONNX Runtime cannot
    load the model. Any other failure of running them is in the verdict: verified, differs, or unverified with a reason.
    """
    # The error comes before the models are loaded, which may take long.
    require_onnxruntime("a comparison", "both models are run in it")
    tolerance = tolerance_of(rtol, atol)
    own_inputs = inputs_of(input_data, mean=mean, std=std, layout=layout, most=max_inputs)
    with stoppable(cancel, timeout), transfers_within(timeout):
        runtimes, libraries = asked_for(run_in), libraries_of(ort_library)
        first_model, second_model = _valid(original), _valid(other)
        models = first_model, _with_names(second_model, names or {}, first_model)
        segment, result = Segment(*models, models[1], exact), models[1]
        interfaces = [Interface.of(model.proto) for model in models]
        if cast:
            interfaces = [_without_precision(interface) for interface in interfaces]
        # Models with other inputs cannot be run on the same feeds.
        difference = interfaces[0].difference(interfaces[1])
        advice = () if cast else tuple(_on_precision(*models))
        if difference:
            return Verdict(Kind.DIFFERS, f"{difference}{_as_mapped(*interfaces)}", notes=advice)
        reporter = Reporter(
            progress, {name: OWN_STAGES[name] for name in ("verify", *(["prove"] if runtimes else []))}
        )
        reporter.stage("verify")
        # A misspelled name of an output would otherwise leave it without its limit.
        require_outputs(tolerance, (value.name for value in first_model.proto.graph.output))
        settings = Settings(
            own_inputs,
            tolerance,
            seed,
            Limits.of(timeout, memory_limit),
            isolated,
            reporter.within,
            libraries=libraries,
        )
        if own_inputs is not None:
            from onnx_migrate.verify.own_inputs import bind_inputs

            bind_inputs(own_inputs, first_model, settings)
        with Prover(settings) as prover:
            if cast and any(is_narrow(model.proto) for model in models):
                verdict = _closeness(prover, segment.original, result, settings)
                return _with_inner_values(verdict, prover, segment, {}, all_values=all_values)
            verdict = _verdict(prover, segment, exact=exact)
            verdict = _with_inner_values(verdict, prover, segment, names or {}, all_values=all_values)
        # Equal outputs say nothing about inputs that one model refuses.
        narrower = list(_narrower(first_model.proto, result.proto))
        if verdict.verified and narrower:
            agree = "on the inputs that both models take, the outputs agree"
            verdict = replace(verdict, kind=Kind.DIFFERS, reason="; ".join([*narrower, agree]))
        if verdict.kind is Kind.VERIFIED:
            # Weights that no output shows may still be the wrong ones.
            verdict = replace(verdict, notes=(*verdict.notes, *_other_weights(segment)))
        if verdict.kind is Kind.DIFFERS:
            verdict = replace(verdict, notes=(*verdict.notes, *advice))
        if not runtimes:
            return verdict
        reporter.stage("prove")
        return _with_proofs(verdict, prove_models(runtimes, segment.original, result, settings))


def _verdict(prover: Prover, segment: Segment[Model], *, exact: bool) -> Verdict:
    """Return the verdict on two models of one interface. Raises InvalidModel."""
    verdict = prover.verify(segment, strict=exact, by_value=True)
    if not _ran_in_onnxruntime(verdict):
        for model in (segment.original, segment.result):
            if not prover.loads(model):
                _checked(model, check_nodes)
    return verdict


def _with_inner_values(
    verdict: Verdict,
    prover: Prover,
    segment: Segment[Model],
    names: Mapping[str, str],
    *,
    all_values: bool,
) -> Verdict:
    """Return a verdict with the first difference of outputs that differ, and with `all_values` the distances of all values.

    If these are unknown, notes give the reason.
    """
    differs = verdict.kind is Kind.DIFFERS and bool(verdict.comparisons)
    if not differs and not all_values:
        return verdict
    runnables = map(prover.runnable, (segment.original, segment.result))
    # The runs may crash, so they are made in a process of their own.
    ending = prover.settings.alone.call(DIVERGENCE, *runnables, prover.settings.for_child, differs)
    divergence = ending.value if isinstance(ending, Returned) else Divergence(None, ())
    unknown = "" if isinstance(ending, Returned) else _interruption(ending)
    first, notes = divergence.first, list(verdict.notes)
    if first is not None:
        first = replace(first, value=names.get(first.value, first.value))
    elif differs:
        reason = unknown or "on the input that was recorded, the outputs agree"
        notes.append(f"the first node that differs is not known: {reason}")
    if all_values and unknown:
        notes.append(f"inner values were not compared: {unknown}")
    values = divergence.values if all_values else ()
    return replace(verdict, first_difference=first, values=values, notes=tuple(notes))


def _interruption(ending: Ending) -> str:
    """Return why the inner values of two models could not be recorded."""
    if isinstance(ending, Raised) and ending.kind == EvaluationError.__name__:
        return f"one of the models does not run: {ending.message}"
    return interruption(ending)


def _narrower(original: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[str]:
    """Yield how a model takes fewer inputs than the original: of one size or rank alone, or without an initializer's override."""
    for ours, theirs in zip(Interface.of(original).inputs, Interface.of(other).inputs, strict=False):
        if ours.shape is None and theirs.shape is not None:
            # A model without a declared rank accepts inputs of any rank.
            yield f"input {ours.name!r} takes any number of dims in the original, and {len(theirs.shape)} in the second model"
        for axis, (size, fixed) in enumerate(zip(ours.shape or (), theirs.shape or (), strict=False)):
            if isinstance(fixed, int) and fixed >= 0 and not (isinstance(size, int) and size >= 0):
                symbol = f" ({size})" if isinstance(size, str) else ""
                yield (
                    f"input {ours.name!r} takes any size of dim {axis}{symbol} in the original, and only {fixed} in the second"
                    " model"
                )
    if lists_some_initializers(original):
        input_names = {value.name for value in other.graph.input}
        for name in listed_initializers(original.graph):
            if name not in input_names:
                yield f"callers of the original can override the initializer {name!r}, and those of the second model cannot"


def _with_proofs(verdict: Verdict, proofs: tuple[RuntimeProof, ...]) -> Verdict:
    """Return a verdict with the results of running both models in other runtimes."""
    failing = [proof for proof in proofs if not proof.passed]
    decided = [proof for proof in failing if proof.outcome != "unknown"]
    if decided and verdict.kind is not Kind.DIFFERS:
        verdict = replace(verdict, kind=Kind.DIFFERS, reason=proofs_text(decided))
    elif failing and verdict.kind is Kind.VERIFIED:
        verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=proofs_text(failing))
    return replace(verdict, proved_in=proofs)


def _with_names(other: Model, names: Mapping[str, str], original: Model) -> Model:
    """Return a model with the original's names of inputs and outputs. Raises UsageError."""
    if not names:
        return other
    interfaces = map(Interface.of, (original.proto, other.proto))
    ports = [{port.name: port for port in (*it.inputs, *it.outputs)} for it in interfaces]
    for ours, theirs in names.items():
        port_named(ours, ports[0])
        port_named(theirs, ports[1])
    fresh = Names(other.proto)
    renamed = {theirs: ours for ours, theirs in names.items()}
    for ours in names:
        if (
            ours not in renamed and fresh.fresh(ours) != ours
        ):  # another value of the second model is called so
            renamed[ours] = fresh.fresh(f"{ours}_of_the_second")
    result = other.copy()
    if other.as_given is not None:
        result.as_given = onnx.ModelProto.FromString(other.as_given.SerializeToString())
    for proto in (result.proto, result.as_given):
        if proto is not None:
            rename_values(proto.graph, renamed)
    return result


def _as_mapped(one: Interface, other: Interface) -> str:
    """Return the --match-name options for models that differ only in names of inputs and outputs, else ""."""
    if [len(one.inputs), len(one.outputs)] != [len(other.inputs), len(other.outputs)]:
        return ""
    pairs = list(zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=True))
    if any(ours.kind != theirs.kind for ours, theirs in pairs):
        return ""
    options = " ".join(
        f"--match-name {ours.name}={theirs.name}" for ours, theirs in pairs if ours.name != theirs.name
    )
    return f"; {options} compares them in their order" if options else ""


def _on_precision(one: Model, other: Model) -> Iterator[str]:
    """Yield advice on --cast if only one of two models computes in float16 or bfloat16."""
    narrow = [model for model in (one, other) if is_narrow(model.proto)]
    if len(narrow) == 1:
        yield f"only one of the models computes in {_NARROW[narrowest(narrow[0].proto)]}: --cast allows the error of its rounding"


def _without_precision(interface: Interface) -> Interface:
    """Return an interface in which all floating-point types of a precision are the same type."""

    def alike(ports: tuple[Port, ...]) -> tuple[Port, ...]:
        return tuple(replace(port, kind="float") if port.kind in _PRECISIONS else port for port in ports)

    return Interface(alike(interface.inputs), alike(interface.outputs))


def _closeness(prover: Prover, original: Model, other: Model, settings: Settings) -> Verdict:
    """Return whether a model's error is within the limit of its precision, on two random inputs or the user's inputs."""
    begin = time.perf_counter()
    runnables = prover.runnable(original), prover.runnable(other)
    kind = narrowest(other.proto)
    ending = settings.call(CLOSENESS, *runnables, kind, settings.for_child, _DRAWS)
    # The run may have reached a limit or crashed.
    if not isinstance(ending, Returned):
        late = isinstance(ending, TimedOut)
        return Verdict(Kind.UNVERIFIED, interruption(ending), comparable=False, timed_out=late)
    closeness: Closeness = ending.value
    if closeness.reason:
        return Verdict(Kind.UNVERIFIED, closeness.reason, comparable=False)
    notes = () if settings.feeds is None else settings.feeds.notes
    verdict = Verdict(
        Kind.VERIFIED if closeness.agrees else Kind.DIFFERS,
        "" if closeness.agrees else closeness.problem,
        evaluator="onnxruntime CPU, every value rounded to its type",
        rounded=closeness.outputs,
        own_rounding=True,
        given_tolerance=True,
        notes=notes,
    )
    verdict = _as_applications_run(verdict, runnables, closeness, settings)
    return replace(verdict, seconds=time.perf_counter() - begin)


def _as_applications_run(
    verdict: Verdict, models: tuple[Runnable, Runnable], found: Closeness, settings: Settings
) -> Verdict:
    """Return a verdict with the metrics of the outputs; a limit of the user's for an output replaces that of its type."""
    ending = settings.call(CAST_RUN, *models, settings.for_child)
    run: CastRun = ending.value if isinstance(ending, Returned) else CastRun(reason=interruption(ending))
    if run.reason:
        note = f"the models were not run without rounding every value: {run.reason}"
        verdict = replace(verdict, notes=(*verdict.notes, note))
        unknown = settings.tolerance.is_given and verdict.verified
        return replace(verdict, kind=Kind.UNVERIFIED, reason=note) if unknown else verdict
    rounded = tuple(output for output in found.outputs if output.name not in run.limited)
    verdict = replace(
        verdict, metrics=run.metrics, comparisons=run.comparisons, rounded=rounded, feeds=run.feeds
    )
    kind, reason = decide(run.comparisons, {})
    if kind is Kind.DIFFERS:
        return replace(verdict, kind=kind, reason=reason)
    if found.agrees or found.refusal or not all(output.agrees for output in rounded):
        return verdict
    if rounded:  # the run with rounded values ended at the first output beyond its limit
        reason = "outputs without a limit of yours were not compared on all inputs; give limits for all outputs, or for none"
        return replace(verdict, kind=Kind.UNVERIFIED, reason=reason)
    return replace(verdict, kind=Kind.VERIFIED, reason="")


def _other_weights(segment: Segment[Model]) -> Iterator[str]:
    """Yield a note on weights that differ though the outputs agree."""
    names = [name for name, _ in other_weights(segment.original, segment.result)]
    if names:
        shown_names = first_of([*map(repr, names)], _SHOWN)
        yield f"weights of the same name have other data in the second model, which no output shows: {shown_names}"


def _ran_in_onnxruntime(verdict: Verdict) -> bool:
    """Whether ONNX Runtime ran both models: then faults of nodes by their schemas matter little."""
    return bool(verdict.comparisons) and verdict.load is None and "onnx.reference" not in verdict.evaluator


def _valid(source: files.Source) -> Model:
    model = files.load(source)
    return _checked(model, accepted)


def _checked(model: Model, check: Callable[[Model], T]) -> T:
    """Return what a check returns; raise InvalidModel, whose text begins with the model's name, for one that is not valid."""
    try:
        return check(model)
    except InvalidModel as error:
        location = f"{error.where}: " if error.where else ""
        raise InvalidModel(
            f"{model.name}: {location}{error.reason}", code=error.code, hint=error.advice
        ) from error
