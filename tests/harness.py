"""Models of tests, from text and in five settings, and how they are run and their outputs compared (tests/steps.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser

from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.verify.evaluators.quirks.integer_sums import saturates, with_exact_sums
from tests.support.skips import Elsewhere, skip, skip_if
from tests.support.versions import RUNTIME

Feeds = Mapping[str, np.ndarray[Any, Any]]

ONNX_NEWEST = onnx.defs.onnx_opset_version()
"""The newest opset that the installed onnx knows; tests of newer ones are skipped."""


SUPPORTED = 28
"""The newest opset that tests know: with an older onnx, what its reference evaluator cannot run is skipped."""


def loads(proto: onnx.ModelProto) -> bool:
    """Tell whether ONNX Runtime loads a model, optimised."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def _ort_runs(opset: int, ir: int = 8) -> bool:
    header = f'<ir_version: {ir}, opset_import: ["": {opset}]>'
    return loads(parser.parse_model(f"{header} g (float x) => (float y) {{ y = Relu (x) }}"))


ORT_NEWEST = next(opset for opset in range(min(26, ONNX_NEWEST), 1, -1) if _ort_runs(opset))
"""The newest opset that the installed ONNX Runtime runs; newer targets are checked with onnx.reference."""

needs_negative_axes = skip_if(
    RUNTIME < (1, 27),
    "ONNX Runtime before 1.27 does not load a Resize with negative axes, or crashes as it runs",
    Elsewhere.NEWEST,
)

VARIANTS = ("plain", "symbolic", "unranked", "if", "function")

NUMPY_TYPES = (
    "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
"""The element types of tensors that numpy has too, strings aside."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the type of numpy for the name of an element type in ONNX's text format."""
    return np.dtype({"float": "float32", "double": "float64", "string": "object"}.get(name, name))


def text_type(dtype: Any) -> str:
    """Return the name of an element type in ONNX's text format for a type of numpy."""
    name = np.dtype(dtype).name
    return {"float32": "float", "float64": "double", "object": "string"}.get(name, name)


FLOATS = ["float", "double", "float16"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = [*SIGNED, *UNSIGNED]


def model(text: str | onnx.ModelProto) -> onnx.ModelProto:
    """Return a model from ONNX's text format, or a copy of the one given.

    A text may have an opset in place of its header and of the graph's name: "13 (float x) => (float y) { y = Relu (x) }",
    and "7 ir3 (..." for another IR version than that opset's.
    """
    if isinstance(text, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(text)
        return copy
    short = SHORT.match(text)
    if short:
        local = 'domain: "local"' in text
        imports = f'"": {short[1]}, "local": 1' if local else f'"": {short[1]}'
        text = f"<ir_version: {short[2] or _ir_version(int(short[1]), local)}, opset_import: [{imports}]> g {text[short.end() :]}"
    parsed = parser.parse_model(text)
    require_opset(onnx_opset(parsed.opset_import, ir_version=parsed.ir_version) or 1)
    return parsed


SHORT = re.compile(r"\s*(\d+)(?: ir(\d+))?\s*(?=\()")


def _ir_version(opset: int, local: bool) -> int:
    """Return the IR version of an opset, and none that older releases of ONNX Runtime refuse or that has no functions."""
    newest = 10 if opset < 25 else 13
    return 3 if opset < 7 else max(8 if local else 4, min(minimal_ir_version(opset), newest))


def require_opset(opset: int) -> None:
    """Skip the test that runs when the installed onnx does not know an opset."""
    if opset > ONNX_NEWEST:
        skip(
            f"onnx {onnx.__version__} knows opsets up to {ONNX_NEWEST}, and this needs {opset}",
            Elsewhere.NEWEST,
        )


def require_ir_of(opset: int) -> None:
    """Skip the test that runs when the installed ONNX Runtime does not load the IR version of an opset."""
    ir = minimal_ir_version(opset)
    if not _ort_runs(17, ir):
        skip(f"ONNX Runtime {ort.__version__} does not load IR version {ir}", Elsewhere.NEWEST)


NOT_BY_REFERENCE = {"Resize": 99, "Upsample": 99, "Softmax": 13, "LogSoftmax": 13, "Hardmax": 13}
"""Operators that onnx.reference computes wrongly below an opset: it has one implementation for all versions."""


def run(proto: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Run a model once, as `runner` says."""
    return runner(proto)(feeds)


def runner(proto: onnx.ModelProto) -> Callable[[Feeds], list[Any]]:
    """Return what runs a model in ONNX Runtime without optimisations, or in onnx.reference where that cannot load it.

    Fails for a model of NOT_BY_REFERENCE operators that ONNX Runtime does not load.
    """
    opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 1
    if opset > ORT_NEWEST:
        return lambda feeds: reference(proto, feeds, None)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(
            right_anywhere(proto).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        wrong = [node.op_type for node in proto.graph.node if opset < NOT_BY_REFERENCE.get(node.op_type, 0)]
        if wrong:
            raise AssertionError(
                f"ONNX Runtime does not load it, and onnx.reference is wrong for {wrong[0]} at opset {opset}"
                f" (give `expected`): {error}"
            ) from error
        cause = error
        return lambda feeds: reference(proto, feeds, cause)

    def in_session(feeds: Feeds) -> list[Any]:
        # Copies: ONNX Runtime's training BatchNormalization behind a Reshape writes into what it is fed (1.31).
        given = {name: value if isinstance(value, list) else np.array(value) for name, value in feeds.items()}
        return list(session.run(None, given))

    return in_session


def right_anywhere(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model, or one that computes the same where ONNX Runtime's sums of 8-bit integers saturate."""
    copy = model(proto)
    return copy if saturates() and with_exact_sums(copy) else proto


def reference(proto: onnx.ModelProto, feeds: Feeds, cause: Exception | None) -> list[Any]:
    """Run a model in onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    if cause is not None and any(node.op_type == "LpNormalization" for node in proto.graph.node):
        skip(
            f"onnx.reference sums x^p without absolute values, and ONNX Runtime says: {cause}",
            Elsewhere.NEVER,
        )
    try:
        return list(ReferenceEvaluator(proto).run(None, dict(feeds)))
    except Exception as error:
        message = f"no evaluator runs it: {error} (ONNX Runtime: {cause})"
        if ONNX_NEWEST < SUPPORTED:
            skip(f"onnx {onnx.__version__}: {message}", Elsewhere.NEWEST)
        raise AssertionError(message) from error


def random_feeds(proto: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Signed random values for every input without an initializer; symbolic dims are 3."""
    rng = np.random.default_rng(seed)
    given = {tensor.name for tensor in proto.graph.initializer}
    feeds = {}
    for value in proto.graph.input:
        if value.name in given:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else 3 for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind == "b":
            feeds[value.name] = np.asarray(rng.random(shape) < 0.5)
        elif dtype.kind in "iu":
            feeds[value.name] = np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape), dtype)
        else:
            feeds[value.name] = np.asarray(rng.standard_normal(shape) * 3, dtype)
    return feeds


def same(
    expected: Sequence[Any],
    actual: Sequence[Any],
    what: str,
    rtol: float = 0.0,
    atol: float = 0.0,
    *,
    signs: bool = False,
) -> None:
    """Hold two lists of outputs (tensors or sequences of tensors) equal; all NaNs are one, and with `signs` the zeros are two."""
    assert len(expected) == len(actual), f"{what}: {len(expected)} and {len(actual)} outputs"
    for index, (old, new) in enumerate(zip(expected, actual, strict=True)):
        label = f"{what}: output {index}"
        if isinstance(old, list):
            same(old, new, label, rtol, atol, signs=signs)
            continue
        if old is None or new is None:
            assert old is new, label
            continue
        a, b = np.asarray(old), np.asarray(new)
        if a.dtype.kind in "OU" and b.dtype.kind in "OU":  # ONNX Runtime gives objects, onnx.reference either
            a, b = a.astype(object), b.astype(object)
        assert a.dtype == b.dtype, f"{label} is {a.dtype} and became {b.dtype}"
        assert a.shape == b.shape, f"{label} is {a.shape} and became {b.shape}"
        if a.dtype.kind != "O" and a.tobytes() == b.tobytes():
            continue  # numpy takes ten times as long to say so
        if (rtol or atol) and a.dtype.kind != "O":
            np.testing.assert_allclose(b, a, rtol=rtol, atol=atol, err_msg=label)
            continue
        np.testing.assert_array_equal(b, a, err_msg=label)
        if signs and a.dtype.kind == "f":
            defined = ~np.isnan(a)
            np.testing.assert_array_equal(
                np.signbit(b)[defined], np.signbit(a)[defined], err_msg=f"{label}, signs"
            )


def same_bits(
    expected: Sequence[Any], actual: Sequence[Any], what: str, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Hold two lists of outputs equal, the signs of zeros too."""
    same(expected, actual, what, rtol, atol, signs=True)


def make_variant(base: onnx.ModelProto, variant: str, feeds: Feeds) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return the same computation in another setting, and what to feed it."""
    copy = model(base)
    given = dict(feeds)
    if variant == "symbolic":
        _each_shape(copy, lambda shape, name: _symbolic(shape, name))
    elif variant == "unranked":
        _unrank(copy)
    elif variant == "if":
        copy, condition = _in_if(copy)
        given = {**given, condition: np.array(True)}
    elif variant == "function":
        copy = _in_function(copy)
    elif variant != "plain":
        raise ValueError(variant)
    return copy, given


def _each_shape(proto: onnx.ModelProto, change: Any) -> None:
    del proto.graph.value_info[:]
    given = {tensor.name for tensor in proto.graph.initializer}
    for value in (*proto.graph.input, *proto.graph.output):
        if value.name not in given and value.type.HasField("tensor_type"):
            change(value.type.tensor_type.shape, value.name)


def _symbolic(shape: onnx.TensorShapeProto, name: str) -> None:
    for axis, dim in enumerate(shape.dim):
        dim.dim_param = f"{name}_{axis}"


def _unrank(proto: onnx.ModelProto) -> None:
    """Drop every shape; the inputs reach the nodes as the outer values of a graph that knows only their types."""
    del proto.graph.value_info[:]
    given = {tensor.name for tensor in proto.graph.initializer}
    for value in (*proto.graph.input, *proto.graph.output):
        if value.name not in given and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _in_if(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """Both branches hold the whole graph and read the inputs from around them; the name is the condition's."""
    graph = proto.graph
    condition = "condition"
    while any(condition in (*node.input, *node.output) for node in graph.node):
        condition += "_"
    branches = []
    for label in ("then_branch", "else_branch"):
        inner = onnx.GraphProto(name=label)
        inner.node.extend(graph.node)
        renamed = {value.name: f"{label}_{value.name}" for value in graph.output}
        _rename(inner, renamed)
        for value in graph.output:
            inner.output.add().CopyFrom(value)
            inner.output[-1].name = renamed[value.name]
        branches.append(helper.make_attribute(label, inner))
    node = onnx.NodeProto(
        op_type="If", name="choice", input=[condition], output=[v.name for v in graph.output]
    )
    node.attribute.extend(branches)
    del graph.node[:]
    graph.node.append(node)
    graph.input.append(helper.make_tensor_value_info(condition, TensorProto.BOOL, []))
    return proto, condition


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        for field in (node.input, node.output):
            for index, name in enumerate(field):
                field[index] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename(attribute.g, names)


def _in_function(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The graph becomes the body of a local function of the model's opset; initializers become Constant nodes."""
    graph = proto.graph
    given = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in given]
    outputs = [value.name for value in graph.output]
    function = onnx.FunctionProto(name="Body", domain="local", input=inputs, output=outputs)
    function.opset_import.extend(proto.opset_import)
    for tensor in graph.initializer:
        function.node.append(
            helper.make_node(
                "Constant", [], [tensor.name], value=numpy_helper.from_array(numpy_helper.to_array(tensor))
            )
        )
    function.node.extend(graph.node)
    proto.functions.append(function)
    kept = [value for value in graph.input if value.name not in given]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.input.extend(kept)
    graph.node.append(helper.make_node("Body", inputs, outputs, domain="local", name="call"))
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.ir_version = max(proto.ir_version, 8)
    return proto
