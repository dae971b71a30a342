"""Compares any two models as a migration compares its result with the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from onnx_migrate import files
from onnx_migrate.engine.validity import accepted, check_nodes
from onnx_migrate.errors import InvalidModel
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.process import CancelToken, Limits, stoppable
from onnx_migrate.process.progress import ProgressListener, Reporter
from onnx_migrate.safe_open.transfers import transfers_within
from onnx_migrate.verdicts import Kind, Verdict, proofs_text
from onnx_migrate.verify import InputData, Settings, Tolerance
from onnx_migrate.verify.other_runtimes.places import asked_for
from onnx_migrate.verify.other_runtimes.proof import prove_models
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Libraries, libraries_of
from onnx_migrate.verify.weight_data import other_weights

__all__ = ["compare"]

T = TypeVar("T")

_SHOWN = 5
"""How many weights a note names."""


def compare(
    original: files.Source,
    other: files.Source,
    *,
    exact: bool = False,
    input_data: InputData | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    ort_library: Libraries = (),
    prove_in: str | Sequence[str] = (),
    progress: ProgressListener | None = None,
    cancel: CancelToken | None = None,
) -> Verdict:
    """Run two models on the same inputs and return whether they compute the same.

    Names, types and order of inputs and outputs must be equal too. With `exact`, outputs must be bit-identical when
    ONNX Runtime runs both without optimisations. `prove_in` names further runtimes to run both in, of which one where
    `other` does not run right makes them differ. The other arguments are those of `migrate`.

    Raises LoadError if one cannot be read, InvalidModel if one is not a valid model, UsageError for `input_data` that does
    not fit the models. Whether nodes are as their schemas say is asked only of a model that ONNX Runtime does not load. Any
    other failure of running them is in the verdict: verified, differs, or unverified with a reason.
    """
    asked, libraries = asked_for(prove_in), libraries_of(ort_library)
    with transfers_within(timeout):
        models = _valid(original), _valid(other)
    segment, result = Segment(*models, models[1], exact), models[1]
    difference = Interface.of(segment.original.proto).difference(Interface.of(result.proto))
    if difference:
        return Verdict(Kind.DIFFERS, difference)
    reporter = Reporter(progress, ["verify", *(["prove"] if asked else [])])
    with stoppable(cancel):
        reporter.stage("verify")
        settings = Settings(
            input_data,
            Tolerance(rtol, atol),
            seed,
            Limits.of(timeout, memory_limit),
            isolated,
            reporter.within,
            libraries=libraries,
        )
        with Prover(settings) as prover:
            verdict = prover.verify(segment, strict=exact, by_value=True)
            if not _ran_in_onnxruntime(verdict):
                for model in (segment.original, result):
                    if not prover.loads(model):
                        _checked(model, check_nodes)
        if verdict.kind is Kind.VERIFIED:
            verdict = replace(verdict, notes=(*verdict.notes, *_other_weights(segment)))
        if not asked:
            return verdict
        reporter.stage("prove")
        proofs = prove_models(asked, segment.original, result, settings)
    failing = [proof for proof in proofs if not proof.passed]
    known = [proof for proof in failing if proof.outcome != "unknown"]
    if known and verdict.kind is not Kind.DIFFERS:
        verdict = replace(verdict, kind=Kind.DIFFERS, reason=proofs_text(known))
    elif failing and verdict.kind is Kind.VERIFIED:
        verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=proofs_text(failing))
    return replace(verdict, proved_in=proofs)


def _other_weights(segment: Segment[Model]) -> Iterator[str]:
    """Yield a note on weights that differ though the outputs agree."""
    names = [name for name, _ in other_weights(segment.original, segment.result)]
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        which = ", ".join(map(repr, names[:_SHOWN]))
        yield f"weights of the same name have other data in the second model, which no output shows: {which}{more}"


def _ran_in_onnxruntime(verdict: Verdict) -> bool:
    """Whether ONNX Runtime ran both models, so that it matters little what the schemas say of their nodes."""
    return bool(verdict.comparisons) and verdict.load is None and "onnx.reference" not in verdict.evaluator


def _valid(source: files.Source) -> Model:
    model = files.load(source)
    return _checked(model, accepted)


def _checked(model: Model, check: Callable[[Model], T]) -> T:
    """Return what a check returns; raise InvalidModel, whose text begins with the model's name, for one that is not valid."""
    try:
        return check(model)
    except InvalidModel as error:
        place = f"{error.where}: " if error.where else ""
        raise InvalidModel(
            f"{model.name}: {place}{error.reason}", code=error.code, hint=error.hint
        ) from error
