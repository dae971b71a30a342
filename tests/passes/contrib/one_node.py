"""Models of one node of another domain, and the one way they are judged: written with ai.onnx they compute the same numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.validity import check_result
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.ir_versions import minimal_ir_version
from tests.harness import make_variant, require_opset

Array = npt.NDArray[Any]

DOMAIN = "com.microsoft"


@dataclass(frozen=True)
class Case:
    """One node: its operator, the inputs by name (None where left out) and what of them is constant, and its attributes."""

    operator: str
    inputs: Mapping[str, Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Sequence[str] = ()
    outputs: Sequence[str] = ("y",)
    domain: str = DOMAIN
    opsets: Sequence[int] = (13, 21)
    within: float = 0.0
    """The largest difference allowed, of the largest value; 0 for every bit."""
    kernel: bool = True
    """Whether ONNX Runtime has a kernel of the operator; else `expected` has the outputs."""
    expected: Sequence[Array] | None = None
    label: str = ""
    fixed: bool = False
    """Whether it is refused where sizes or constants are unknown."""
    steps: float = 0.0
    """The share of elements of 8 bits that may differ by one."""

    def model(self, opset: int) -> onnx.ModelProto:
        """Return the model at an opset, whose outputs have no shapes."""
        names = [name if value is not None else "" for name, value in self.inputs.items()]
        given = {name: value for name, value in self.inputs.items() if value is not None}
        node = helper.make_node(
            self.operator, names, list(self.outputs), name="node", domain=self.domain, **self.attributes
        )
        graph = helper.make_graph(
            [node],
            "g",
            [_info(name, value) for name, value in given.items() if name not in self.constants],
            [_output(name) for name in self.outputs if name],
            [numpy_helper.from_array(given[name], name) for name in self.constants if name in given],
        )
        imports = [helper.make_opsetid("", opset)]
        imports += [helper.make_opsetid(self.domain, 1)] if self.domain else []
        found = helper.make_model(
            graph, opset_imports=imports, ir_version=min(max(8, minimal_ir_version(opset)), 10)
        )
        return typed(found) if self.kernel else _typed_like(found, self.expected or ())

    @property
    def feeds(self) -> dict[str, Array]:
        """The values of the inputs that are fed."""
        return {
            name: value
            for name, value in self.inputs.items()
            if value is not None and name not in self.constants
        }

    def __str__(self) -> str:
        """The label, for the name of a test."""
        given = ",".join(f"{name}={value}" for name, value in self.attributes.items())
        return f"{self.operator}-{self.label or given or 'plain'}"


def _info(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _output(name: str) -> onnx.ValueInfoProto:
    """Return an output whose type ONNX Runtime infers, where it can."""
    if name == "qk":
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
    return helper.make_empty_tensor_value_info(name)


def _typed_like(proto: onnx.ModelProto, outputs: Sequence[Array]) -> onnx.ModelProto:
    names = [value.name for value in proto.graph.output]
    del proto.graph.output[:]
    proto.graph.output.extend(_info(name, value) for name, value in zip(names, outputs, strict=True))
    return proto


def typed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with the types and shapes that ONNX Runtime infers for its outputs."""
    known = {item.name: item for item in session(proto).get_outputs()}
    for value in proto.graph.output:
        item = known[value.name]
        name = item.type.removeprefix("tensor(").removesuffix(")")
        dtype = onnx.TensorProto.DataType.Value(name.upper())
        shape = [size if isinstance(size, (int, str)) else None for size in item.shape]
        value.CopyFrom(helper.make_tensor_value_info(value.name, dtype, shape or None))
        if not shape:
            value.type.tensor_type.ClearField("shape")
    return proto


def session(proto: onnx.ModelProto, *, optimised: bool = False) -> Any:
    """Return a session of ONNX Runtime; optimised ones keep products with weights of few bits in float."""
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def written(proto: onnx.ModelProto, *domains: str) -> onnx.ModelProto:
    """Return a model without nodes of these domains, by default all that are known, which is held valid."""
    base = onnx.ModelProto.FromString(proto.SerializeToString())
    log = ChangeLog()
    result = make_pass("standard", domains=domains).run(Model(base), log)
    left = {node.domain for node in all_nodes(result.proto)} - {"", "local"}
    assert not left, left
    check_result(result, Model(proto))
    onnx.shape_inference.infer_shapes(result.proto, check_type=True)
    return result.proto


def outputs_of(case: Case, proto: onnx.ModelProto) -> list[Array]:
    """Return what ONNX Runtime computes of a case as it is, or what is expected."""
    if case.expected is not None:
        return list(case.expected)
    found: list[Array] = session(proto).run(None, case.feeds)
    return found


def difference(one: Iterable[Array], other: Iterable[Array]) -> float:
    """Return the largest difference of two lists of outputs, of the largest value; infinity where types or shapes differ."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return float("inf")
        if not a.size or a.tobytes() == b.tobytes():
            continue
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return float("inf")
        finite = np.isfinite(x)
        largest = np.abs(x[finite]).max(initial=0) or 1.0
        worst = max(worst, float(np.abs(x - y)[finite].max(initial=0) / largest))
    return worst


def within(case: Case, before: Sequence[Array], after: Sequence[Array]) -> bool:
    """Return whether outputs agree as far as a case asks for."""
    if case.steps and all(
        a.dtype.itemsize == 1 and a.shape == b.shape for a, b in zip(before, after, strict=True)
    ):
        gaps = [np.abs(a.astype(int) - b.astype(int)) for a, b in zip(before, after, strict=True)]
        return all(gap.max(initial=0) <= 1 and (gap > 0).mean() <= case.steps for gap in gaps)
    return difference(before, after) <= case.within


def check_case(case: Case, opset: int, variants: Sequence[str] = ("plain", "symbolic", "function")) -> None:
    """Hold that a case computes the same without foreign nodes, with optimisations and without."""
    require_opset(opset)
    proto = case.model(opset)
    before = outputs_of(case, proto)
    for variant in variants:
        variation, more = make_variant(proto, variant, {})
        result = written(variation)
        for optimised in (False, True):
            after = session(result, optimised=optimised).run(None, {**case.feeds, **more})
            gap = difference(before, after)
            assert within(case, before, after), f"{variant}, optimised {optimised}: {gap}"
