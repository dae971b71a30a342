"""`onnx-migrate explain CODE`: what a step, an error or a note means."""

from __future__ import annotations

import textwrap

import rich_click as click

from onnx_migrate.cli.options.completion import codes

__all__ = ["explain"]


@click.command()
@click.argument("code", shell_complete=codes)
def explain(code: str) -> int:
    """Print what CODE means.

    CODE is the code of an error or of a note, as in needs-rank, or an operator and the version it reaches, as
    in resize-11 or softmax-13: then what that step does, and why it is right.
    """
    from onnx_migrate.report.codes import CODES

    code = code.lower()
    if code in CODES:
        click.echo(f"{code}\n\n{textwrap.fill(CODES[code], 100)}")
        return 0
    from onnx_migrate.engine.registry import steps

    found = [step for step in steps() if step.code == code]
    if not found:
        near = [step.code for step in steps() if step.operator.lower() == code.partition("-")[0]]
        hint = f"there are {', '.join(near)}" if near else "codes stand at the start of messages"
        raise click.UsageError(f"there is nothing of code {code!r}; {hint}")
    for step in found:
        grade = f", {step.exactness.value}" if step.adapt else ""
        click.echo(f"{step.operator} {step.from_version} → {step.to}: {step.kind}{grade}\n\n{step.doc}")
        if step.hint:
            click.echo(f"\n{step.hint}")
    return 0
