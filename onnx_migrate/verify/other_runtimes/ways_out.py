"""Advice for users if another runtime does not run a result right."""

from __future__ import annotations

from onnx_migrate.advice import Advice
from onnx_migrate.standard.targets.read import find
from onnx_migrate.verdicts import RuntimeProof

__all__ = ["ways_out"]


def ways_out(failing: RuntimeProof) -> tuple[Advice, ...]:
    """Return the options that help: the result without this proof, and `--for` if there is a table of the runtime."""
    name = failing.asked.partition("@")[0].partition("==")[0]
    unproved = Advice(f"without --run-in {failing.asked} the result is written all the same", tried=True)
    fitted = Advice(f"--for {name} makes a model for it")
    return (unproved, fitted) if find(name) else (unproved,)
