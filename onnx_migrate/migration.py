"""The library call: one model from load to verified result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import onnx

from onnx_migrate import files
from onnx_migrate.engine.pass_infra import Pass, builtin_passes, installed_passes
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import CannotMigrate, MigrateError, UsageError, VerificationFailed
from onnx_migrate.isolate import Limits
from onnx_migrate.model.dim_requests import DynamicAxes, FixedDims
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.report import ModelSummary, PartialReport, Report
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.spec.schema import is_onnx, newest_opset
from onnx_migrate.verify.prover import Proof, Prover

__all__ = ["Migration", "convert_version", "default_pipeline", "migrate"]

ResizeForm = Literal["auto", "scales", "sizes"]
Opset = int | str | Mapping[str, int | str]
"""An ai.onnx opset, "17+" for 17 or the model's own where that is newer, or "latest"; or one of these for each domain:
{"ai.onnx": 17, "ai.onnx.ml": 3} or "17,ai.onnx.ml=3"."""


@dataclass(frozen=True)
class Migration:
    """A model that reached its target, and the report of how."""

    report: Report
    original: Model = field(repr=False)
    """The model as it was read, unchanged."""
    _model: Model = field(repr=False)

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The result with all its weights, read when first asked for."""
        return files.inline(self._model)

    @property
    def structure(self) -> onnx.ModelProto:
        """The result with its large weights left where they are, marked as external data; not to be changed."""
        return self._model.proto

    def same_as_original(self) -> bool:
        """Return whether the result equals the original, weights included; they are read only where moved."""
        return files.same(self.original, self._model)

    def save(self, path: str | os.PathLike[str], *, external: bool = False, in_place: bool = False) -> None:
        """Write the result to `path`, which may be a URL, atomically; weights go from file to file.

        One file, unless that would be over 2 GB or `external` asks for the weights beside it, in PATH.data (by URL see
        `files.upload`).
        Writing over the source needs `in_place`. Raises SaveError, and then what was at `path` is still there.
        """
        files.save(self._model, path, external=external, in_place=in_place)


def convert_version(model: onnx.ModelProto, target_version: int) -> onnx.ModelProto:
    """Return `model` at an ai.onnx opset; a drop-in for `onnx.version_converter.convert_version`.

    The argument is not touched. Opset and IR version change and nothing else: no simplification, no verification.
    External data that was not loaded stays referred to; a constant in it that must be known is refused (LoadError).
    Raises CannotMigrate for a node that has no equal at the target and for a target older than the model.
    """
    source = files.load(model, absent=True)
    pipeline = Pipeline((_builtin("migrate_opset", **_opset(target_version), unlist=False),))
    return files.inline(pipeline.run(source, ChangeLog()))


def default_pipeline(
    *,
    opset: Opset = "17+",
    dynamic: DynamicAxes | None = None,
    dynamic_batch: bool | str = False,
    fix: FixedDims | None = None,
    simplify: bool = True,
    resize_form: ResizeForm = "auto",
    resize_intent: bool = False,
    keep: Collection[str] = (),
    keep_initializers_as_inputs: bool = False,
    limits: Limits | None = None,
    isolated: bool = True,
) -> Pipeline:
    """Return the passes `migrate` runs with these arguments, installed ones included, to list, reorder or extend."""
    limits = limits or Limits()
    items = _lifts(opset, unlist=not keep_initializers_as_inputs, keep=frozenset(keep))
    if fix is not None:
        items.insert(0, _builtin("fix_dims", fix=fix))
    if resize_intent:
        items.append(_builtin("resize_intent", dynamic=dynamic))
    items += [_builtin("resize_form", form=resize_form, dynamic=dynamic), _builtin("declared_shapes")]
    items.append(_builtin("honest_dims"))
    if dynamic is not None or dynamic_batch:
        batch = "N" if dynamic_batch is True else dynamic_batch or ""
        items.append(_builtin("dynamic_dims", dynamic=dynamic or {}, batch=batch))
    items.append(_builtin("cleanup"))
    items.extend(installed_passes())
    if simplify:
        items.append(_builtin("simplify", limits=limits, isolated=isolated))
    return Pipeline(tuple(items))


def migrate(
    source: files.Source | Model,
    *,
    opset: Opset = "17+",
    dynamic: DynamicAxes | None = None,
    dynamic_batch: bool | str = False,
    fix: FixedDims | None = None,
    simplify: bool | Literal["require"] = True,
    verify: bool = True,
    resize_form: ResizeForm = "auto",
    resize_intent: bool = False,
    keep: Collection[str] = (),
    keep_initializers_as_inputs: bool = False,
    passes: Sequence[Pass | Callable[..., Any] | str] = (),
    without: Sequence[str] = (),
    pipeline: Pipeline | None = None,
    input_data: str | os.PathLike[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Migration:
    """Bring a model to an opset, make dims dynamic, simplify it and prove that it computes the same.

    Args:
        source: a path, a URL that fsspec knows, the bytes of a model, or a ModelProto or loaded Model (not touched).
        opset: the ai.onnx opset to reach; "17+" is 17, or the model's own where that is newer; "latest" is the newest
            that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3", says one for each of ai.onnx
            and ai.onnx.ml; what it does not name stays.
        dynamic: axes to make dynamic, as torch.onnx takes `dynamic_axes`, or "x:N,3,H,W".
        dynamic_batch: make the batch of every input dynamic, under this name, or N.
        fix: dims to make numbers: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several texts.
        simplify: run onnxsim; when it fails, the unsimplified model is the result and the report says so, unless
            "require" is given.
        verify: run the original and the result on the same inputs and compare all outputs; with `dynamic`, run the
            result at other sizes too.
        resize_form: write each Resize by "scales" or by "sizes" wherever that is exact; "auto" writes sizes where
            onnx infers another length from the scales than runs, so that the model would not load.
        resize_intent: let each Resize compute what its exporter meant where that is known to be something else
            than the file says. The model's numbers change: it is verified in two parts, up to there against the
            original, and from there on against itself.
        keep: words that the standard has dropped and ONNX Runtime still runs, to be kept: "tf_half_pixel_for_nn".
        keep_initializers_as_inputs: leave initializers in the graph's inputs, where callers can override them.
        passes: more passes, to run before simplify: functions of a ModelProto or a graphsurgeon Graph,
            "module:function", or passes.
        without: names of passes to leave out.
        pipeline: passes to run instead of the default ones; then `opset`, `dynamic`, `simplify` and the like say nothing.
        input_data: inputs to verify on, an .npz by input name or a folder of input_*.pb.
        rtol: largest relative difference allowed.
        atol: largest absolute difference allowed.
        seed: of the random inputs.
        timeout: seconds that the simplifier, and the verification, may each take.
        memory_limit: bytes that each of them may take; three quarters of the machine's by default.
        isolated: run native code in child processes, where a crash costs nothing else.
        progress: called with the name of each stage.

    Raises:
        LoadError: the source cannot be read. UsageError: an argument cannot be meant.
        CannotMigrate: a node, or a frozen dim, has no equal at the target.
        VerificationFailed: the numbers differ. PassError: a pass failed. All are MigrateError.
    """
    limits = Limits.of(timeout, memory_limit)
    if pipeline is None:
        pipeline = default_pipeline(
            opset=opset,
            dynamic=dynamic,
            dynamic_batch=dynamic_batch,
            fix=fix,
            simplify=bool(simplify),
            resize_form=resize_form,
            resize_intent=resize_intent,
            keep=keep,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            limits=limits,
            isolated=isolated,
        )
    for item in passes:
        pipeline = pipeline.add(item, before="simplify" if "simplify" in pipeline.names else None)
    pipeline = pipeline.without(*without)
    clock = _Clock(progress or (lambda stage: None))
    if isinstance(source, Model):
        original = source
    else:
        with clock("load"):
            original = files.load(source)
    clock.seconds["load"] = original.load_seconds
    log = ChangeLog()
    with _attaching_partial_report(original, log, clock):
        course = _run(pipeline, original, log, clock, required=simplify == "require")
        model, fallback = course.model, course.fallback
        proof = None
        if verify:
            settings = (input_data, rtol, atol, seed, limits, isolated)
            with clock("verify"):
                held = []
                for leg in course.legs:
                    with Prover(leg.start, *settings) as prover:
                        verdict = prover.prove(leg.end, leg.end if leg.exact else None).verdict
                    held.append(f"before {leg.name}: {verdict.summary}")
                with Prover(course.start, *settings) as prover:
                    exact = (fallback.model if fallback else model) if course.exact else None
                    try:
                        proof = prover.prove(model, exact)
                    except (VerificationFailed, CannotMigrate) as error:
                        if fallback is None:
                            raise
                        model = fallback.take(log, str(error))
                        proof = prover.prove(model, exact)
            for leg, finding in zip(course.legs, held, strict=True):
                log.note(leg.name, "held-before", finding)
        elif any(item.name == "dynamic_dims" for item in pipeline):
            log.note(
                "dynamic_dims",
                "not-proved",
                "the model was not run at other sizes, which alone shows that its dims are free: verification was left out",
                severity="warning",
            )
    return Migration(_report(original, model, pipeline, log, clock, proof), original, model)


@contextmanager
def _attaching_partial_report(original: Model, log: ChangeLog, clock: _Clock) -> Iterator[None]:
    """Give an error that leaves the block what had been done until then."""
    try:
        yield
    except MigrateError as error:
        error.partial_report = PartialReport.of(original, log, error.where, clock.seconds)
        raise


def _builtin(name: str, **options: Any) -> Pass:
    return builtin_passes()[name](**options)


def _lifts(opset: Opset, **options: Any) -> list[Pass]:
    """Return the passes that bring a model's nodes to the opsets asked for; `options` are those of migrate_opset."""
    if isinstance(opset, Mapping):
        given = dict(opset)
    else:
        parts = [part.strip().rpartition("=") for part in str(opset).split(",")]
        given = {domain or "ai.onnx": number for domain, _, number in parts}
    targets = {
        "ai.onnx" if is_onnx(domain) else domain: _opset(number, domain) for domain, number in given.items()
    }
    if not targets or not targets.keys() <= {"ai.onnx", "ai.onnx.ml"}:
        raise UsageError(
            f"no opsets to reach in {opset!r}",
            hint="ai.onnx and ai.onnx.ml are the domains that can move",
        )
    main, ml = targets.get("ai.onnx"), targets.get("ai.onnx.ml")
    found = [] if main is None else [_builtin("migrate_opset", **main, **options)]
    if ml is not None:
        found.append(_builtin("migrate_ml", **ml, **({} if main is None else {"beside": main["opset"]})))
    return found


def _opset(given: int | str, domain: str = "") -> dict[str, Any]:
    """Return the options that say an opset to reach."""
    if given == "latest":
        return {"opset": newest_opset(domain)}
    number = str(given).removesuffix("+")
    try:
        return {"opset": int(number), "at_least": number != str(given)}
    except ValueError:
        raise UsageError(
            f"{given!r} is not an opset", hint="a number, as 17+ one or newer, or latest"
        ) from None


def _run(pipeline: Pipeline, original: Model, log: ChangeLog, clock: _Clock, *, required: bool) -> _Course:
    model, start, fallback, since = original.copy(), original, None, 0
    legs: list[_Leg] = []
    own = set(map(type, pipeline)) <= set(builtin_passes().values())

    def exact() -> bool:
        return own and all(change.exactness is Exactness.EXACT for change in log.changes[since:])

    for item in pipeline:
        with clock(item.name):
            if item.changes_numbers:
                before, leg_exact = model.copy(), exact()
                model = pipeline.run_one(item, model, log)
                if model.proto != before.proto:
                    legs.append(_Leg(item.name, start, before, leg_exact))
                    start, since = model.copy(), len(log.changes)
                    log.note(
                        item.name,
                        "other-numbers",
                        f"{item.name} changed what the model computes, as it is meant to; the result is held"
                        " against the model after it",
                        severity="warning",
                    )
            elif required or not item.optional:
                model = pipeline.run_one(item, model, log)
                if item.narrows:
                    start, since = model.copy(), len(log.changes)
            else:
                check_legal(model.proto)
                fallback = _Fallback(item.name, model.copy(), len(log.changes), len(log.notes))
                try:
                    model = pipeline.run_one(item, model, log)
                except MigrateError as error:
                    model, fallback = fallback.take(log, str(error)), None
    check_legal(model.proto)
    return _Course(tuple(legs), start, model, exact(), fallback)


@dataclass(frozen=True)
class _Leg:
    """A stretch of the pipeline up to a pass, `name`, that changes numbers on purpose: these are to be the same.

    `exact` tells whether they are to be bit for bit: our own passes, all changes exact.
    """

    name: str
    start: Model
    end: Model
    exact: bool


@dataclass(frozen=True)
class _Course:
    """What a pipeline made: stretches that were ended on purpose, and the last, from `start` to `model`.

    `fallback` is the model as it was before the optional pass that was run, if any.
    """

    legs: tuple[_Leg, ...]
    start: Model
    model: Model
    exact: bool
    fallback: _Fallback | None


@dataclass(frozen=True)
class _Fallback:
    """The model as it was before an optional pass, and how long the log was then."""

    name: str
    model: Model
    changes: int
    notes: int

    def take(self, log: ChangeLog, reason: str) -> Model:
        """Go back to it: forget what the log says of the pass, and say why it was left out."""
        del log.changes[self.changes :], log.notes[self.notes :]
        log.note(self.name, "left-out", f"{self.name} was left out: {reason}", severity="warning")
        return self.model


def _report(
    original: Model, result: Model, pipeline: Pipeline, log: ChangeLog, clock: _Clock, proof: Proof | None
) -> Report:
    return Report(
        model=original.name,
        before=ModelSummary.of(original.proto),
        after=ModelSummary.of(result.proto),
        passes=pipeline.names,
        changes=tuple(log.changes),
        notes=tuple(log.notes),
        verification=proof.verdict.as_dict() if proof else None,
        dynamic=proof.dynamic.as_dict() if proof and proof.dynamic else None,
        seconds=clock.seconds,
    )


class _Clock:
    """Times the stages and tells the caller which one runs."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a block under the name of `stage`."""
        self._progress(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
