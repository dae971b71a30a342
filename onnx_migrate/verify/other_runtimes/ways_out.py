"""What a user can do about a result that another runtime does not run right."""

from __future__ import annotations

from onnx_migrate.standard.targets.read import find
from onnx_migrate.verdicts import RuntimeProof

__all__ = ["way_out"]


def way_out(failing: RuntimeProof) -> str:
    """Return the options that help: `--for`, if there is a table of the runtime, and the result without this proof."""
    name = failing.asked.partition("@")[0].partition("==")[0]
    target = f"--for {name} makes a model for it, " if find(name) else ""
    return f"{target}without --run-in {failing.asked} the result is written all the same"
