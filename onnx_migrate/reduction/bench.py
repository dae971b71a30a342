"""Runs changed models to record their values, and checks them: the tool of all steps behind the search for nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx_migrate.facts.shapes import drop_value_info, forget_output_shapes
from onnx_migrate.model.model import Model
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import replace_all
from onnx_migrate.reduction.ports import Ports
from onnx_migrate.reduction.recording import Values, recorded_values
from onnx_migrate.reduction.trials import Trials
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Settings

__all__ = ["Bench", "Change", "Edit", "edited"]

Change = Callable[[Candidate], Iterable[Candidate | None]]
"""Returns simpler models than a candidate, the most promising first; their inner values are not recorded yet."""

Edit = Callable[[Candidate], Candidate | None]
"""Returns a simpler model than a candidate; None if there is nothing to change."""


def edited(candidate: Candidate) -> Candidate:
    """Return a candidate with a copy of the model, to be edited in place."""
    return candidate.with_model(candidate.model.copy())


@dataclass
class Bench:
    """The trials, and the settings and folders of runs. `runs_here` is whether a runtime here runs the original."""

    trials: Trials
    settings: Settings
    runs_here: bool
    _folder: TemporaryFolder = field(default_factory=TemporaryFolder)
    _count: int = 0

    def record(self, model: Model, candidate: Candidate) -> Values:
        """Run a model on the inputs of a candidate, and return its values."""
        # A Prover keeps its copy of the weights on the disk until it is closed, and a search makes thousands of runs.
        with Prover(self.settings) as prover:
            runnable = prover.runnable(model)
            return recorded_values(runnable, dict(candidate.feed), self._new_folder(), self.settings)

    def _new_folder(self) -> Path:
        self._count += 1
        folder = self._folder.path / str(self._count)
        folder.mkdir()
        return folder

    def renewed(self, candidate: Candidate | None) -> Candidate | None:
        """Return a changed candidate with its values and output types; None if it does not run, and the original does."""
        if candidate is None:
            return None
        candidate = replace(candidate, feed=candidate.complete_feed())
        if not self.runs_here:
            return candidate
        candidate = _without_shapes(candidate)
        values = self.record(candidate.model, candidate)
        return None if values.reason else _with_shapes(replace(candidate, values=values))

    def first(self, candidates: Iterable[Candidate | None]) -> Candidate | None:
        """Return the first changed candidate that shows the failure, with its values; None if none does. Raises TimeOver."""
        accepted = self.trials.first(map(self.renewed, candidates))
        return accepted[1] if accepted is not None else None

    def simplest(self, candidate: Candidate, change: Change) -> Candidate:
        """Apply a change as long as the failure shows. Raises TimeOver."""
        while (simpler := self.first(change(candidate))) is not None:
            candidate = simpler
        return candidate

    def swept(self, candidate: Candidate, edits_of: Callable[[Candidate], Iterable[Edit]]) -> Candidate:
        """Apply each edit that leaves the failure, one after the other, to the result of those before. Raises TimeOver."""
        edits, position = list(edits_of(candidate)), 0
        while position < len(edits):
            batch = [self.renewed(edit(candidate)) for edit in edits[position : position + self.trials.jobs]]
            accepted = self.trials.first(batch)
            # The edits behind the accepted one ran on the model before it, so they are tried again.
            position += len(batch) if accepted is None else accepted[0] + 1
            candidate = candidate if accepted is None else accepted[1]
        return candidate


def _without_shapes(candidate: Candidate) -> Candidate:
    """Return a candidate with fixed sizes without the declared shapes of other sizes."""
    if not candidate.is_static:
        return candidate
    shapeless = edited(candidate)
    drop_value_info(shapeless.proto)
    forget_output_shapes(shapeless.proto.graph)
    return shapeless


def _with_shapes(candidate: Candidate) -> Candidate | None:
    """Return a candidate with fixed sizes whose outputs have the recorded types; None if one is not known."""
    if not candidate.is_static:
        return candidate
    ports = Ports(candidate)
    graph = candidate.proto.graph
    declared = [ports.declared(output.name) for output in graph.output]
    if None in declared:
        return None
    replace_all(graph.output, [port for port in declared if port is not None])
    return candidate
