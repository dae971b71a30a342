"""Inputs for judging a change of precision, beside the random ones: masks that hide whole rows, and the model's domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.verify.equivalence.feed_search import FeedSearch
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.precision.scenes import SCENE, scene

__all__ = [
    "ALL_HIDDEN",
    "SMALL",
    "SMOOTH",
    "ZEROS",
    "hide_rows",
    "keep_to_domain",
    "mask_feeds",
    "narrowed_to_domain",
    "run_on_scene",
    "run_on_waves",
    "share_of_numbers",
    "smooth",
]

ZEROS = "zeros"
"""Inputs of silence or padding. On these and on WIDE inputs, a result fails only by NaN and infinite numbers."""

SMALL = "small"

SMOOTH = "smooth"
"""Inputs of waves between 0 and 1, because neighbouring pixels or samples of real inputs are alike."""

_LEAST_WAVES = 64
"""In inputs with fewer numbers, waves are no different from random numbers."""

_SHORTEST_WAVE = 8
"""Neighbouring numbers of the shortest wave; the longest has all of an axis."""

Inputs = Mapping[str, Any]
Outputs = Mapping[str, Any]
Domain = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]

_ENOUGH_NUMBERS = 0.9
"""The share of an output's elements that are finite on inputs of the model's domain."""

DOMAINS: Mapping[str, Domain] = {
    "positive": np.abs,
    "0 to 1": lambda array: np.abs(array) % 1,
    "above 1": lambda array: np.abs(array) + 1,
    "sorted": lambda array: np.sort(np.abs(array), axis=-1) if array.ndim else np.abs(array),
    "-1 to 1": np.tanh,
    "negative": lambda array: -np.abs(array),
}
"""Functions that move floats of a random input into a domain, by the domain's name in reports, the widest domain first."""

_LOWEST = float(np.finfo(np.float32).min)

_MOVING = (
    "Cast",
    "Expand",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Operators that turn a mask into a mask."""

_MASKING = (
    "And",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Mul",
    "Not",
    "Or",
    "Sub",
    "Where",
    "Xor",
)
"""Operators that read a mask of integers or truth values, for example the Sub of 1 - mask."""


def keep_to_domain(search: FeedSearch, first: int = 0, domain: str = "") -> str:
    """Replace feeds on which few of the outputs are numbers by feeds of the model's domain, and return that domain.

    The function checks feeds from the place `first` on. It drops a feed that stays without numbers if any other has some. A model
    with a limited domain may not accept numbers around 0, just as it does not accept negative ones. So small inputs are dropped
    too.
    """
    domains = [domain] if domain else [*DOMAINS]
    for index in range(first, len(search.feeds)):
        feed = search.feeds[index]
        narrowed_domain, inputs, outputs = narrowed_to_domain(
            feed.inputs, search.run, search.outputs[index], domains
        )
        if narrowed_domain:
            # A model has one domain, so all later feeds use the first that fits.
            domains = [narrowed_domain]
            search.feeds[index], search.outputs[index] = Feed(feed.name, inputs), dict(outputs)
            search.recorded = {} if index == 0 else search.recorded
    shares = [share_of_numbers(outputs) for outputs in search.outputs]
    limited = len(domains) == 1
    kept_feeds = [
        index
        for index, share in enumerate(shares)
        if index < first
        or (share >= max(shares) / 2 and not (limited and search.feeds[index].name in (SMALL, ZEROS, WIDE)))
    ]
    # The search recorded inner values on the first feed, which this drops.
    if 0 not in kept_feeds:
        search.recorded = {}
    search.feeds, search.outputs = (
        [search.feeds[index] for index in kept_feeds],
        [search.outputs[index] for index in kept_feeds],
    )
    return domains[0] if limited else ""


def run_on_waves(search: FeedSearch, seed: int) -> None:
    """Run one further feed of smooth floats, if inputs have enough floats and the model runs on it."""
    inputs = smooth(search.feeds[0].inputs, seed)
    if inputs is not None:
        _add(search, SMOOTH, inputs)


def run_on_scene(search: FeedSearch, seed: int) -> None:
    """Run one further feed of images or sounds as in real use, if an input may be one and the model runs on it."""
    inputs = scene(search.feeds[0].inputs, seed)
    if inputs is not None:
        _add(search, SCENE, inputs)


def _add(search: FeedSearch, name: str, inputs: Inputs) -> None:
    """Run one further feed and keep it; if the model does not run on it, a note says so."""
    try:
        outputs = search.run(inputs)
    except EvaluationError as error:
        search.notes.append(f"the original does not run on {name!r}, so onnx-migrate skips it: {error}")
        return
    search.feeds.append(Feed(name, inputs))
    search.outputs.append(outputs)


def smooth(inputs: Inputs, seed: int) -> Inputs | None:
    """Return inputs whose floats are waves along the last two axes, with little noise; None if few numbers are floats."""
    generator, changed = np.random.default_rng(seed), dict(inputs)
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.size < _LEAST_WAVES:
            continue
        # Waves are no mask, and `hide_rows` makes feeds for masks.
        if "mask" in name.lower():
            continue
        waves = np.asarray(generator.normal(0, 0.05, value.shape))
        for axis, length in enumerate(value.shape[-2:], value.ndim - min(value.ndim, 2)):
            most = max(length / _SHORTEST_WAVE, 2.0)
            # Random exponents make long waves as frequent as short ones.
            turns = most ** generator.uniform(0, 1, (*value.shape[:-2], *[1] * min(value.ndim, 2)))
            positions = np.arange(length).reshape([-1 if axis == other else 1 for other in range(value.ndim)])
            waves = waves + 0.25 * np.sin(2 * np.pi * turns * positions / length)
        changed[name] = np.asarray(0.5 + waves, value.dtype)
    return changed if any(changed[name] is not value for name, value in inputs.items()) else None


def hide_rows(search: FeedSearch, graph: Frame, most: int | None = None) -> None:
    """Run up to `most` further feeds whose masks hide rows, if the model runs on them."""
    for name, inputs in islice(mask_feeds(graph, search.feeds[0].inputs), most):
        _add(search, name, inputs)


def mask_feeds(graph: Frame, inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield inputs whose masks hide nothing, everything, and the padding at the left or right of rows; none without masks.

    The other inputs are those of `inputs`.
    """
    fills = {name: _fill_of(graph, name) for name, value in inputs.items() if _may_be_mask(value)}
    masks = {name: fill for name, fill in fills.items() if fill is not None}
    for label, pattern in _PATTERNS.items() if masks else ():
        changed = {name: _filled(inputs[name], pattern, fill) for name, fill in masks.items()}
        yield label, {**inputs, **changed}


def narrowed_to_domain(
    inputs: Inputs,
    run: Callable[[Inputs], Outputs],
    outputs: Outputs,
    domains: Sequence[str] = tuple(DOMAINS),
) -> tuple[str, Inputs, Outputs]:
    """Return the first domain of floats in which the model computes numbers, with its inputs and outputs there.

    The domain is "" if the outputs are numbers on the unchanged inputs, or in none of the `domains`.
    """
    if share_of_numbers(outputs) >= _ENOUGH_NUMBERS:
        return "", inputs, outputs
    for name in domains:
        moved = {key: _moved(value, DOMAINS[name]) for key, value in inputs.items()}
        try:
            outputs_of_moved = run(moved)
        except EvaluationError:
            continue
        if share_of_numbers(outputs_of_moved) >= _ENOUGH_NUMBERS:
            return name, moved, outputs_of_moved
    return "", inputs, outputs


def share_of_numbers(outputs: Outputs) -> float:
    """Return the share of finite elements in the output that has the fewest."""
    arrays = [
        value for value in outputs.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ]
    return min((float(np.isfinite(array).mean()) for array in arrays if array.size), default=1.0)


def _moved(value: Any, domain: Domain) -> Any:
    floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return np.asarray(domain(value), value.dtype) if floats else value


def _may_be_mask(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 1 and value.dtype.kind in "biuf"


def _fill_of(graph: Frame, name: str) -> tuple[float, float] | None:
    """Return the two numbers that mark hidden and visible positions in a mask; None for an input that is no mask."""
    value = graph.values.get(name)
    if value is None or value.tensor is not None:
        return None
    readers = list(_readers(value))
    named = "mask" in name.lower()
    if value.dtype in FLOATS:
        added = any(step.is_a("Add") for step in readers)
        return ((_LOWEST, 0.0) if added else (0.0, 1.0)) if named else None
    masking = bool(readers) and all(step.is_a(*_MASKING) for step in readers)
    return (0.0, 1.0) if value.dtype == TensorProto.BOOL or named or masking else None


def _readers(value: Value, depth: int = 6) -> Iterator[Step]:
    """Yield the nodes that read a value, directly or after nodes that only move or cast it."""
    for step, input_index in value.readers:
        if depth and input_index == 0 and step.is_a(*_MOVING):
            for output in step.made:
                yield from _readers(output, depth - 1)
        else:
            yield step


def _nothing_shown(shown: np.ndarray[Any, Any]) -> None:
    shown[:] = False


def _padded(shown: np.ndarray[Any, Any]) -> None:
    """Hide the left half of the first row, all of the second, and the right half of the third."""
    half = (shown.shape[-1] + 1) // 2
    shown[0::4, :half] = False
    shown[1::4] = False
    shown[2::4, half:] = False


def _all_shown(shown: np.ndarray[Any, Any]) -> None:
    shown[:] = True


ALL_HIDDEN = "masks: every row hidden"
"""The name of the inputs whose masks hide everything."""

_PATTERNS = {ALL_HIDDEN: _nothing_shown, "masks: rows padded": _padded, "masks: nothing hidden": _all_shown}


def _filled(
    array: np.ndarray[Any, Any], pattern: Callable[[np.ndarray[Any, Any]], None], fill: tuple[float, float]
) -> np.ndarray[Any, Any]:
    shown = np.ones((prod(array.shape[:-1]), array.shape[-1]), bool)
    pattern(shown)
    return np.where(shown, fill[1], fill[0]).astype(array.dtype).reshape(array.shape)
