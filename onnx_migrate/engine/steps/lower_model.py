"""Lowers all bodies of a model, and inlines the functions whose bodies need facts that only their callers know."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.engine.steps.lower import Lower
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal
from onnx_migrate.engine.steps.widened_constants import widen_constants
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.graphs import FunctionKey, function_key, nested_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.opsets import body_opsets, newest_onnx_opset, set_onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["NEEDS_CALLER", "Lowered", "inline_refused", "lower_model"]

NEEDS_CALLER = frozenset(("needs-constant", "needs-type", "needs-rank", "needs-shape", "needs-value"))
"""Codes of refusals that inlining a function may resolve, since a call knows more than the function."""


_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


@dataclass(frozen=True)
class Lowered:
    """The model after a lowering, of no use if there are refusals; these are in the order of the nodes."""

    model: Model
    refusals: tuple[LoweringRefusal, ...]


def lower_model(
    model: Model, target: int, log: ChangeLog, pass_name: str, *, write_out: bool = False
) -> Lowered:
    """Lower all bodies of a sorted model that are newer than `target`, in place unless functions are inlined.

    With `write_out`, operators without an exact older form are decomposed if a decomposition is registered.
    """
    widen_constants(model, target, log, pass_name)
    trial = log.trial()
    while True:
        whole = model.copy() if model.proto.functions else model
        refusals = _lower(model, target, log, write_out)
        wanting = {
            lowering_refusal.function
            for lowering_refusal in refusals
            # Such a refusal may vanish in the body of the caller, where more is known.
            if lowering_refusal.function is not None and lowering_refusal.error.code in NEEDS_CALLER
        }
        if not refusals and target < 9:
            wanting = {
                function_key(function) for function in model.proto.functions if _holds_integers(function)
            }
        # The types of what a function returns are inferred only if it has the opset of its caller.
        hidden = _differ(whole.proto) and any(
            lowering_refusal.error.code in NEEDS_CALLER for lowering_refusal in refusals
        )
        if not (wanting or hidden):
            return Lowered(model, tuple(refusals))
        trial.roll_back()
        try:
            _lift_older(whole, log)
            model = inline_refused(whole, wanting, log, pass_name) if wanting else whole
        except CannotMigrate:
            trial.roll_back()
            if refusals:
                return Lowered(model, tuple(refusals))
            raise
        trial = log.trial()


def _lower(model: Model, target: int, log: ChangeLog, write_out: bool) -> list[LoweringRefusal]:
    proto = model.proto
    driver = Driver(lower := Lower(proto, log, target=target, write_out=write_out))
    top_scopes = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
    for scope, (owner, version) in zip(top_scopes, body_opsets(proto), strict=True):
        if version is not None and version > target:
            driver.body(scope, version)
            set_onnx_opset(owner, target)
    # A model with refusals is thrown away.
    if not lower.refusals:
        remove_dead_values(proto, driver.dead_values)
    return lower.refusals


def _holds_integers(function: onnx.FunctionProto) -> bool:
    """Return whether a function has a constant that is no float: Constant-1 takes none, and only graphs have initializers."""
    return any(
        node.op_type == "Constant"
        and is_onnx(node.domain)
        and any(a.name == "value" and a.t.data_type not in _FLOATS for a in node.attribute)
        for node in nested_nodes(function.node)
    )


def _differ(proto: onnx.ModelProto) -> bool:
    """Return whether the bodies of a model import different opsets."""
    return len({version for _, version in body_opsets(proto) if version is not None}) > 1


def _lift_older(model: Model, log: ChangeLog) -> None:
    """Lift all bodies in place to the newest opset of any."""
    newest = newest_onnx_opset(model.proto)
    driver = Driver(Lift(model.proto, newest, log))
    top_scopes = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
    for scope, (owner, version) in zip(top_scopes, body_opsets(model.proto), strict=True):
        if version is not None and version < newest:
            driver.body(scope, version)
            set_onnx_opset(owner, newest)
    remove_dead_values(model.proto, driver.dead_values)


def inline_refused(model: Model, functions: set[FunctionKey], log: ChangeLog, pass_name: str) -> Model:
    """Inline functions with refused nodes; the bodies have one opset, which the inliner needs."""
    names = sorted(f"{domain}:{name}" for domain, name, *_ in functions)
    log.note(
        pass_name,
        "inlined",
        f"inlined the function{'s' if len(names) > 1 else ''} {', '.join(names)}, because only its"
        " calls say which types and attributes its body has",
        subject=names[0],
    )
    return inline_functions(model, functions)
