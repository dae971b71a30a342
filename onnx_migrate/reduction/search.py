"""The steps of a reduction, in order: plain forms, few nodes, bodies, and then smaller inputs, attributes and numbers."""

from __future__ import annotations

from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.bodies_inside import bypassed_in_functions, fewer_inner_nodes
from onnx_migrate.reduction.bodies_outside import bodies_outside
from onnx_migrate.reduction.candidate import Candidate, node_count
from onnx_migrate.reduction.dims import smaller_dims
from onnx_migrate.reduction.node_search import few_nodes, without_single_nodes
from onnx_migrate.reduction.numbers import simpler_numbers
from onnx_migrate.reduction.plain_form import (
    bypassed,
    fewer_outputs,
    fewer_settings,
    inlined,
    with_fixed_sizes,
    with_initializers,
    without_notes,
)

__all__ = ["smallest"]

_FEW = 20
"""Nodes up to which single nodes, attributes and dims are tried: each costs a run."""


def smallest(candidate: Candidate, bench: Bench) -> Candidate:
    """Return the smallest model found that shows the failure. Raises TimeOver; `bench.trials.best` is then the result."""
    kept_failure = bench.trials.kept
    assert kept_failure is not None
    candidate = plain(bench.renewed(candidate) or candidate, bench)
    candidate = few_nodes(candidate, bench.trials, kept_failure.failure.text)
    candidate = _with_bodies(candidate, bench)
    if node_count(candidate.proto) > _FEW:
        return _noteless(candidate, bench)
    while True:
        for change in (bypassed, bypassed_in_functions, fewer_outputs):
            candidate = bench.simplest(candidate, change)
        for edits in (fewer_settings, smaller_dims):
            candidate = bench.swept(candidate, edits)
        fewer = without_single_nodes(candidate, bench.trials)
        if fewer is candidate:
            break
        candidate = fewer
    candidate = bench.swept(candidate, simpler_numbers)
    return _noteless(candidate, bench)


def plain(candidate: Candidate, bench: Bench) -> Candidate:
    """Return a model in all plain forms that show the failure: Constants as initializers, fixed sizes, no functions."""
    if candidate.proto.functions:
        candidate = bench.first([inlined(candidate)]) or candidate
    stored = with_initializers(candidate)
    fixed = with_fixed_sizes(stored)
    every = None if fixed is None else without_notes(fixed)
    accepted = bench.trials.first([every, fixed, stored, with_fixed_sizes(candidate)])
    return accepted[1] if accepted is not None else candidate


def _with_bodies(candidate: Candidate, bench: Bench) -> Candidate:
    """Return a model without If, Loop and Scan if a body shows the failure; otherwise with few nodes in the bodies."""
    while True:
        accepted = bench.first(outside.candidate for outside in bodies_outside(candidate))
        if accepted is None:
            return fewer_inner_nodes(candidate, bench)
        candidate = few_nodes(accepted, bench.trials, "")


def _noteless(candidate: Candidate, bench: Bench) -> Candidate:
    """Return the model without texts about its origin, if it shows the failure without them."""
    noteless = without_notes(candidate)
    return noteless if bench.trials.accepts(noteless) else candidate
