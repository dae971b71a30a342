"""Decomposes operators that a target lacks, in all bodies; inlines functions whose bodies need facts only their calls know."""

from __future__ import annotations

from onnx_migrate.engine.steps.decompose import Decompose, Forms, Newer, ReadAs, Types, Unfit
from onnx_migrate.engine.steps.lower_model import NEEDS_CALLER, Lowered, inline_refused
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.standard.opsets import body_opsets, onnx_opset

__all__ = ["body_scopes", "decompose_model"]


def decompose_model(
    model: Model,
    unfit: Unfit,
    log: ChangeLog,
    pass_name: str,
    *,
    newer: Newer | None = None,
    types: Types | None = None,
    read_as: ReadAs | None = None,
    forms: Forms | None = None,
    lacking_code: str = "target-lacks",
) -> Lowered:
    """Replace the nodes of a sorted model that do not fit by others, in place unless functions are inlined.

    The opsets stay. The new nodes have no operator whose form at the opset `newer` rejects. A node with an element type that
    `types` lacks computes in a wider one, if that changes no bit. `read_as` may give the opset of a node's form; then the
    node is treated as one of that opset. `forms` finds decompositions, by default the registered ones. `lacking_code` is the
    error code for operators that others cannot replace. The model is useless if there are refusals; these are in the order
    of the nodes.
    """
    trial = log.trial()
    # Inlining a function may bring nodes that do not fit, so the loop looks again.
    while any(
        unfit(node, scope) or (read_as is not None and opset is not None and read_as(node, opset))
        for top, (_, opset) in zip(body_scopes(model), body_opsets(model.proto), strict=True)
        for scope in top.nested()
        for node in scope.body.node
    ):
        # Only a model with functions may have to start anew, so only its copy is needed.
        whole = model.copy() if model.proto.functions else model
        visitor = Decompose(
            model.proto,
            log,
            pass_name,
            unfit=unfit,
            newer=newer,
            types=types,
            read_as=read_as,
            forms=forms,
            lacking_code=lacking_code,
        )
        driver = Driver(visitor)
        for scope, (_, version) in zip(body_scopes(model), body_opsets(model.proto), strict=True):
            if version is not None:
                driver.body(scope, version)
        if not visitor.refusals:
            # Replaced nodes may have been the last readers of constants.
            remove_dead_values(model.proto, driver.dead_values)
            break
        wanting = {
            lowering_refusal.function
            for lowering_refusal in visitor.refusals
            if lowering_refusal.function is not None and lowering_refusal.error.code in NEEDS_CALLER
        }
        if not wanting:
            return Lowered(model, tuple(visitor.refusals))
        # The next round inlines the functions that refused, and starts from the unchanged model.
        trial.roll_back()
        model = inline_refused(whole, wanting, log, pass_name)
        trial = log.trial()
    return Lowered(model, ())


def body_scopes(model: Model) -> list[Scope]:
    """Return the scopes of a model whose opsets stay: constants are added as its IR version and opset allow."""
    proto = model.proto
    opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version)
    # Below opset 9, Constant nodes hold floats only, so that the others become initializers.
    version = proto.ir_version if (opset or 0) >= 9 else max(4, proto.ir_version)
    return scopes(proto, model.weights, result_ir_version=version)
