"""`onnx-migrate explain CODE`: what a step or an error code means."""

from __future__ import annotations

import rich_click as click

__all__ = ["explain"]


@click.command(no_args_is_help=True)
@click.argument("code")
def explain(code: str) -> int:
    """Print what a step does and why it is right.

    CODE is an operator and the version it reaches, as in resize-11 or softmax-13.
    """
    from onnx_migrate.engine.registry import steps

    found = [step for step in steps() if step.code == code.lower()]
    if not found:
        near = sorted(step.code for step in steps() if step.operator.lower() == code.lower().partition("-")[0])
        hint = f"; there are {', '.join(near)}" if near else ""
        raise click.UsageError(f"there is no step {code!r}{hint}")
    for step in found:
        kind = "adapted" if step.adapt else "refused" if step.refusal else "compatible"
        grade = f", {step.exactness.value}" if step.adapt else ""
        click.echo(f"{step.operator} {step.from_version} → {step.to}: {kind}{grade}\n\n{step.doc}")
        if step.hint:
            click.echo(f"\n{step.hint}")
    return 0
