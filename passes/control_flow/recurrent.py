"""LSTM, GRU and RNN: the steps of sequences of a known length, each a Gemm for the state, and the activations.

The equations are those of the standard (onnx/defs/rnn/defs.cc). As in ONNX Runtime's kernels, the inputs of all steps are
multiplied by W at once; its kernels approximate some activations, so that numbers are equal within tolerance only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.steps.formula import Op, Value
from onnx_migrate.messages import count_of
from onnx_migrate.rewrite.change_log import Exactness

from .cost import multiplications
from .evaluate import BranchFails, Env, Evaluator, Held, handles

_DEFAULT = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}

_PLAIN = frozenset(("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"))
"""Activations without alpha and beta."""

Activation = Callable[[Value], Value]


@dataclass
class _Direction:
    """What one direction of a recurrent node computes with, and its state."""

    at: Evaluator
    operator: str
    r: Value
    r_bias: Value | None
    peepholes: tuple[Value, ...]
    act: Sequence[Activation]
    limit: Activation
    options: dict[str, Any]
    h: Value | None
    c: Value | None

    @property
    def op(self) -> Op:
        return self.at.op

    def step(self, inputs: Value) -> Value:
        """Write a step, of which `inputs` is the part of the gates that the input gives; return the new state."""
        self.h = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.operator](inputs)
        return self.h

    def _gates(self, inputs: Value, r: Value) -> Value:
        if self.h is None:
            return inputs
        return self.op.Gemm(self.h, r, inputs, transB=1)

    def _split(self, value: Value, count: int, axis: int) -> list[Value]:
        return self.at.split(value, [value.need_static()[axis] // count] * count, axis)

    def _rnn(self, inputs: Value) -> Value:
        return self.act[0](self.limit(self._gates(inputs, self.r)))

    def _lstm(self, inputs: Value) -> Value:
        i, o, f, g = self._split(self._gates(inputs, self.r), 4, 1)
        sigmoid, squash, last = self.act
        if self.peepholes and self.c is not None:
            i, f = i + self.peepholes[0] * self.c, f + self.peepholes[2] * self.c
        i, g = sigmoid(self.limit(i)), squash(self.limit(g))
        added = i * g
        if self.c is None:
            self.c = added
        else:
            kept = 1 - i if self.options.get("input_forget") else sigmoid(self.limit(f))
            self.c = kept * self.c + added
        if self.peepholes:
            o = o + self.peepholes[1] * self.c
        return sigmoid(self.limit(o)) * last(self.c)

    def _gru(self, inputs: Value) -> Value:
        sigmoid, squash = self.act
        x_z, x_r, x_h = self._split(inputs, 3, 1)
        if self.h is None and self.r_bias is None:
            return (1 - sigmoid(self.limit(x_z))) * squash(self.limit(x_h))
        if self.h is None:
            self.h = x_z - x_z
        r_z, r_r, r_h = self._split(self.r, 3, 0)
        z = sigmoid(self.limit(self._gates(x_z, r_z)))
        r = sigmoid(self.limit(self._gates(x_r, r_r)))
        if self.options.get("linear_before_reset"):
            state = self.op.Gemm(self.h, r_h, self.r_bias if self.r_bias is not None else x_h - x_h, transB=1)
            new = squash(self.limit(x_h + r * state))
        else:
            new = squash(self.limit(self.op.Gemm(r * self.h, r_h, x_h, transB=1)))
        return (1 - z) * new + z * self.h


@handles("LSTM", "GRU", "RNN")
def recurrent(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Write the steps of a recurrent node."""
    options = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    start = len(at.rw.preceding)
    names = [at.tensor(env, name) for name in node.input] + [""] * 8
    turned = bool(options.get("layout"))
    x = at.op.Transpose(at.value(names[0]), perm=[1, 0, 2]) if turned else at.value(names[0])
    shape = x.static
    if shape is None:
        at.refuse(
            f"the dims of {names[0]!r} are not fixed", hint="fix the dims of the model's inputs with --fix"
        )
    if len(shape) != 3 and at.guard is not None:
        raise BranchFails(
            f"{node.op_type} {at.where.node!r} reads {count_of(len(shape), 'axis')}, and needs 3"
        )
    _check_lengths(at, names[4], shape[0])
    kind = options.get("direction", b"forward").decode()
    directions = 2 if kind == "bidirectional" else 1
    columns, last_h, last_c = [], [], []
    for number in range(directions):
        direction = _direction(at, node.op_type, names, options, number, directions)
        order = range(shape[0] - 1, -1, -1) if kind == "reverse" or number else range(shape[0])
        parts = _inputs(at, node.op_type, names, x, shape, number, options)
        states = {step: direction.step(parts[step]).name for step in order}
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
    cost = sum(multiplications(item, at.rw) for item in at.rw.preceding[start:])
    at.expanded(f"its {count_of(shape[0], 'step')} are written out, {cost:,} multiplications", start)
    return list(y)


def _check_lengths(at: Evaluator, name: str, steps: int) -> None:
    lengths = at.known(name)
    if name and (lengths is None or not bool((lengths == steps).all())):
        at.refuse(
            f"its sequence_lens, {name!r}, are not known to be the {count_of(steps, 'step')} of the input"
        )


def _part(at: Evaluator, name: str, number: int, count: int) -> Value:
    """Return the part of a weight that is for one direction."""
    value = at.value(name)
    if count > 1:
        value = at.op.Slice(value, [number], [number + 1], [0])
    return at.op.Squeeze(value, [0])


def _biases(
    at: Evaluator, operator: str, names: Sequence[str], number: int, count: int, separate: bool
) -> tuple[Value | None, Value | None]:
    """Return the bias of the inputs, with that of the state, but for the last gate of a GRU that wants that apart."""
    if not names[3]:
        return None, None
    op, both = at.op, _part(at, names[3], number, count)
    size = both.need_static()[0] // 2
    w, r = op.Slice(both, [0], [size], [0]), op.Slice(both, [size], [2 * size], [0])
    if not separate:
        return w + r, None
    hidden = size // 3
    w_h = op.Slice(w, [2 * hidden], [size], [0])
    gates = op.Slice(w, [0], [2 * hidden], [0]) + op.Slice(r, [0], [2 * hidden], [0])
    return op.Concat(gates, w_h, axis=0), op.Slice(r, [2 * hidden], [size], [0])


def _inputs(
    at: Evaluator,
    operator: str,
    names: Sequence[str],
    x: Value,
    shape: tuple[int, ...],
    number: int,
    options: dict[str, Any],
) -> list[Value]:
    """Return what the input gives to the gates of each step: the rows of X * W^T and the biases."""
    op, count = at.op, 2 if options.get("direction") == b"bidirectional" else 1
    separate = bool(options.get("linear_before_reset"))
    bias, _ = _biases(at, operator, names, number, count, separate)
    w = _part(at, names[1], number, count)
    rows = x.reshape(shape[0] * shape[1], shape[2])
    if bias is None:
        bias = op.constant(np.zeros(1), x)
    product = op.Gemm(rows, w, bias, transB=1)
    if shape[0] == 1:
        return [product]
    return at.split(product, [shape[1]] * shape[0], 0)


def _direction(
    at: Evaluator, operator: str, names: Sequence[str], options: dict[str, Any], number: int, count: int
) -> _Direction:
    op = at.op
    separate = bool(options.get("linear_before_reset"))
    _, r_bias = _biases(at, operator, names, number, count, separate) if separate else (None, None)
    states = []
    for name in names[5:7]:
        turned = op.Transpose(at.value(name), perm=[1, 0, 2]).name if name and options.get("layout") else name
        states.append(_part(at, turned, number, count) if turned else None)
    peepholes: tuple[Value, ...] = ()
    if operator == "LSTM" and names[7]:
        whole = _part(at, names[7], number, count)
        size = whole.need_static()[0] // 3
        peepholes = tuple(op.Slice(whole, [size * at_], [size * (at_ + 1)], [0]) for at_ in range(3))
    limit = options.get("clip")
    clip: Activation = (lambda value: op.Clip(value, -limit, limit)) if limit else (lambda value: value)
    r = _part(at, names[2], number, count)
    c = states[1] if operator == "LSTM" else None
    act = _activations(at, operator, options, number)
    return _Direction(at, operator, r, r_bias, peepholes, act, clip, options, states[0], c)


def _activations(at: Evaluator, operator: str, options: dict[str, Any], number: int) -> list[Activation]:
    default = _DEFAULT[operator]
    named = [name.decode() for name in options.get("activations", [])] or list(default) * (number + 1)
    for name in named:
        if name not in _PLAIN | {"HardSigmoid"}:
            at.refuse(f"its activation {name} is not written with others", code="no-equal")
    # Those that have alpha and beta, and no others, take them from the lists in turn.
    alphas, betas = (list(options.get(f"activation_{name}", ())) for name in ("alpha", "beta"))
    found: list[Activation] = []
    for name in named:
        given = {}
        if name == "HardSigmoid":
            given = {"alpha": alphas.pop(0) if alphas else 0.2, "beta": betas.pop(0) if betas else 0.5}
        found.append(partial(getattr(at.op, name), **given))
    return found[number * len(default) : (number + 1) * len(default)]
