"""What the passes for ai.onnx.ml and for custom domains share: nodes of one domain are brought to one of its opsets."""

from __future__ import annotations

from typing import Literal

import onnx

from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.engine.steps.lower import Lower
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.opsets import imported, onnx_opset, set_onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["lift_domain", "lower_domain", "newest_import"]

Owner = onnx.ModelProto | onnx.FunctionProto


def newest_import(proto: onnx.ModelProto, domain: str) -> int | None:
    """Return the newest opset of a domain that the model or a function of it imports, None if none does."""
    found = [imported(owner.opset_import, domain) for owner in _owners(proto)]
    return max((version for version in found if version is not None), default=None)


def lift_domain(
    model: Model,
    domain: str,
    opset: int,
    log: ChangeLog,
    pass_name: str,
    *,
    newer: Literal["refuse", "keep", "lower"],
    beside: int,
    code: str,
) -> None:
    """Lift the nodes of a domain to an opset, in place; older bodies of a model of a newer opset are lifted to that.

    `newer` says what happens to a model of a newer opset: it is refused, stays, or waits for a lowering. `beside` is the ai.onnx
    opset for a body that imports none and gets ai.onnx nodes. The log gets a note with this `code`. Raises CannotMigrate.
    """
    proto = model.proto
    owners = _owners(proto)
    versions = [imported(owner.opset_import, domain) for owner in owners]
    own = newest_import(proto, domain)
    if own is None:
        return
    target = max(opset, own) if newer == "keep" else opset
    if own > target and newer == "refuse":
        raise CannotMigrate(
            f"the model has opset {own} of {domain}, which is newer than the target {target}, and lowering was not asked"
            " for",
            code="downgrade",
            hint=f"leave --no-lower out, or ask for {target}+ to keep newer models as they are",
        )
    if all(version is None or version >= target for version in versions):
        return
    for path in sort_model(proto):
        log.note(pass_name, "sorted", f"sorted the nodes of {path} topologically", subject=path)
    ir_version = max(proto.ir_version, minimal_ir_version(target, domain))
    driver = Driver(Lift(proto, target, log, domain=domain, pass_name=pass_name, beside=beside))
    bodies = scopes(proto, model.weights, result_ir_version=ir_version)
    for scope, owner, version in zip(bodies, owners, versions, strict=True):
        if version is None or version >= target:
            continue
        driver.body(scope, version)
        _set_import(owner, domain, target)
        if _gets_ai_onnx(owner, scope.body, proto.ir_version):
            set_onnx_opset(owner, beside)
            ir_version = max(ir_version, minimal_ir_version(beside))
    if own <= target:
        log.note(pass_name, code, f"{domain} {own} became {target}", subject="model")
    if ir_version != proto.ir_version:
        log.note(
            pass_name, "ir-version", f"IR version {proto.ir_version} became {ir_version}", subject="model"
        )
        proto.ir_version = ir_version
    remove_dead_values(proto, driver.dead_values)
    check_legal(proto, domain)


def lower_domain(
    model: Model, domain: str, opset: int, log: ChangeLog, pass_name: str, *, beside: int, code: str
) -> None:
    """Lower the nodes of a domain to an older opset, in place; older bodies stay. The arguments are those of `lift_domain`.

    Raises CannotMigrate, naming the nearest opset that can be reached, if a node has no equal at the target.
    """
    proto = model.proto
    owners = _owners(proto)
    versions = [imported(owner.opset_import, domain) for owner in owners]
    newest = newest_import(proto, domain)
    if newest is None or newest <= opset:
        return
    driver = Driver(lower := Lower(proto, log, pass_name, domain, target=opset))
    bodies = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
    for scope, owner, version in zip(bodies, owners, versions, strict=True):
        if version is None or version <= opset:
            continue
        driver.body(scope, version)
        _set_import(owner, domain, opset)
        if _gets_ai_onnx(owner, scope.body, proto.ir_version):
            set_onnx_opset(owner, beside)
    if lower.refusals:
        nearest = max(item.nearest for item in lower.refusals)
        first = next(item.error for item in lower.refusals if item.nearest == nearest)
        hint = f"{first.hint}; " if first.hint else ""
        raise CannotMigrate(
            first.reason,
            code=first.code,
            where=first.where,
            hint=f"{hint}opset {nearest} of {domain} can be reached",
        )
    log.note(pass_name, code, f"{domain} {newest} became {opset}", subject="model")
    remove_dead_values(proto, driver.dead_values)
    check_legal(proto, domain)


def _owners(proto: onnx.ModelProto) -> list[Owner]:
    return [proto, *proto.functions]


def _set_import(owner: Owner, domain: str, version: int) -> None:
    for entry in owner.opset_import:
        if entry.domain == domain:
            entry.version = version


def _gets_ai_onnx(owner: Owner, body: onnx.GraphProto | onnx.FunctionProto, ir_version: int) -> bool:
    """Return whether a body that imports no ai.onnx has nodes of it."""
    none = onnx_opset(owner.opset_import, ir_version=ir_version) is None
    return none and any(is_onnx(node.domain) for node in body.node)
