"""Names the first value of a model that differs from that of the same name in another model."""

from __future__ import annotations

from onnx_migrate.errors import MigrateError
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.verify.equivalence.reference_run import run_original
from onnx_migrate.verify.equivalence.same_inputs import first_differing
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.inputs.user_inputs import Feeds

__all__ = ["NOTHING", "first_value"]

NOTHING = ("", "", "", "")
"""What is returned where no value was found."""

_ULPS = 64.0
"""Units in the last place of a value's largest magnitude that two kernels may round differently."""


def first_value(
    before: Runnable, after: Runnable, feeds: Feeds | None, seed: int
) -> tuple[str, str, str, str]:
    """Return node, operator, value and problem of the first value of `after` that differs; `NOTHING` where none is found.

    Each value is computed in both models from what `before` computes for those upstream of it. Runs the models in this
    process.
    """
    old, new = before.proto(), after.proto()
    try:
        reference = run_original(before, old, new, feeds, seed)
        name, problem = first_differing(before, after, [feed.inputs for feed in reference.feeds], _ULPS)
    except (EvaluationError, MigrateError):
        return NOTHING
    node = producers(new.graph).get(name)
    return NOTHING if node is None else (node_label(node), node.op_type, name, problem)
