"""The first difference of any two models: between which values it lies, at which nodes of both, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from onnx_migrate.messages import listed, share_text
from onnx_migrate.model.graphs import node_label
from onnx_migrate.process import mark
from onnx_migrate.verdicts import FirstDifference, ValueDistance
from onnx_migrate.verify.equivalence.corner_runs import run_corners
from onnx_migrate.verify.equivalence.counterparts import Counterparts
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.inputs.constraints.value_ranges import exact_inputs
from onnx_migrate.verify.model_traits import with_attribute_data, without_draws
from onnx_migrate.verify.settings import Settings

from .agreement import Agreement
from .reasons import nodes_of, reasons_of
from .records import record
from .regions import Region, region_of, with_idle_nodes
from .samples import sample_of

__all__ = ["FIRST_DIVERGENCE", "VALUE_DISTANCES", "agreement_of", "first_divergence", "value_distances"]

VALUE_DISTANCES = "onnx_migrate.verify.divergence.first:value_distances"
"""The function that the child process runs for the errors of all values."""

FIRST_DIVERGENCE = "onnx_migrate.verify.divergence.first:first_divergence"
"""The function that the child process runs."""


def first_divergence(original: Runnable, other: Runnable, settings: Settings) -> FirstDifference | None:
    """Return the first place at which two models compute other numbers, with reasons; None if their outputs agree on one input.

    Runs the models in this process. Raises EvaluationError if one does not run.
    """
    agreement = agreement_of(original, other, settings)
    region = region_of(agreement)
    if region is None:
        return None
    reasons = reasons_of(agreement, region)
    if not reasons:
        region = with_idle_nodes(agreement, region)
        reasons = reasons_of(agreement, region)
    value, counterpart = region.original[-1], region.other[-1]
    one, two = agreement.original.producers[value], agreement.other.producers[counterpart]
    blamed = next((reason for reason in reasons if reason.original is not None), None)
    if blamed is not None:
        one, two = blamed.original or one, blamed.other or two
    return FirstDifference(
        (),
        node_label(two),
        two.op_type,
        counterpart,
        _problem(agreement, region),
        node_label(one),
        one.op_type,
        value,
        original_nodes=tuple(map(_name, nodes_of(agreement.original, region.original))),
        nodes=tuple(map(_name, nodes_of(agreement.other, region.other))),
        agreed=region.agreed,
        reasons=tuple(dict.fromkeys(reason.text for reason in reasons)),
    )


def value_distances(original: Runnable, other: Runnable, settings: Settings) -> tuple[ValueDistance, ...]:
    """Return the error of every value that both models compute, in the order of the original's nodes.

    Runs the models in this process. Raises EvaluationError if one does not run.
    """
    agreement = agreement_of(original, other, settings)
    return tuple(
        ValueDistance(
            value,
            counterpart,
            node_label(node),
            node.op_type,
            sample.shape,
            agreement.error(value, counterpart),
        )
        for value, counterpart in agreement.counterparts()
        for node, sample in [(agreement.original.producers[value], agreement.original.samples[value])]
    )


def _problem(agreement: Agreement, region: Region) -> str:
    """Return the difference at the end of a region, and whether nodes behind it are known to agree."""
    error = agreement.error(region.original[-1], region.other[-1])
    is_number = agreement.original.samples[region.original[-1]].kind == "f"
    by = f" by up to {share_text(error)} of its largest value" if is_number else ""
    by = by if error <= _MOST else " in NaN, infinity or size"
    verb = "agree" if len(region.agreed) > 1 else "agrees"
    before = f"; {listed([*map(repr, region.agreed[:_SHOWN])])} {verb}" if region.agreed else ""
    fed = {value.name for value in agreement.original.model.graph.input}
    is_first = fed.issuperset(region.agreed)
    text = f"{region.original[-1]!r} differs{by}{before}"
    if region.is_confirmed and (len(region.original) == 1 or not is_first):
        return text
    return (
        f"{text}. No other value between these has a counterpart, so the fault may be at any of these nodes; compare with a"
        " result of --no-simplify, which keeps more values"
    )


def _name(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {node_label(node)!r}"


_TELLING = 0.1
"""A feed shows the fault if its error is at least this share of the largest error on any feed.

The first feeds have ordinary numbers.
"""

_SHOWS = 1e-5
"""Error of the outputs up to which ordinary inputs do not show the fault."""

_ENTIRELY = 10.0
"""Error that stands for NaN or infinity in one model alone, and for other sizes."""

_MOST = 1e3
"""If an error is larger, a share says nothing."""

_SHOWN = 3
"""Values that agree which the text names."""


def agreement_of(original: Runnable, other: Runnable, settings: Settings) -> Agreement:
    """Record both models on the input on which their outputs differ most. Raises EvaluationError."""
    original, other = without_draws(original, other)
    feed = _telling_feed(original, other, settings)
    counterparts = Counterparts.of(other.model, original.model)
    return Agreement(
        record(original, feed, "original", in_layouts=_transposes(original) or _transposes(other)),
        record(other, feed, "result"),
        _named(original, other, counterparts),
        other.with_structure(counterparts.model),
    )


def _transposes(runnable: Runnable) -> bool:
    return any(node.op_type == "Transpose" for node in runnable.model.graph.node)


def _named(original: Runnable, other: Runnable, counterparts: Counterparts) -> dict[str, str]:
    """Return, by the original's values, the values of the other model that have the same name or structure."""
    made = {name for node in original.model.graph.node for name in node.output if name}
    renamed = {
        name: counterparts.own.get(name, name)
        for node in counterparts.model.graph.node
        for name in node.output
        if name in made
    }
    same = {name: name for node in other.model.graph.node for name in node.output if name in made}
    return {**same, **renamed}


def _telling_feed(original: Runnable, other: Runnable, settings: Settings) -> Mapping[str, Any]:
    """Return the first feed on which the outputs are far apart; corner inputs are tried if ordinary ones show nothing.

    Raises EvaluationError.
    """
    mark("original: running")
    search = FeedSearch(
        open_model(original, UNOPTIMIZED),
        with_attribute_data(original),
        other.model,
        settings.seed,
        Extent(thorough=True),
    )
    if settings.feeds is None:
        search.generate()
        search.search_domain()
    else:
        search.use(settings.feeds)
    model = open_model(other, UNOPTIMIZED)
    pairs = [(feed.inputs, outputs) for feed, outputs in zip(search.feeds, search.outputs, strict=True)]
    errors = [_error(model, *pair) for pair in pairs]
    if max(errors) <= _SHOWS and settings.feeds is None:
        corners = run_corners(search, settings.seed, exact_inputs(original.model), magnitudes=True)
        pairs += [
            (feed.inputs, outputs) for feed, outputs in zip(corners.feeds, corners.outputs, strict=True)
        ]
        errors += [_error(model, *pair) for pair in pairs[len(errors) :]]
    enough = max(errors) * _TELLING
    return next(inputs for (inputs, _), error in zip(pairs, errors, strict=True) if error >= enough)


def _error(model: Evaluator, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> float:
    """Return the difference between a model's outputs and others, as a share of their largest value; 0 if it does not run."""
    try:
        theirs = model.run(inputs)
    except EvaluationError:
        return 0.0
    pairs = [(sample_of(value), sample_of(theirs.get(name))) for name, value in outputs.items()]
    errors = (one.error(two) for one, two in pairs if one is not None and two is not None)
    return max((min(error, _ENTIRELY) for error in errors), default=0.0)
