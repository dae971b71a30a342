"""Compares value by value: each value that two models both have, computed from the same inputs.

Such a comparison separates ONNX Runtime's rounding from a fault. ONNX Runtime does not always round a node the same way. The
kernel of another opset may add in another order. A constant weight may be packed for another algorithm. Casts between float16 and
float32 may be fused away. If ONNX Runtime has no kernel for an operator's new version, it computes the standard's function body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.errors import MigrateError
from onnx_migrate.messages import listed
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verdicts import FirstDifference
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.compare.by_tensor import beyond_one_node
from onnx_migrate.verify.equivalence.common_values import ValueTypes, chunks, common_cuts, shapes_of
from onnx_migrate.verify.equivalence.inner_values import Reads, computed_by_both
from onnx_migrate.verify.equivalence.original_run import run_original
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.evaluators.kernels import computed_by_body
from onnx_migrate.verify.kernel.limits import KERNEL_ULPS, UNCLAIMED_ULPS
from onnx_migrate.verify.model_traits import is_random
from onnx_migrate.verify.settings import Settings

__all__ = [
    "BitDifference",
    "NodeSettings",
    "ValueDifference",
    "explained",
    "first_difference",
    "first_value",
    "stored",
]


_MEMORY = 1 << 27
"""How many bytes of values are compared in one run, by the sizes that inference finds."""

_Feeds = Sequence[Mapping[str, Any]]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


class NodeSettings:
    """The settings of two models, for the values that both compute by the same name."""

    def __init__(self, original: onnx.ModelProto, result: onnx.ModelProto) -> None:
        self._models = original, result
        self._tensors = _tensors(original), _tensors(result)
        self._producers = producers(original.graph), producers(result.graph)

    def difference(self, name: str, read: Iterable[str]) -> str:
        """Describe the first setting that differs in the node that computes a value from those in `read`; "" if none does.

        Constants are compared by name, if the models themselves contain their data. Attributes are compared if the operator is
        the same.
        """
        for constant in read:
            our_tensor, other = (tensors.get(constant) for tensors in self._tensors)
            if our_tensor is None or other is None:
                continue
            arrays = numpy_helper.to_array(our_tensor), numpy_helper.to_array(other)
            if difference := bit_difference(constant, *arrays):
                return f"the constant {difference}"
        nodes = [node_of[name] for node_of in self._producers]
        # Other operators have other attributes.
        if nodes[0].op_type != nodes[1].op_type or nodes[0].domain != nodes[1].domain:
            return ""
        one_has, other_has = (_floats(node, model) for node, model in zip(nodes, self._models, strict=True))
        for key in sorted(one_has.keys() & other_has.keys()):
            if one_has[key] != other_has[key]:
                return f"the attribute {key!r} is {other_has[key]:g}, not {one_has[key]:g}"
        return ""


def _floats(node: onnx.NodeProto, model: onnx.ModelProto) -> dict[str, float]:
    """Return the attributes of a node that are a float, with the defaults of its operator."""
    float_attributes: dict[str, float] = {}
    opset = next(
        (entry.version for entry in model.opset_import if is_onnx(entry.domain)),
        1,
    )
    if is_onnx(node.domain) and onnx.defs.has(node.op_type, opset):
        for name, attribute in onnx.defs.get_schema(node.op_type, opset).attributes.items():
            if attribute.default_value.type == AttributeProto.FLOAT:
                float_attributes[name] = attribute.default_value.f
    float_attributes.update(
        {entry.name: entry.f for entry in node.attribute if entry.type == AttributeProto.FLOAT}
    )
    return float_attributes


def stored(model: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return the tensors of the main graph's initializers and Constants, by the names of their values."""
    tensors_by_name = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            tensors_by_name.update(
                # Other forms of Constant hold no tensor.
                zip(node.output, (a.t for a in node.attribute if a.name == "value"), strict=False)
            )
    return tensors_by_name


def _tensors(model: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return the float tensors with data of their own, by the names of initializers and of Constant's outputs."""
    return {
        name: tensor
        for name, tensor in stored(model).items()
        if tensor.data_type in _FLOATS and tensor.data_location != TensorProto.EXTERNAL
    }


@dataclass(frozen=True)
class BitDifference:
    """The reason for a difference in bits: either the runtime's own rounding, with a `note`, or a fault, with a `cause`.

    `proved` is whether the difference of the outputs is shown to be rounding, so that others may differ by as much. `fault` is
    whether a node computes another value from the same inputs. Without a fault, the cause is that nothing could be compared.
    """

    note: str = ""
    cause: str = ""
    proved: bool = False
    fault: bool = False


@dataclass(frozen=True)
class ValueDifference:
    """The first value of two models that differs by more than rounding, and how; both "" if none does.

    `compared` are the values that were computed again from the original's own values. After a difference they are fewer.
    """

    name: str = ""
    problem: str = ""
    compared: frozenset[str] = frozenset()


def explained(original: Runnable, result: Runnable, feeds: _Feeds, outputs: Collection[str]) -> BitDifference:
    """Explain a difference in bits of these outputs: it is rounding if, from the same inputs, no value differs by more.

    Each of the outputs must be among the values that are computed again. An operator may have a kernel in one model and a
    function body in the other. Its values may then round differently by more, so the outputs decide.
    """
    # Only operators that one model computes in another way count.
    unlike = computed_by_body(original.model) ^ computed_by_body(result.model)
    try:
        difference = first_difference(original, result, feeds, claimed=True, unlike=unlike)
    except EvaluationError as error:
        return BitDifference(cause=f"the models cannot be compared value by value: {error}")
    if difference.problem:
        return BitDifference(cause=difference.problem, fault=bool(difference.name))
    # A value that was not computed again is not explained.
    if missing := sorted(set(outputs) - difference.compared):
        return BitDifference(
            cause=f"output {missing[0]!r} cannot be computed again from inner values of the original"
        )
    if unlike:
        return BitDifference(
            f"the runtime has a kernel for {listed(sorted(unlike))} at one of the"
            " opsets, and computes the standard's function body at the other. Given the same inputs, the values of all other"
            " operators differ only by rounding"
        )
    note = "this is the runtime's own rounding: given the same inputs, no value differs by more"
    return BitDifference(note, proved=True)


def first_difference(
    original: Runnable, result: Runnable, feeds: _Feeds, *, claimed: bool, unlike: Collection[str] = ()
) -> ValueDifference:
    """Return the first value of `result` that differs by more than rounding from the original's.

    Rounding is some units in the last place of the value's type at its largest value (kernel/rules.py). If identity is `claimed`,
    the function compares only values of nodes with the same constants and attributes. If it is not, a name may stand for another
    value, and the nodes that read the value compensate for that. Then only the last of several consecutive differing values
    counts. It is computed from the values before the first of them. Values of operators in `unlike` may differ, because the
    runtime computes those operators differently in the two models. Raises EvaluationError.
    """
    # Each run of a random operator gives other numbers.
    if is_random(original.model) or is_random(result.model):
        return ValueDifference(problem="the model contains random operators")
    types = ValueTypes(original.model, shapes_of(feeds[0]))
    settings, result_producers = NodeSettings(original.model, result.model), producers(result.model.graph)
    before = producers(original.model.graph)
    computed = result_producers.keys() & before.keys()
    outputs = [output.name for output in original.model.graph.output if output.name in computed]
    cuts = list(dict.fromkeys([*common_cuts(original.model, result.model, types), *outputs]))
    ulps = KERNEL_ULPS if claimed else UNCLAIMED_ULPS
    compared: set[str] = set()

    def differences(cuts: Sequence[str]) -> Iterator[tuple[str, str]]:
        # All values at once may need too much memory.
        reads, parts = Reads(result.model, cuts), chunks(cuts, types, _MEMORY)
        for name, ours, theirs in computed_by_both(original, result, parts, feeds, cuts, outputs):
            problem = ""
            compared.add(name)
            if result_producers[name].op_type not in unlike:
                halves = before[name].op_type == "Cast" and before[name].input[0] in types.halves
                our_value, other = (_rounded_to_half(value) if halves else value for value in (ours, theirs))
                problem = beyond_one_node(our_value, other, ulps)
            if claimed and not problem and bit_difference(name, ours, theirs):
                problem = settings.difference(name, reads.all_by([name]))
            if problem:
                maker = f"{result_producers[name].op_type} {node_label(result_producers[name])!r}"
                yield name, f"from the same inputs {maker} computes another {name!r}: {problem}"

    # With a claim of identity, the first difference is the fault.
    if claimed:
        name, problem = next(differences(cuts), ("", ""))
        return ValueDifference(name, problem, frozenset(compared))
    problems = dict(differences(cuts))
    both = Reads(original.model, cuts), Reads(result.model, cuts)
    # A value that is read by another differing value may be compensated there, so only the last one counts.
    followed = {read for name in problems for reads in both for read in reads.by([name])} & problems.keys()
    if followed:
        problems = dict(differences([name for name in cuts if name not in followed]))
    return ValueDifference(*next(iter(problems.items()), ("", "")), frozenset(compared))


def _rounded_to_half(values: Any) -> Any:
    """Return values that were cast from float16 as float16: ONNX Runtime omits a rounding between two nodes of float32."""
    if values.dtype.kind != "f":
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.float16)


def first_value(original: Runnable, result: Runnable, settings: Settings) -> FirstDifference:
    """Return the first value of `result` that differs, with its node and the problem; all are empty if none is found.

    Runs the models in this process.
    """
    try:
        feeds = [feed.inputs for feed in run_original(original, result, settings).feeds]
        difference = first_difference(original, result, feeds, claimed=False)
    except (EvaluationError, MigrateError):
        return FirstDifference(())
    node = producers(result.model.graph).get(difference.name)
    if node is None:
        return FirstDifference(())
    return FirstDifference((), node_label(node), node.op_type, difference.name, difference.problem)
