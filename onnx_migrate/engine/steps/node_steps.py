"""Functions for both lift and lowering: find the version whose form a node has, and call an adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.step import Step
from onnx_migrate.errors import CannotMigrate, InvalidModel, MigrateError, Where
from onnx_migrate.facts.node_inference import inference_refusal
from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.allowed_values import value_violation
from onnx_migrate.standard.ranks import number_violation, rank_violation
from onnx_migrate.standard.schema import (
    Signature,
    is_onnx,
    schema_violation,
    signature,
    signature_at,
    versions,
)

__all__ = ["apply_adapter", "is_of_domain", "node_name", "take", "true_version", "where_of"]

R = TypeVar("R", bound=Rewriter)


def is_of_domain(node: onnx.NodeProto, domain: str) -> bool:
    """Return whether a node is of `domain`; "" means ai.onnx."""
    return is_onnx(node.domain) if not domain else node.domain == domain


def node_name(node: onnx.NodeProto) -> str:
    """Return the name of a node in messages: its own, or that of its first output."""
    return str(node.name or next((name for name in node.output if name), ""))


def where_of(node: onnx.NodeProto, scope: Scope, version: int) -> Where:
    """Return the place of a node, with the version of its form at an opset."""
    form = signature_at(node.domain, node.op_type, version)
    return Where(scope.path, node_name(node), node.op_type, form.since_version if form else version)


def take(step: Step, rewriter: R) -> R:
    """Let a step edit the node of a rewriter, and return the rewriter."""
    if step.adapt is not None:
        apply_adapter(step.adapt, step.code, rewriter)
    rewriter.finish()
    rewriter.exactness = rewriter.exactness or step.exactness
    return rewriter


def apply_adapter(adapt: Callable[[onnx.NodeProto, R], None], code: str, rewriter: R) -> None:
    """Call an adapter. Raises CannotMigrate, `adapter-failed` or `out-of-memory`, for an exception that is not a MigrateError.

    If the node is not valid by its values, the axes of its inputs or onnx's inference, this is the cause: InvalidModel.
    """
    serialised_before = rewriter.node.SerializeToString()
    try:
        adapt(rewriter.node, rewriter)
    except MigrateError:
        raise
    except MemoryError as error:
        raise CannotMigrate(
            f"its replacement needs too much memory: {error}",
            code="out-of-memory",
            where=rewriter.where,
        ) from error
    except Exception as error:
        # The adapter may have changed the node, so the checks read the original.
        where, version = rewriter.where, rewriter.where.from_version or 1
        before = onnx.NodeProto.FromString(serialised_before)
        wrong = value_violation(before, version)
        if wrong:
            # An invalid node is the more likely cause than a fault of the adapter.
            raise InvalidModel(wrong, code="no-such-value", where=where) from error
        wrong = _rank_violation(before, rewriter.scope) or inference_refusal(rewriter.scope, before, version)
        if wrong:
            raise InvalidModel(wrong, code="invalid-node", where=where) from error
        raise CannotMigrate(
            f"the adapter {code} raised {type(error).__name__}: {error}", code="adapter-failed",
            where=where, hint=Advice("unless the node is invalid, this is a bug of onnx-migrate: please report it", tried=True),
        ) from error  # fmt: skip


def _rank_violation(node: onnx.NodeProto, scope: Scope) -> str | None:
    if not is_onnx(node.domain):
        return None
    shapes = [scope.value_type(name).shape if name else None for name in node.input]
    for name, numbers in _numbers(node, scope):
        wrong = number_violation(name, numbers, None if not shapes or shapes[0] is None else len(shapes[0]))
        if wrong:
            return wrong
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    return rank_violation(node.op_type, [None if shape is None else len(shape) for shape in shapes], axis)


def _numbers(node: onnx.NodeProto, scope: Scope) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield the sizes and axes of a node: of attributes and of constant inputs, by their names."""
    for attribute in node.attribute:
        yield attribute.name, attribute.ints or [attribute.i]
    for index, name in enumerate(node.input):
        array = scope.constant(name) if name else None
        if array is None or not array.size:
            continue
        if array.dtype.kind in "iu" or (node.op_type == "Resize" and array.dtype.kind == "f"):
            yield f"input {index}", [array.min().item(), array.max().item()]


def true_version(
    node: onnx.NodeProto, scope: Scope, opset: int, target: int, log: ChangeLog, pass_name: str
) -> int:
    """Return the opset by whose schema the node is valid: that of the body, else the nearest older or newer version.

    Raises InvalidModel for a node that fits the schema of no opset. Raises CannotMigrate for a node that the standard
    withdrew, if a lift to `target` cannot make it valid.
    """
    form = signature_at(node.domain, node.op_type, opset)
    # Most nodes have the form of their opset.
    if form and not form.deprecated and _complaint(node, form, opset) is None:
        return opset
    operator_versions = versions(node.domain, node.op_type)
    if form and form.deprecated and form.since_version == operator_versions[0]:
        # GroupNormalization-18 was deprecated in the release that introduced it; exporters wrote it nevertheless.
        form = replace(form, deprecated=False)
        # Only a later version of the operator is valid.
        valid = next((version for version in operator_versions if version > form.since_version), None)
        if target >= form.since_version and (valid is None or target < valid):
            raise CannotMigrate(
                "the standard deprecated this version in the release that introduced it, and onnx's checker rejects it",
                code="no-equal",
                where=Where(scope.path, node_name(node), node.op_type, form.since_version),
                hint=Advice(
                    f"version {valid} is valid: migrate to opset {valid} or newer", options={"opset": valid}
                )
                if valid
                else "",
            )
    complaint = _complaint(node, form, opset) if form else None
    if form and complaint is None:
        return opset
    where = Where(scope.path, node_name(node), node.op_type, opset)
    if not operator_versions:
        raise CannotMigrate(
            f"{node.domain or 'ai.onnx'} has no operator {node.op_type}", code="unknown-operator", where=where,
            hint="a custom operator must be in a domain of its own" if is_onnx(node.domain) or node.domain == "ai.onnx.ml"
            else f"the plug-in for {node.domain} must declare it, or register its schema",
        )  # fmt: skip
    older = [
        version for version in reversed(operator_versions) if version < (form.since_version if form else 0)
    ]
    newer = [version for version in operator_versions if version > opset]
    if form and schema_violation(node, form) is None:
        # Only a value is not allowed: a later version may allow it, unless its inputs mean something else.
        newer = [v for v in newer if signature(node.domain, node.op_type, v).max_inputs == form.max_inputs]
    for version in (*older, *newer):
        if _complaint(node, signature(node.domain, node.op_type, version), version) is None:
            log.note(
                pass_name,
                "other-version",
                f"{Where(scope.path, node_name(node), node.op_type)} has the form of version {version} of its"
                f" operator, which opset {opset} of the model does not allow; we converted it from version {version}",
                subject=node_name(node),
                severity="warning",
            )
            return version
    if form and schema_violation(node, form) is None:
        return opset  # a value that no version has: the adapters refuse it by name, or the check of the result does
    reason = (
        complaint
        or f"the operator was introduced in opset {operator_versions[0]}, but the model imports opset {opset}"
    )
    raise InvalidModel(reason, code="invalid-node", where=where)


def _complaint(node: onnx.NodeProto, form: Signature, version: int) -> str | None:
    return schema_violation(node, form) or value_violation(node, version)
