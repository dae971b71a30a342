"""LSTM, GRU and RNN: the steps of sequences of a known length, each a Gemm for the state, and the activations.

The equations come from the standard (onnx/defs/rnn/defs.cc). As in ONNX Runtime's kernels, one product multiplies the
inputs of all steps by W. Those kernels approximate some activations, so numbers are equal only within a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import Value
from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.messages import count_and_verb, count_of
from onnx_migrate.rewrite.change_log import Exactness

from .cost import multiplications
from .evaluate import BranchFails, Env, Evaluator, Held, handles

_DEFAULT = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}

_PLAIN = frozenset(("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"))
"""Activations without alpha and beta."""

Activation = Callable[[Value], Value]


@dataclass
class _Direction:
    """One direction of a recurrent node: its parts of the weights, and the state, which a step changes.

    `inputs` has, by step, the input's part of the gates: the rows of X * W^T and the biases. `c` is None except for LSTM.
    """

    at: Evaluator
    operator: str
    names: Sequence[str]
    x: Value
    options: dict[str, Any]
    number: int

    def __post_init__(self) -> None:
        self.op, names = self.at.op, self.names
        # This form multiplies the bias of the state with the reset gate.
        self._r_bias = self._biases()[1] if self.options.get("linear_before_reset") else None
        self._h, self.c = map(self._state, names[5:7])
        self._peepholes: tuple[Value, ...] = ()
        if self.operator == "LSTM" and names[7]:
            whole = self._part(names[7])
            # The input has the weights of three peepholes.
            size = whole.need_static()[0] // 3
            self._peepholes = tuple(
                self.op.Slice(whole, [size * at_], [size * (at_ + 1)], [0]) for at_ in range(3)
            )
        self._r = self._part(names[2])
        self._act = self._activations()
        self.inputs = self._gates_of_inputs()

    def _part(self, name: str) -> Value:
        """Return the part of a weight that is for this direction."""
        value = self.at.value(name)
        if self.options.get("direction") == b"bidirectional":
            value = self.op.Slice(value, [self.number], [self.number + 1], [0])
        return self.op.Squeeze(value, [0])

    def _state(self, name: str) -> Value | None:
        """Return an initial state, None if the node does not have it."""
        if name and self.options.get("layout"):
            name = self.op.Transpose(self.at.value(name), perm=[1, 0, 2]).name
        return self._part(name) if name else None

    def _biases(self) -> tuple[Value | None, Value | None]:
        """Return the sum of both biases. A GRU with `linear_before_reset` needs the last gate's state bias separately."""
        if not self.names[3]:
            return None, None
        op, both = self.op, self._part(self.names[3])
        size = both.need_static()[0] // 2
        w, r = op.Slice(both, [0], [size], [0]), op.Slice(both, [size], [2 * size], [0])
        if not self.options.get("linear_before_reset"):
            return w + r, None
        # A GRU has three gates.
        hidden = size // 3
        w_h = op.Slice(w, [2 * hidden], [size], [0])
        gates = op.Slice(w, [0], [2 * hidden], [0]) + op.Slice(r, [0], [2 * hidden], [0])
        return op.Concat(gates, w_h, axis=0), op.Slice(r, [2 * hidden], [size], [0])

    def _gates_of_inputs(self) -> list[Value]:
        shape = self.x.need_static()
        bias, _ = self._biases()
        w = self._part(self.names[1])
        rows = self.x.reshape(shape[0] * shape[1], shape[2])
        if bias is None:
            bias = self.op.constant(np.zeros(1), self.x)
        product = self.op.Gemm(rows, w, bias, transB=1)
        return [product] if shape[0] == 1 else self.at.split(product, [shape[1]] * shape[0], 0)

    def _activations(self) -> list[Activation]:
        options, default = self.options, _DEFAULT[self.operator]
        named = [name.decode() for name in options.get("activations", [])] or list(default) * (
            self.number + 1
        )
        for name in named:
            if name not in _PLAIN | {"HardSigmoid"}:
                self.at.refuse(f"no other operators replace its activation {name}", code="no-equal")
        # Those that have alpha and beta, and no others, take them from the lists in turn.
        alphas, betas = (list(options.get(f"activation_{name}", ())) for name in ("alpha", "beta"))
        activations: list[Activation] = []
        for name in named:
            settings = {}
            if name == "HardSigmoid":
                settings = {"alpha": alphas.pop(0) if alphas else 0.2, "beta": betas.pop(0) if betas else 0.5}
            activations.append(partial(getattr(self.op, name), **settings))
        return activations[self.number * len(default) : (self.number + 1) * len(default)]

    def _limit(self, value: Value) -> Value:
        limit = self.options.get("clip")
        return self.op.Clip(value, -limit, limit) if limit else value

    def step(self, inputs: Value) -> Value:
        """Write a step and return the new state. `inputs` is the part of the gates that comes from the input."""
        self._h = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.operator](inputs)
        return self._h

    def _gates(self, inputs: Value, r: Value) -> Value:
        if self._h is None:
            return inputs
        return self.op.Gemm(self._h, r, inputs, transB=1)

    def _split(self, value: Value, count: int, axis: int) -> list[Value]:
        return self.at.split(value, [value.need_static()[axis] // count] * count, axis)

    def _rnn(self, inputs: Value) -> Value:
        return self._act[0](self._limit(self._gates(inputs, self._r)))

    def _lstm(self, inputs: Value) -> Value:
        i, o, f, g = self._split(self._gates(inputs, self._r), 4, 1)
        sigmoid, squash, last = self._act
        if self._peepholes and self.c is not None:
            i, f = i + self._peepholes[0] * self.c, f + self._peepholes[2] * self.c
        i, g = sigmoid(self._limit(i)), squash(self._limit(g))
        added = i * g
        if self.c is None:
            self.c = added
        else:
            # Coupled gates share one computation.
            forget_gate = 1 - i if self.options.get("input_forget") else sigmoid(self._limit(f))
            self.c = forget_gate * self.c + added
        if self._peepholes:
            o = o + self._peepholes[1] * self.c
        return sigmoid(self._limit(o)) * last(self.c)

    def _gru(self, inputs: Value) -> Value:
        sigmoid, squash = self._act
        x_z, x_r, x_h = self._split(inputs, 3, 1)
        # A zero state needs no product with it.
        if self._h is None and self._r_bias is None:
            return (1 - sigmoid(self._limit(x_z))) * squash(self._limit(x_h))
        if self._h is None:
            self._h = x_z - x_z
        r_z, r_r, r_h = self._split(self._r, 3, 0)
        z = sigmoid(self._limit(self._gates(x_z, r_z)))
        r = sigmoid(self._limit(self._gates(x_r, r_r)))
        if self.options.get("linear_before_reset"):
            state = self.op.Gemm(
                self._h, r_h, self._r_bias if self._r_bias is not None else x_h - x_h, transB=1
            )
            new = squash(self._limit(x_h + r * state))
        else:
            new = squash(self._limit(self.op.Gemm(r * self._h, r_h, x_h, transB=1)))
        return (1 - z) * new + z * self._h


@handles("LSTM", "GRU", "RNN")
def recurrent(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Write the steps of a recurrent node."""
    options = attributes_of(node)
    start = len(at.rw.preceding)
    names = [at.tensor(env, name) for name in node.input] + [""] * 8
    turned = bool(options.get("layout"))
    x = at.op.Transpose(at.value(names[0]), perm=[1, 0, 2]) if turned else at.value(names[0])
    shape = x.static
    # The number of steps must be known.
    if shape is None:
        at.refuse(f"the dims of {names[0]!r} are not fixed", hint=FIX_DIMS)
    if len(shape) != 3 and at.guard is not None:
        raise BranchFails(
            f"{node.op_type} {at.where.node!r} reads {count_of(len(shape), 'axis')}, and needs 3"
        )
    _check_lengths(at, names[4], shape[0])
    kind = options.get("direction", b"forward").decode()
    at.bound_rounds(shape[0] * (2 if kind == "bidirectional" else 1), "step")
    columns, last_h, last_c = [], [], []
    for number in range(2 if kind == "bidirectional" else 1):
        direction = _Direction(at, node.op_type, names, x, options, number)
        # The reverse direction reads the input from its end.
        order = range(shape[0] - 1, -1, -1) if kind == "reverse" or number else range(shape[0])
        states = {step: direction.step(direction.inputs[step]).name for step in order}
        columns.append(at.stack([states[step] for step in range(shape[0])], 0))
        last_h.append(states[order[-1]])
        last_c.append(direction.c.name if direction.c is not None else "")
    y = [at.stack(columns, 1), at.stack(last_h, 0)] + (
        [at.stack(last_c, 0)] if node.op_type == "LSTM" else []
    )
    if turned:
        perms = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
        y = [at.op.Transpose(at.value(name), perm=perm).name for name, perm in zip(y, perms, strict=False)]
    at.rw.exactness = Exactness.EQUIVALENT
    cost = sum(multiplications(written_node, at.rw) for written_node in at.rw.preceding[start:])
    at.expanded(f"its {count_and_verb(shape[0], 'step', 'are')} written out, {cost:,} multiplications", start)
    return list(y)


def _check_lengths(at: Evaluator, name: str, steps: int) -> None:
    lengths = at.known(name)
    if name and (lengths is None or not bool((lengths == steps).all())):
        at.refuse(
            f"its sequence_lens, {name!r}, are not known to be the {count_of(steps, 'step')} of the input"
        )
