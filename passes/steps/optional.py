"""Optionals: below opset 15 their contents replace them; below opset 18 a tensor is not an optional."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.plugins import LostTypes, LoweringRewriter, compatible, lowering

from .control_flow import readers
from .sequences import pass_on

compatible("OptionalHasElement", 18, reason="the input may be omitted, or be a tensor or sequence")

compatible("OptionalGetElement", 18, reason="the input may be a tensor or sequence")

_DISSOLVED = frozenset(("Identity", "OptionalGetElement", "OptionalHasElement"))

_HINT = "let the model take and return the element itself"


@lowering("OptionalHasElement", leaves=18, types=LostTypes.OWN)
def optional_has_element_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The input is an optional; for a tensor, a sequence or an omitted input, the answer is a constant.

    Why equal: version 18 says true for tensors and sequences, false without an input.

    Limits: the type of the input must be known.
    """
    source = rw.input(0)
    if source and _is_optional(rw, source):
        return
    _answer(node, rw, bool(source))


@lowering("OptionalGetElement", leaves=18, types=LostTypes.OWN)
def optional_get_element_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The input is an optional; a tensor or a sequence is passed on by Identity.

    Limits: the type of the input must be known.
    """
    if not _is_optional(rw, rw.input(0)):
        rw.rename("Identity")


@lowering("Optional", leaves=15, types=LostTypes.OWN)
def optional_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no optionals: the nodes that read this one read its content.

    Limits: onnx-migrate refuses an optional that is an output, or that If, Loop or a function reads.
    """
    for operator, _ in readers(rw.scope, rw.output(0)):
        if operator not in _DISSOLVED:
            use = f"is read by {operator}" if operator else "is an output"
            rw.refuse(
                f"there are no optionals below opset 15, and {rw.output(0)!r} {use}",
                code="no-equal",
                hint=_HINT,
            )
    rw.dissolve([rw.input(0)] if rw.input(0) else [])


@lowering("OptionalHasElement", leaves=15, types=LostTypes.OWN)
def optional_has_element_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no optionals: the answer for one that is built in the same body is a constant.

    Limits: the optional must be built in the same body.
    """
    _answer(node, rw, bool(_held(rw)))


@lowering("OptionalGetElement", leaves=15, types=LostTypes.OWN)
def optional_get_element_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no optionals: Identity passes on the content of an optional that is built in the same body.

    Limits: the optional must be built in the same body, and hold something.
    """
    held = _held(rw)
    if not held:
        rw.refuse("takes the element of an empty optional", code="no-equal")
    rw.rename("Identity")
    node.input[0] = held[0]


@lowering("Identity", leaves=16, types=LostTypes.OWN)
def identity_16_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Optionals are passed on without an Identity.

    What changes: all that reads a copy of an optional reads the optional itself.

    Limits: onnx-migrate refuses a copy of an optional that is an output.
    """
    if rw.scope.value_type(rw.input(0)).container.startswith("optional"):
        pass_on(rw, "an optional")


def _is_optional(rw: LoweringRewriter, value: str) -> bool:
    value_type = rw.scope.value_type(value)
    if not value_type.container and value_type.dtype is None:
        rw.refuse(
            f"whether {value!r} is an optional is unknown",
            code="needs-type",
            hint="declare it in the value_info of the model",
        )
    return value_type.container.startswith("optional")


def _held(rw: LoweringRewriter) -> tuple[str, ...]:
    held = rw.elements(rw.input(0))
    if held is None:
        rw.refuse(
            f"there are no optionals below opset 15, and of {rw.input(0)!r} it is not known what it holds",
            code="no-equal",
            hint=_HINT,
        )
    return held


def _answer(node: onnx.NodeProto, rw: LoweringRewriter, answer: bool) -> None:
    rw.rename("Identity")
    del node.input[:]
    node.input.append(rw.constant(np.array(answer), "has_element"))
