"""The rounds of a Loop or Scan: the walk visits the first ones, and steady changes are extrapolated to the last one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from onnx_migrate.facts.running_cost.growth import state_after
from onnx_migrate.facts.running_cost.tally import Largest, Tally
from onnx_migrate.facts.running_cost.value_estimate import ValueEstimate

__all__ = ["Round", "Rounds"]

_WALKED = 40
"""Rounds that are walked one by one; a value that doubles in each is too large by then."""

_NO_END = 1 << 62
"""The last round of the search in a Loop without a trip count; a condition that is true there counts as true for ever."""

_NAMED = 10**5
"""The most runs of nodes in a loop for which an error blames the costliest node; with more, it blames the loop."""


class Round(NamedTuple):
    """The cost of one round, and the outputs of the body."""

    tally: Tally
    outputs: list[ValueEstimate]


State = Sequence[ValueEstimate]
Walk = Callable[[State], Round]


@dataclass
class Rounds:
    """A loop. `count` is the largest number of its rounds; None if only its condition ends it.

    `counted` says that `count` is known. `going` says whether the loop begins, and is None if that depends on data.
    `elements` are the values that each round of a Scan gets in addition to its state.
    """

    walk: Walk
    state: State
    count: int | None
    label: str
    counted: bool = True
    going: bool | None = True
    is_scan: bool = False
    elements: State = ()
    axes: Sequence[int] = ()
    constant: bool = True
    reads_counter: bool = True
    """Whether a node of the body reads the number of the round."""
    _states: list[State] = field(default_factory=list)

    @classmethod
    def of_loop(
        cls, walk: Walk, inputs: Sequence[ValueEstimate | None], attributes: Mapping[str, Any], label: str
    ) -> Rounds:
        """Return the rounds of a Loop with these inputs."""
        count, condition = [*inputs, None, None][:2]
        number, going = _number(count), _number(condition)
        state = [value or ValueEstimate() for value in inputs[2:]]
        constant = all(value is None or value.constant for value in (count, condition))
        begins = True if condition is None else None if going is None else bool(going)
        return cls(walk, state, number, label, count is None or number is not None, begins, constant=constant)

    @classmethod
    def of_scan(
        cls, walk: Walk, inputs: Sequence[ValueEstimate | None], attributes: Mapping[str, Any], label: str
    ) -> Rounds:
        """Return the rounds of a Scan with these inputs."""
        scans = min(int(attributes.get("num_scan_inputs", 0)), len(inputs))
        values = [value or ValueEstimate() for value in inputs]
        state, scanned = values[: len(values) - scans], values[len(values) - scans :]
        # Scan counts negative axes from the end of each input.
        axes = attributes.get("scan_input_axes") or [0] * scans
        count, elements = None, []
        for value, axis in zip(scanned, axes, strict=False):
            dims = value.dims
            if dims is None or not -len(dims) <= axis < len(dims):
                elements.append(ValueEstimate(None, value.dtype, constant=value.constant))
                continue
            scan_axis = axis % len(dims)
            count = dims[scan_axis] if count is None else count
            rest = (*dims[:scan_axis], *dims[scan_axis + 1 :])
            elements.append(ValueEstimate(rest, value.dtype, constant=value.constant))
        outputs = attributes.get("scan_output_axes") or ()
        return cls(
            walk, state, count, label, count is not None, is_scan=True, elements=elements, axes=outputs
        )

    def run(self, tally: Tally) -> list[ValueEstimate]:
        """Add the cost of all rounds to the tally, and return the outputs of the loop."""
        # No round runs, so the state passes through.
        if (self.count is not None and self.count <= 0) or self.going is False:
            return list(self.state)
        inside = Tally()
        outputs, rounds = self._all(inside)
        if rounds > 1 and inside.work.runs > _NAMED:
            cause = f"{self.label}, whose nodes run {inside.work.runs:,} times,"
            inside.costliest = inside.work.seconds, cause
        if rounds > 1 and self._grows():
            copies = Largest(
                self._copied(rounds), f"the growing state of {self.label}, copied in each round, takes"
            )
            inside.node = max(inside.node, copies)
        tally.add(inside)
        return outputs

    def _grows(self) -> bool:
        """Return whether the sizes of the state change from round to round.

        glibc gives back none of the blocks that were too small for the next round: all copies together were measured.
        """
        return len(self._states) > 1 and [value.bytes for value in self._states[-1]] != [
            value.bytes for value in self._states[-2]
        ]

    def _copied(self, rounds: int) -> int:
        """Return the bytes of the states of all rounds together."""
        sizes = [sum(value.bytes for value in state) for state in self._states]
        # The sizes between the last walked round and the last round grow evenly, so their mean stands for each.
        last = sum(value.bytes for value in state_after(self._states, rounds - len(sizes)))
        return sum(sizes) + (rounds - len(sizes)) * (sizes[-1] + last) // 2

    def _all(self, inside: Tally) -> tuple[list[ValueEstimate], int]:
        """Walk the rounds; return the known outputs of the loop and the number of rounds."""
        state, round_count, settled = self.state, 0, False
        outputs: list[ValueEstimate] = []
        previous: Tally | None = None
        # After this many rounds the sizes are assumed to go on as they do.
        while not settled and round_count < _WALKED and (self.count is None or round_count < self.count):
            round_ = self.walk(self._given(round_count, state))
            inside.add(round_.tally)
            round_count += 1
            outputs = round_.outputs
            condition, new = self._split(outputs)
            # A round that repeats the state and the costs of the one before is followed by rounds like it.
            settled = list(new) == list(state) and self._repeats(round_.tally, previous)
            previous, state = round_.tally, new
            self._states.append(state)
            if condition is False and not self.is_scan:
                return self._results(outputs, state, round_count), round_count
            # A loop whose end depends on data has no number of rounds.
            if not self.counted or (condition is None and not self.is_scan) or self.going is None:
                return self._unknown(new, outputs), round_count
        alike = settled and not self.reads_counter
        last = self.count if alike else self._last_round(round_count)
        if last is None:
            inside.endless = self.label
            return self._unknown(state, outputs), round_count
        if alike:
            inside.add(previous or Tally(), last - round_count)
        elif last > round_count:
            outputs = self._continued(inside, round_count, last, previous or Tally())
            state = self._split(outputs)[1]
        return self._results(outputs, state, last), last

    def _repeats(self, tally: Tally, previous: Tally | None) -> bool:
        """Return whether all later rounds cost the same as this one, as far as the state decides that."""
        return not self.reads_counter or (previous is not None and tally.same_as(previous))

    def _given(self, number: int, state: State) -> State:
        """Return the inputs of a round of the body."""
        if self.is_scan:
            return [*state, *self.elements]
        counter = replace(
            ValueEstimate.of_array(np.array(number, np.int64), constant=True), constant=self.constant
        )
        going = replace(ValueEstimate.of_array(np.array(True), constant=True), constant=self.constant)
        return [counter, going, *state]

    def _split(self, outputs: list[ValueEstimate]) -> tuple[bool | None, State]:
        """Return the condition and the state that a round leaves."""
        if self.is_scan:
            return True, outputs[: len(self.state)]
        number = _number(outputs[0]) if outputs else None
        return None if number is None else bool(number), outputs[1 : 1 + len(self.state)]

    def _continued(self, inside: Tally, done: int, last: int, previous: Tally) -> list[ValueEstimate]:
        """Add the rounds after the visited ones: half of them cost as much as the one before, and half as the last one."""
        final = self.walk(self._given(last - 1, state_after(self._states, last - done - 1)))
        between = last - done - 1
        inside.add(previous, between - between // 2)
        inside.add(final.tally, 1 + between // 2)
        return final.outputs

    def _goes_on(self, done: int, number: int) -> bool | None:
        """Return whether the condition is true after the round of this number; None if that is not known."""
        outputs = self.walk(self._given(number, state_after(self._states, number - done))).outputs
        return self._split(outputs)[0]

    def _last_round(self, done: int) -> int | None:
        """Return the number of rounds: the count, or when the condition ends it before; None if nothing does."""
        high = self.count if self.count is not None else _NO_END
        # A Scan has no condition.
        if self.is_scan or done >= high:
            return high
        going = self._goes_on(done, high - 1)
        if going:
            return self.count
        low = done
        while low < high:
            middle = (low + high) // 2
            if self._goes_on(done, middle):
                low = middle + 1
            else:
                high = middle
        return low if going is None else low + 1

    def _unknown(self, state: State, outputs: list[ValueEstimate]) -> list[ValueEstimate]:
        """Return the outputs of a loop with an unknown number of rounds: only a state that no round changes is known."""
        same = [new if new == old else ValueEstimate() for new, old in zip(state, self.state, strict=False)]
        return [*same, *[ValueEstimate()] * max(0, len(outputs) - len(same))]

    def _results(self, outputs: list[ValueEstimate], state: State, rounds: int) -> list[ValueEstimate]:
        """Return the outputs of the loop: the state, and the outputs of all rounds joined along their axis."""
        first = len(self.state) + (not self.is_scan)
        return [*state, *(self._stacked(value, index, rounds) for index, value in enumerate(outputs[first:]))]

    def _stacked(self, value: ValueEstimate, place: int, rounds: int) -> ValueEstimate:
        if value.dims is None:
            return ValueEstimate(None, value.dtype)
        axis = self.axes[place] if place < len(self.axes) else 0
        axis += len(value.dims) + 1 if axis < 0 else 0
        dims = (*value.dims[:axis], rounds, *value.dims[axis:])
        return ValueEstimate(dims, value.dtype, constant=value.constant, text_bytes=value.text_bytes)


def _number(value: ValueEstimate | None) -> int | None:
    if value is None or value.values is None or value.values.size != 1:
        return None
    number = value.values.reshape(-1)[0]
    return int(number) if np.isfinite(number) else None
