"""Runs a model with dynamic dims at chosen sizes, and checks each run separately."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.process import captured_output, mark
from onnx_migrate.verdicts import SizeCondition, Trial
from onnx_migrate.verify.compare.informative import bounded_outputs, masked_outputs
from onnx_migrate.verify.compare.noise import with_run
from onnx_migrate.verify.dynamic.declared_shapes import (
    axes_with_symbol,
    inputs_with_sizes,
    item_of,
    shape_warnings,
    undeclared_shape,
)
from onnx_migrate.verify.evaluators import (
    OPTIMIZED,
    UNOPTIMIZED,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.inputs.constraints.value_ranges import exact_inputs
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp, with_weights_moved
from onnx_migrate.verify.inputs.refusals import corrected
from onnx_migrate.verify.inputs.sizes import size_choices
from onnx_migrate.verify.kernel import Measurement, Observation, Tolerance, judge
from onnx_migrate.verify.kernel.difference import Difference
from onnx_migrate.verify.model_traits import random_outputs
from onnx_migrate.verify.run_count import begin_run

__all__ = ["RequirementViolated", "SizedRunner", "Values"]

Values = dict[str, Any]
"""Values by name."""

_INNER_FLOOR = 512.0
"""How many eps inner values may differ by; items of a batch that are mixed differ by more."""


class RequirementViolated(Exception):
    """A model with dynamic dims violates a requirement at some sizes; the message names them.

    `output` is the output that shows the violation, and `node` the node that a runtime's error names. Each is "" if there is
    none. `varied` are the symbols that had another size than the frozen one. `merged_at` is set if a symbol that is no batch
    changed the length of an output's batch axis. It holds the sizes at which this happened.
    """

    def __init__(
        self,
        reason: str,
        output: str = "",
        node: str = "",
        varied: Set[str] = frozenset(),
        merged_at: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(reason)
        self.output = output
        self.node = node
        self.varied = set(varied)
        self.merged_at = dict(merged_at or {})


class SizedRunner:
    """A model with symbols (name to frozen size); `batch` has those that are a batch. It is loaded with and without optimisation.

    `trials` records the runs, and `notes` are sentences for the report. `beyond_noise` are outputs that optimisation changes by
    more than rounding in the first run, which must be at the frozen sizes. Such outputs are compared without optimisation only.
    `masked` are outputs that hide small differences. For each it has the inner value before the operators that hide them; that
    value is compared too.

    Raises EvaluationError if the model does not load.
    """

    def __init__(
        self,
        runnable: Runnable,
        symbols: Mapping[str, int],
        batch: Set[str],
        tolerance: Tolerance,
        seed: int,
    ) -> None:
        self.runnable, self.model = runnable, runnable.model
        self.symbols, self.batch = dict(symbols), frozenset(batch)
        self.tolerance = tolerance
        self.trials: list[Trial] = []
        self.notes: list[str] = []
        self.conditions: list[SizeCondition] = []
        self.beyond_noise: set[str] = set()
        self.masked = masked_outputs(self.model)
        self._seed = seed
        self._random = random_outputs(self.model)
        self._bounded = bounded_outputs(self.model)
        self._wrongly_inferred: set[str] = set()
        declared = inputs_with_sizes(self.model, symbols)
        self._choices = [RandomInputs(self.model, declared, size, seed) for size in size_choices(declared)]
        """Inputs at sizes of the open dims that are not among the symbols; the first ones are used."""
        inner = self.masked.values()
        self._plain = open_model(runnable, UNOPTIMIZED, inner)
        self._optimised = open_model(runnable, OPTIMIZED, inner)

    def run_frozen(self) -> Values:
        """Run at the frozen sizes and return the outputs. Raises RequirementViolated.

        Open dims that are not among the symbols may need particular sizes, for example a window of audio. The method tries size
        choices in turn and keeps the first one that runs. If none runs, it corrects the inputs by the runtime's error message.
        """
        likeliest, first = self._choices[0], None
        while self._choices:
            self.trials.clear()
            try:
                return self.run({})[1]
            except EvaluationError as error:
                first = first or error
                self._choices.pop(0)
        assert first is not None
        corrected_inputs = corrected(likeliest, self._plain.run, first)
        self.trials.clear()
        if corrected_inputs is not None:
            self._choices = [corrected_inputs]
            return self.run({})[1]
        raise RequirementViolated(
            f"the model does not run at its original sizes: {first}", node=first.node
        ) from first

    def run(self, changed: Mapping[str, int], *, padding: bool = False) -> tuple[Values, Values]:
        """Run at the frozen sizes except for those in `changed`, with and without optimisation.

        Returns the inputs, and the outputs without optimisation. `padding` is that of `RandomInputs.feed`. Raises
        RequirementViolated if outputs have other shapes than declared or change by optimisation, and EvaluationError if the model
        does not run.
        """
        sizes = self.symbols | dict(changed)
        where = ", ".join(f"{name}={size}" for name, size in sizes.items())
        mark(f"result: running at {where}")
        begin_run(f"sizes {where}")
        feed = self.feed(sizes, padding=padding)
        record = tuple(sizes.items())
        try:
            with captured_output() as printed:
                values = self._plain.run(feed)
                optimised = self._optimised.run(feed)
                text = printed()
            warned = shape_warnings(text)
            if not self.trials:
                # The first run is at the frozen sizes, at which the result was compared with the original. ONNX Runtime may
                # already infer shapes wrongly there, or optimise outputs wrongly. Such values do not count at other sizes.
                self._wrongly_inferred.update(warned.keys() - values.keys())
                wrong = (
                    name for name in values if self._difference(name, values[name], optimised[name], feed)
                )
                self.beyond_noise.update(wrong)
            for name in sorted(warned.keys() - self._wrongly_inferred):
                declared, actual = warned[name]
                raise RequirementViolated(
                    f"output {name!r} is declared with shape {declared} and has shape {actual}", name
                )
            if (undeclared := undeclared_shape(self.model, values, sizes)) is not None:
                output, problem = undeclared
                raise RequirementViolated(problem, output)
            for name in sorted(values.keys() - self.beyond_noise):
                comparison = f"with ONNX Runtime's optimisation and without, at {where}"
                if self._difference(name, values[name], optimised[name], feed):
                    noise = self._noise_of_optimisation(name, feed)
                    self.require_same(name, values[name], optimised[name], feed, comparison, noise)
        except (EvaluationError, RequirementViolated) as error:
            self.trials.append(Trial(record, str(error)))
            if isinstance(error, RequirementViolated):
                error.varied = {name for name, size in sizes.items() if size != self.symbols[name]}
            raise
        self.trials.append(Trial(record))
        return feed, values

    def require_run(self, changed: Mapping[str, int], what: str) -> tuple[Values, Values]:
        """Run like `run`. Raises RequirementViolated, also if the model does not run; `what` describes the sizes."""
        try:
            return self.run(changed)
        except EvaluationError as error:
            reason = f"the model does not run with {what}: {error}"
            raise RequirementViolated(reason, node=error.node) from error

    def feed(self, changed: Mapping[str, int], *, padding: bool = False) -> Values:
        """Return random inputs of the frozen sizes except for `changed`. Raises RequirementViolated if they are too large."""
        declared = inputs_with_sizes(self.model, self.symbols | dict(changed))
        source = replace(self._choices[0], other=declared)
        feed = source.feed("normal", padding=padding)
        if feed is None:
            raise RequirementViolated(
                "inputs of these sizes would take more than 256 MB each, or 1 GB together"
            )
        return feed

    def run_item(self, feed: Values) -> Values:
        """Return the outputs of one item, without optimisation. Raises RequirementViolated."""
        begin_run("one item of a batch")
        try:
            return self._plain.run(feed)
        except EvaluationError as error:
            raise RequirementViolated(
                f"the model does not run with a batch of 1: {error}", node=error.node
            ) from error

    def require_same(self, name: str, a: Any, b: Any, feed: Values, what: str, noise: float = 0.0) -> None:
        """Require that two values of an output are the same within rounding; random outputs are not compared.

        `noise` is a difference that is known to be rounding. Raises RequirementViolated, with `what` as the description
        of the two runs.
        """
        problem = self._difference(name, a, b, feed, noise)
        if problem:
            kind = "inner value" if name in self.masked.values() else "output"
            raise RequirementViolated(f"{kind} {name!r} differs {what}: {problem}", name)

    def _difference(self, name: str, a: Any, b: Any, feed: Values, known: float = 0.0) -> str:
        if not isinstance(a, np.ndarray) or name in self._random:
            return ""
        inner = name in self.masked.values()
        tolerance = replace(self.tolerance, floor=_INNER_FLOOR) if inner else self.tolerance
        entry = judge(Observation(name, a, b, tolerance, self._measurement(name)))
        if entry.problem or entry.doubt:  # a run that measures the noise is made only if it decides
            measured = self._measurement(name, a, self._moved(feed)[name])
            measured = replace(measured, largest=max(known, measured.largest), typical=float("inf"))
            entry = judge(Observation(name, a, b, tolerance, measured))
        return entry.problem

    def _measurement(self, name: str, value: Any = None, *runs: Any) -> Measurement:
        """Return the distance of other runs from a value; runtimes round a bounded value relative to 1."""
        scale = Measurement(scale=1.0 if name in self._bounded else 0.0)
        return reduce(lambda known, run: with_run(known, value, run), runs, scale)

    def _moved(self, feed: Values) -> Values:
        """Return the outputs on inputs that are moved by one unit in the last place."""
        return self._plain.run(perturbed_by_ulp(feed, self._seed, exact_inputs(self.model)))

    def differ_by_size_only(self, name: str, alone: Any, among_copies: Any, part: Any, feed: Values) -> bool:
        """Whether an item differs from its own run only because the runtime rounds a batch of its size differently.

        Two comparisons decide. `part`, the item in the batch, must equal the item beside copies of itself (`among_copies`): then
        the other items do not influence it. `among_copies` must also equal the item alone, up to rounding. The method measures
        rounding on the item itself: it moves the inputs `feed`, or the weights, by one unit in the last place.
        """
        same = Observation(name, among_copies, part, self.tolerance, self._measurement(name))
        if judge(same).problem:
            return False
        moved = self._moved(feed), self._with_moved_weights.run(feed)
        measured = self._measurement(name, alone, *(values[name] for values in moved))
        return not judge(Observation(name, alone, among_copies, self.tolerance, measured)).problem

    @cached_property
    def _with_moved_weights(self) -> Evaluator:
        moved = with_weights_moved(self.runnable, self._seed)
        return open_model(moved, UNOPTIMIZED, self.masked.values())

    def _noise_of_optimisation(self, name: str, feed: Values) -> float:
        """Return by how much ONNX Runtime's optimisation changes an output of any single item of this feed.

        In a model that rounds to integers, a rounding error can become a whole step. Moved inputs do not show this if they are
        integers. The result is 0.0 if the feed cannot be split into items.
        """
        batches = {
            np.shape(feed[value.name])[axis]
            for value in fed_inputs(self.model.graph)
            for axis in axes_with_symbol(value, self.batch)
        }
        largest = 0.0
        for index in range(batches.pop() if len(batches) == 1 else 0):
            alone = item_of(self.model, feed, index, self.batch)
            plain, optimised = self._plain.run(alone)[name], self._optimised.run(alone)[name]
            if np.shape(plain) == np.shape(optimised):
                largest = max(largest, Difference.between(plain, optimised).largest)
        return largest
