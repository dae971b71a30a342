"""The steps of a reduction, in order: plain forms, few nodes, bodies, and then smaller inputs, attributes and numbers."""

from __future__ import annotations

from dataclasses import replace

from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.bodies_inside import fewer_inner_nodes
from onnx_migrate.reduction.bodies_outside import bodies_outside
from onnx_migrate.reduction.candidate import Candidate, node_count
from onnx_migrate.reduction.dims import smaller_dims
from onnx_migrate.reduction.node_search import few_nodes
from onnx_migrate.reduction.numbers import simpler_numbers
from onnx_migrate.reduction.plain_form import (
    bypassed,
    fewer_outputs,
    fewer_settings,
    plain_forms,
    without_notes,
)

__all__ = ["smallest"]

_FEW = 20
"""Nodes up to which single nodes, attributes and dims are tried: each costs a run."""


def smallest(candidate: Candidate, bench: Bench) -> Candidate:
    """Return the smallest model found that shows the failure. Raises TimeOver; `bench.trials.best` is then the result."""
    kept = bench.trials.kept
    assert kept is not None
    candidate = plain(candidate, bench)
    candidate = few_nodes(candidate, bench.trials, kept.failure.text)
    candidate = _with_bodies(candidate, bench)
    if node_count(candidate.proto) > _FEW:
        return _noteless(candidate, bench)
    before = None
    while before != (before := candidate.size):
        for change in (bypassed, fewer_outputs, fewer_settings, smaller_dims):
            candidate = bench.simplest(candidate, change)
        candidate = few_nodes(candidate, bench.trials, "")
    candidate = bench.simplest(candidate, simpler_numbers)
    return _noteless(candidate, bench)


def plain(candidate: Candidate, bench: Bench) -> Candidate:
    """Return a model in all plain forms that show the failure, with its values: all at once if possible, else one by one."""
    edits = list(plain_forms(candidate))
    every: Candidate | None = candidate
    for edit in edits:
        every = edit(every) if every is not None else None
    found = bench.first([every])
    if found is not None:
        return found
    for edit in edits:
        candidate = bench.first([edit(candidate)]) or candidate
    return candidate if candidate.values.stored else bench.renewed(candidate) or candidate


def _with_bodies(candidate: Candidate, bench: Bench) -> Candidate:
    """Return a model without If, Loop and Scan if a body shows the failure; otherwise with few nodes in the bodies."""
    while True:
        found = bench.first(outside.candidate for outside in bodies_outside(candidate))
        if found is None:
            return fewer_inner_nodes(candidate, bench)
        candidate = few_nodes(found, bench.trials, "")


def _noteless(candidate: Candidate, bench: Bench) -> Candidate:
    """Return the model without texts about its origin, if it shows the failure without them."""
    found = without_notes(candidate)
    found = replace(found, values=candidate.values)
    return found if bench.trials.accepts(found) else candidate
