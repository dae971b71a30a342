"""Simpler forms of one model: by the schemas of its opsets, with types of its values, and without unread values; its size."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from onnx_migrate.facts.shapes import dims_of
from onnx_migrate.model.model import Model
from onnx_migrate.reduction.bodies_outside import bodies_outside
from onnx_migrate.reduction.candidate import Candidate, node_count, operators_of
from onnx_migrate.reduction.plain_form import fewer_settings
from onnx_migrate.reduction.ports import Ports
from onnx_migrate.reduction.recording import Values
from tests.harness import model

X = np.ones(4, np.float32)


def test_the_opset_of_the_domain_says_which_attributes_are_optional() -> None:
    # LabelEncoder-1 has the attributes classes_strings, default_int64 and default_string; version 2 has these three.
    encoder = "LabelEncoder <keys_floats = [1.0, 2.0], values_floats = [3.0, 4.0], default_float = 0.0> (x)"
    proto = model(
        '<ir_version: 8, opset_import: ["com.acme": 1, "": 17, "ai.onnx.ml": 2]>'
        f" g (float[4] x) => (float[4] y) {{ a = Relu (x) b = com.acme.Unknown <alpha = 1.0> (a) y = ai.onnx.ml.{encoder} }}"
    )
    candidate = Candidate(Model(proto), {"x": X})
    all_at_once = next(fewer_settings(candidate))(candidate)

    assert all_at_once is not None
    assert [len(node.attribute) for node in all_at_once.proto.graph.node] == [0, 1, 0]


def test_values_have_recorded_dims_if_the_declared_ones_are_wrong() -> None:
    proto = model("17 (float[N] x) => (float[N] y) { a = Relu (x) b = Neg (x) y = Add (a, b) }")
    for name, size in (("a", 3), ("b", "N")):
        proto.graph.value_info.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size]))
    ports = Ports(Candidate(Model(proto), {"x": X}, Values({"a": X, "b": X})))

    declared = [ports.declared(name) for name in "ab"]
    assert [port and dims_of(port) for port in declared] == [(4,), ("N",)]


def sparse(name: str) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.array([2.0], np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1], np.int64)), [4])


def test_sparse_weights_of_the_other_branch_do_not_stay() -> None:
    proto = model("""17 (float[4] x, bool c) => (float[4] y) {
      y = If (c) <then_branch = t () => (float[4] p) { p = Add (x, s) },
                  else_branch = e () => (float[4] q) { q = Add (x, u) }>
    }""")
    proto.graph.sparse_initializer.extend([sparse("s"), sparse("u")])
    branches = list(bodies_outside(Candidate(Model(proto), {"x": X, "c": np.array(True)})))

    names = [
        [tensor.values.name for tensor in branch.candidate.proto.graph.sparse_initializer]
        for branch in branches
    ]
    assert sorted(names) == [["s"], ["u"]]


def test_nodes_of_default_graphs_count() -> None:
    proto = model("""<ir_version: 9, opset_import: ["": 17, "local": 1]> g (float[4] x) => (float[4] y) { y = local.f (x) }
      <domain: "local", opset_import: ["": 17]> f (x) => (y) { y = Relu (x) }""")
    default = proto.functions[0].attribute_proto.add(name="body", type=AttributeProto.GRAPH)
    default.g.CopyFrom(model("17 (float[4] h) => (float[4] k) { e = Exp (h) k = Neg (e) }").graph)

    assert node_count(proto) == sum(operators_of(proto).values()) == 4
