"""Proves that the parts of a model compute the same as the whole, each from the values of the parts before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.process import mark
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.compare.model_precision import is_quantized
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.original_run import OriginalRun, run_original
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.model_traits import random_outputs, with_fixed_numbers
from onnx_migrate.verify.settings import Settings

__all__ = ["PARTS", "Chain", "prove_parts"]

PARTS = "onnx_migrate.verify.equivalence.parts:prove_parts"
"""The function that the child process runs."""


@dataclass(frozen=True)
class Chain:
    """A model, its parts in the order of computing, and the result that replaces the first part; None if that need not be run.

    `fed` are values for inputs of the whole that its one part has as constants; then only the inputs of the result matter.
    """

    whole: Runnable
    parts: tuple[Runnable, ...]
    result: Runnable | None = None
    fed: Mapping[str, Any] = field(default_factory=dict)


def prove_parts(chain: Chain, settings: Settings) -> Verdict:
    """Run the whole and then its parts, without optimisation, and return whether every value is bit for bit the same.

    A part reads the values that the parts before it computed. If no part computed a value, and it is no input of the whole, the
    part reads it from the whole. With a `result`, the function also runs the result and the parts behind it, and compares the
    outputs like those of any result.
    """
    # The parts must draw the same numbers as the whole.
    if random_outputs(chain.whole.model):
        chain = replace(
            chain,
            whole=with_fixed_numbers(chain.whole),
            parts=tuple(map(with_fixed_numbers, chain.parts)),
            result=chain.result and with_fixed_numbers(chain.result),
        )
    try:
        # With values that became inputs, only the result takes the same inputs as the part.
        drawn = chain.parts[0] if chain.fed else chain.whole
        run = run_original(drawn, (chain.fed and chain.result) or drawn, settings)
        inner = [name for part in chain.parts for name in (*_inputs(part), *_outputs(part))]
        mark("original: running, values where it is cut")
        exposed = open_model(chain.whole, UNOPTIMIZED, inner)
    except EvaluationError as error:
        return Verdict(
            Kind.UNVERIFIED, f"the whole model does not {error.failed_to}: {error}", comparable=False
        )
    mark("result: loading the parts")
    try:
        parts = [open_model(part, UNOPTIMIZED) for part in chain.parts]
        # Each feed runs through all parts in turn.
        for feed in run.feeds:
            expected = exposed.run({**feed.inputs, **chain.fed})
            values = _run(parts, chain.parts, {**expected, **feed.inputs})
            for part in chain.parts:
                for name in _outputs(part):
                    if difference := bit_difference(name, expected[name], values[name]):
                        return Verdict(
                            Kind.DIFFERS, f"a part does not compute what the whole does: {difference}"
                        )
        # The verdict tells how much was tried.
        on = f"on {count_of(len(run.feeds), 'set')} of inputs"
        if chain.fed:
            names = listed(map(repr, chain.fed))
            note = f"with these values of {names}, the original computes bit for bit what it does with constants, {on}"
        elif len(parts) > 1:
            note = f"the two parts, one after the other, compute bit for bit what the whole model does, {on}"
        else:
            note = f"the part computes bit for bit what the whole model does there, {on}"
        if chain.result is None or chain.fed:
            return Verdict(Kind.VERIFIED, notes=(note,), exact=True)
        comparison = _joined(chain, chain.result, run, settings)
    except EvaluationError as error:
        return Verdict(Kind.DIFFERS, f"a part does not {error.failed_to}: {error}", node=error.node)
    joined = f"the result with the rest behind it, compared with the whole model: {comparison.summary}"
    return replace(comparison, notes=(note, joined))


def _joined(chain: Chain, result: Runnable, run: OriginalRun, settings: Settings) -> Verdict:
    """Return the comparison of the result, with the parts behind it, with the whole."""
    mark("result: running, with the parts behind it")
    joined = (result, *chain.parts[1:])
    models = [open_model(part, UNOPTIMIZED) for part in joined]
    original = chain.whole.model
    tolerance = replace(settings.tolerance, quantum=is_quantized(original))
    findings = Findings(run, tolerance, {})
    for index, feed in enumerate(run.inputs(run.first)):
        values = _run(models, joined, feed)
        findings.compare(run.first, index, values)
    return findings.verdict(models[0].name)


def _run(models: Sequence[Evaluator], parts: Sequence[Runnable], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of all parts, each run on the values of the parts before it, and on the given values."""
    computed: dict[str, Any] = {}
    for model, part in zip(models, parts, strict=True):
        available = {**given, **computed}
        computed.update(model.run({name: available[name] for name in _inputs(part)}))
    return computed


def _inputs(part: Runnable) -> list[str]:
    return [value.name for value in fed_inputs(part.model.graph)]


def _outputs(part: Runnable) -> list[str]:
    return [value.name for value in part.model.graph.output]
