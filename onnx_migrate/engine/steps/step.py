"""The record of a step of an operator: to a newer version, to an older one, or for a target that lacks the operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import onnx

from onnx_migrate.advice import Hint
from onnx_migrate.cached import cached_property
from onnx_migrate.engine.steps.step_docs import doc_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.schema import versions

__all__ = ["Direction", "LostTypes", "Step"]


class Direction(Enum):
    """The direction in which the engine takes a step, with its slug for `onnx-migrate explain` and the word for a claim."""

    UP = "{0.operator}-{0.version}", "compatible"
    """To a newer opset. The step reaches `version`."""
    DOWN = "{0.operator}-{0.version}-down", "unchanged"
    """To an older opset. The step leaves `version` and writes the form of the opset before."""
    WITHOUT = "{0.operator}-written-out", ""
    """To a target that lacks the operator. The step has no version, and writes nodes of the node's own opset."""

    def __init__(self, slug: str, claim: str) -> None:
        self.slug = slug
        self.claim = claim


class LostTypes(Enum):
    """What happens to a node whose element types the older version does not take."""

    EXACT = "exact"
    """The node computes in a wider type between Casts, and every result has the same bits. The node moves or compares values,
    or computes integers modulo a power of two."""
    ROUNDED = "rounded"
    """float16 and bfloat16 compute in float32 between Casts, which may round differently; other types are an error."""
    REFUSED = "refused"
    """The step refuses the node."""
    OWN = "own"
    """The adapter of the step sees the types unchanged and handles them itself."""


@dataclass(frozen=True, eq=False)
class Step:
    """A step of an operator, of one of three kinds.

    `adapt` rewrites the node. `refusal` says why no rewrite exists. With neither, a node is valid before and after the step
    and computes the same, once its types fit (see `types`).
    """

    direction: Direction
    domain: str
    operator: str
    """Its name. A step WITHOUT may have "*" for all operators of a domain that have no step of their own."""
    version: int = 0
    adapt: Callable[[onnx.NodeProto, Any], None] | None = None
    """It gets the node and a Rewriter; steps DOWN and WITHOUT get a LoweringRewriter."""
    refusal: str = ""
    hint: Hint = ""
    reason: str = ""
    exactness: Exactness = Exactness.EXACT
    types: LostTypes = LostTypes.REFUSED
    """The engine applies this to a step DOWN before `adapt` sees the node."""
    direct: int = 0
    """The first opset in which a step WITHOUT writes its best form; 0 if the form is the same at all opsets."""

    @property
    def older(self) -> int:
        """The version before `version`, 0 if there is none: a step UP starts there, a step DOWN ends there."""
        operator_versions = versions(self.domain, self.operator)
        at = operator_versions.index(self.version) if self.version in operator_versions else 0
        return operator_versions[at - 1] if at else 0

    @property
    def acts(self) -> bool:
        """Whether the step does more than claim that the same node computes the same bits."""
        return bool(self.adapt or self.refusal) or self.exactness is not Exactness.EXACT

    @cached_property
    def code(self) -> str:
        """Return the slug for `onnx-migrate explain`, such as "softmax-13-down"."""
        prefix = f"{self.domain}." if self.domain else ""
        return (prefix + self.direction.slug.format(self)).lower()

    @property
    def kind(self) -> str:
        """Which of the three the step is: "adapted", "refused", or the name of the claim."""
        return "adapted" if self.adapt else "refused" if self.refusal else self.direction.claim

    @property
    def doc(self) -> str:
        """Return the explanation of the step: the adapter's docstring, or the reason given for the claim or refusal."""
        return doc_of(self.adapt) if self.adapt else self.reason or self.refusal
