"""The first difference of any two models: between which values it lies, at which nodes of both, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx

from onnx_migrate.messages import listed, share_text
from onnx_migrate.model.graphs import node_label
from onnx_migrate.process import mark
from onnx_migrate.verdicts import FirstDifference, ValueDistance
from onnx_migrate.verify.equivalence.counterparts import Counterparts
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.equivalence.original_run import run_original
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.model_traits import is_random_node, without_draws
from onnx_migrate.verify.settings import Settings

from .agreement import Agreement
from .reasons import Reason, nodes_of, reasons_of
from .records import record
from .regions import Region, first_pair, region_of, with_idle_nodes
from .samples import sample_of

__all__ = ["DIVERGENCE", "Divergence", "Explained", "divergence", "located"]

DIVERGENCE = "onnx_migrate.verify.divergence.first:divergence"
"""The function that the child process runs."""


@dataclass(frozen=True)
class Divergence:
    """The first place at which two models compute other numbers, and the distances of all values that both compute.

    `first` is None if the outputs agree on the input that was recorded.
    """

    first: FirstDifference | None
    values: tuple[ValueDistance, ...]


def divergence(original: Runnable, other: Runnable, settings: Settings, explained: bool = True) -> Divergence:
    """Record two models on an input on which their outputs differ, if there is one, and compare all values.

    Without `explained`, the first difference is not searched. Runs the models in this process. Raises EvaluationError if one does
    not run.
    """
    if not explained:
        return Divergence(None, tuple(_distances(_agreement_of(original, other, settings))))
    agreement, parting = located(original, other, settings)
    first = None if parting is None else _first_difference(agreement, parting)
    return Divergence(first, tuple(_distances(agreement)))


def located(original: Runnable, other: Runnable, settings: Settings) -> tuple[Agreement, Explained | None]:
    """Record two models in this process, and return the region in which they part, None if they agree. Raises EvaluationError."""
    agreement = _agreement_of(original, other, settings)
    explained = _explained(agreement)
    if explained is None or not explained.reasons:
        # Equal nodes with equal inputs compute the same, so the fault is before them, in elements too small for a share.
        explained = max(
            explained,
            _explained(replace(agreement, exactly=True)),
            key=lambda one: bool(one and one.reasons),
        )
    return agreement, explained


@dataclass(frozen=True)
class Explained:
    """A region, and the reasons for the difference."""

    region: Region
    reasons: Sequence[Reason]


def _explained(agreement: Agreement) -> Explained | None:
    """Return the region in which two models part, with reasons; None if they agree. Raises EvaluationError."""
    region = region_of(agreement)
    if region is None:
        return None
    pair = first_pair(agreement, region)
    reasons = reasons_of(agreement, pair) if pair is not None else []
    if pair is not None and reasons:
        return Explained(pair, reasons)
    reasons = reasons_of(agreement, region)
    if not reasons:
        region = with_idle_nodes(agreement, region)
        reasons = reasons_of(agreement, region)
    return Explained(region, reasons)


def _first_difference(agreement: Agreement, found: Explained) -> FirstDifference:
    """Return the nodes of a region, and the reasons for the difference."""
    region, reasons = found.region, found.reasons
    value, counterpart = region.original[-1], region.other[-1]
    first_node, second_node = agreement.original.maker(value), agreement.other.maker(counterpart)
    blamed = next((reason for reason in reasons if reason.original is not None), None)
    # A reason may name a node before the last one of the region.
    if blamed is not None:
        first_node, second_node = blamed.original or first_node, blamed.other or second_node
    return FirstDifference(
        (),
        node_label(second_node),
        second_node.op_type,
        counterpart,
        _problem(agreement, region),
        node_label(first_node),
        first_node.op_type,
        value,
        original_nodes=tuple(map(_name, nodes_of(agreement.original, region.original))),
        nodes=tuple(map(_name, nodes_of(agreement.other, region.other))),
        agreed=region.agreed,
        reasons=tuple(dict.fromkeys(reason.text for reason in reasons)),
    )


def _distances(agreement: Agreement) -> Iterator[ValueDistance]:
    """Yield the error of every value that both models compute, in the order of the original's nodes."""
    for value, counterpart in agreement.counterparts():
        node, shape = agreement.original.maker(value), agreement.original.samples[value].shape
        error = agreement.error(value, counterpart)
        yield ValueDistance(value, counterpart, node_label(node), node.op_type, shape, error)


def _problem(agreement: Agreement, region: Region) -> str:
    """Return the difference at the end of a region, and whether nodes behind it are known to agree."""
    error = agreement.error(region.original[-1], region.other[-1])
    is_number = agreement.original.samples[region.original[-1]].kind == "f"
    by = f" by up to {share_text(error)} of its largest value" if is_number else ""
    by = by if error <= _MOST else " in NaN, infinity or size"
    verb = "agree" if len(region.agreed) > 1 else "agrees"
    before = f"; {listed([*map(repr, region.agreed[:_SHOWN])])} {verb}" if region.agreed else ""
    # Inputs agree always, and tell nothing about the nodes between.
    fed = {value.name for value in agreement.original.model.graph.input}
    is_first = fed.issuperset(region.agreed)
    text = f"{region.original[-1]!r} differs{by}{before}"
    if len(region.original) == 1 or (region.is_confirmed and not is_first):
        return text
    return (
        f"{text}. No other value between these has a counterpart, so the fault may be at any of these nodes. A result of"
        " --no-simplify keeps more values and gives a more precise answer"
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


def _agreement_of(original: Runnable, other: Runnable, settings: Settings) -> Agreement:
    """Record both models on the input on which their outputs differ most. Raises EvaluationError."""
    drawn = [
        {name: node for node in runnable.model.graph.node if is_random_node(node) for name in node.output}
        for runnable in (original, other)
    ]
    # Both models must read the same random numbers; otherwise all values behind them differ.
    original, other = without_draws(original, other)
    feed = _telling_feed(original, other, settings)
    counterparts = Counterparts.of(other.model, original.model)
    turned = _transposes(original) or _transposes(other)
    return Agreement(
        record(original, feed, "original", drawn[0], in_layouts=turned),
        record(other, feed, "result", drawn[1]),
        _named(original, other, counterparts),
        other.with_structure(counterparts.model),
    )


def _transposes(runnable: Runnable) -> bool:
    return any(node.op_type == "Transpose" for node in runnable.model.graph.node)


def _named(original: Runnable, other: Runnable, counterparts: Counterparts) -> dict[str, str]:
    """Return, by the original's values, the values of the other model that have the same name or structure."""
    computed_names = {name for node in original.model.graph.node for name in node.output if name}
    renamed = {
        name: counterparts.own.get(name, name)
        for node in counterparts.model.graph.node
        for name in node.output
        if name in computed_names
    }
    same = {name: name for node in other.model.graph.node for name in node.output if name in computed_names}
    return {**same, **renamed}


def _telling_feed(original: Runnable, other: Runnable, settings: Settings) -> Mapping[str, Any]:
    """Return the first feed on which the outputs are far apart; all inputs of a verification are tried if two show nothing.

    Raises EvaluationError.
    """
    mark("original: running")
    model = open_model(original, UNOPTIMIZED)
    search = FeedSearch(model, original.model, other.model, settings.seed, Extent(thorough=True))
    if settings.feeds is None:
        search.generate()
        search.search_domain()
    else:
        search.use(settings.feeds)
    model = open_model(other, UNOPTIMIZED)
    pairs = [(feed.inputs, outputs) for feed, outputs in zip(search.feeds, search.outputs, strict=True)]
    errors = [_error(model, *pair) for pair in pairs]
    # Two random inputs may miss a fault at a threshold.
    if max(errors) <= _SHOWS and settings.feeds is None:
        every = run_original(original, other, settings, Extent(corners=True))
        pairs = [(feed.inputs, run) for feed, run in zip(every.feeds, every.runs[every.first], strict=False)]
        errors = [_error(model, *pair) for pair in pairs]
    # The first feed that shows nearly the whole difference is enough.
    enough = max(errors) * _TELLING
    return next(inputs for (inputs, _), error in zip(pairs, errors, strict=True) if error >= enough)


def _error(model: Evaluator, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> float:
    """Return the difference between a model's outputs and others, as a share of their largest value; 0 if it does not run."""
    try:
        theirs = model.run(inputs)
    except EvaluationError:
        return 0.0
    pairs = [(sample_of(value), sample_of(theirs.get(name))) for name, value in outputs.items()]
    errors = (ours.error(two) for ours, two in pairs if ours is not None and two is not None)
    return max((min(error, _ENTIRELY) for error in errors), default=0.0)
