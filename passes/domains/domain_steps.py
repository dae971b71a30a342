"""The passes for ai.onnx.ml and for custom domains share this module: it converts nodes of one domain to another opset."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.engine.steps.lower import Lower
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.annotations import set_ir_version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.opsets import imported, onnx_opset, owners, set_onnx_opset
from onnx_migrate.standard.schema import ML, is_onnx

from ..target_opsets import Newer

__all__ = ["lift_domain", "lower_domain", "newest_import"]


def newest_import(proto: onnx.ModelProto, domain: str) -> int | None:
    """Return the newest opset of a domain that the model or a function of it imports, None if none does."""
    imported_versions = [imported(owner.opset_import, domain) for owner in owners(proto)]
    return max((version for version in imported_versions if version is not None), default=None)


def lift_domain(
    model: Model, domain: str, opset: int, log: ChangeLog, pass_name: str, *, newer: Newer, beside: int
) -> None:
    """Lift the nodes of a domain to an opset, in place; older bodies of a model of a newer opset are lifted to that.

    `newer` says what to do with a model of a newer opset: raise an error, keep it, or leave it to a lowering. `beside` is the
    ai.onnx opset for a body that imports none and gets ai.onnx nodes. Notes bear `pass_name`. Raises CannotMigrate.
    """
    proto = model.proto
    own = newest_import(proto, domain)
    if own is None:
        return
    # A newer opset stays if the caller allows it.
    target = max(opset, own) if newer == "keep" else opset
    if own > target and newer == "refuse":
        raise CannotMigrate(
            f"the model has opset {own} of {domain}, which is newer than the target {target}, and --no-lower forbids an"
            " older one",
            code="downgrade",
            hint=(
                Advice("remove --no-lower", options={"lower": True}),
                Advice(f"use {target}+ to keep newer models unchanged"),
            ),
        )
    versions = (imported(owner.opset_import, domain) for owner in owners(proto))
    # Nothing has to be lifted.
    if all(version is None or version >= target for version in versions):
        return
    # Steps look at the nodes before a node.
    for path in sort_model(proto):
        log.note(pass_name, "sorted", f"sorted the nodes of {path} topologically", subject=path)
    ir_version = max(proto.ir_version, minimal_ir_version(target, domain))
    lift = Lift(proto, target, log, domain=domain, pass_name=pass_name, beside=beside)
    got_onnx, dead = _rewrite(
        model, lift, domain, target, beside, lambda version: version < target, ir_version
    )
    # The bodies import ai.onnx for the nodes that steps wrote.
    if got_onnx:
        ir_version = max(ir_version, minimal_ir_version(beside))
    if own <= target:
        log.note(pass_name, _code(domain), f"{domain} {own} became {target}", subject="model")
    set_ir_version(proto, ir_version, log, pass_name)
    remove_dead_values(proto, dead)
    check_legal(proto, domain)


def lower_domain(
    model: Model, domain: str, opset: int, log: ChangeLog, pass_name: str, *, beside: int
) -> None:
    """Lower the nodes of a domain to an older opset, in place; older bodies stay. The arguments are those of `lift_domain`.

    Raises CannotMigrate, naming the nearest opset that can be reached, if a node has no equal at the target.
    """
    proto = model.proto
    newest = newest_import(proto, domain)
    # Older bodies need no step.
    if newest is None or newest <= opset:
        return
    lower = Lower(proto, log, pass_name, domain, target=opset)
    ir_version = max(4, proto.ir_version)
    _, dead = _rewrite(model, lower, domain, opset, beside, lambda version: version > opset, ir_version)
    if lower.refusals:
        nearest = max(refusal.nearest for refusal in lower.refusals)
        # The nearest opset is the one that no node refuses.
        first = next(refusal.error for refusal in lower.refusals if refusal.nearest == nearest)
        raise CannotMigrate(
            first.reason,
            code=first.code,
            where=first.where,
            hint=(
                *first.advice,
                Advice(
                    f"opset {nearest} of {domain} can be reached", options={"opset": f"{domain}={nearest}"}
                ),
            ),
        )
    log.note(pass_name, _code(domain), f"{domain} {newest} became {opset}", subject="model")
    remove_dead_values(proto, dead)
    check_legal(proto, domain)


def _code(domain: str) -> str:
    return "ml-opset" if domain == ML else "domain-opset"


def _rewrite(
    model: Model,
    visitor: Visitor,
    domain: str,
    target: int,
    beside: int,
    is_rewritten: Callable[[int], bool],
    ir_version: int,
) -> tuple[bool, set[str]]:
    """Rewrite the bodies of these versions; return whether one that imports no ai.onnx got nodes of it, and dead values."""
    proto, driver, got_onnx = model.proto, Driver(visitor), False
    bodies = scopes(proto, model.weights, result_ir_version=ir_version)
    for scope, owner in zip(bodies, owners(proto), strict=True):
        version = imported(owner.opset_import, domain)
        # Functions may import another version of the domain.
        if version is None or not is_rewritten(version):
            continue
        driver.body(scope, version)
        for entry in owner.opset_import:
            if entry.domain == domain:
                entry.version = target
        none = onnx_opset(owner.opset_import, ir_version=proto.ir_version) is None
        # A body of custom operators alone may import no ai.onnx.
        if none and any(is_onnx(node.domain) for node in scope.body.node):
            set_onnx_opset(owner, beside)
            got_onnx = True
    return got_onnx, driver.dead_values
