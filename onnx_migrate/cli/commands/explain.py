"""`onnx-migrate explain CODE`: what an error, a note or the rewrite of an operator means."""

from __future__ import annotations

import textwrap

import rich_click as click

from onnx_migrate.cli.options.completion import codes

__all__ = ["explain"]


@click.command()
@click.argument("code", shell_complete=codes)
def explain(code: str) -> int:
    """Explain the code of an error or note, or how an operator is rewritten.

    CODE is the code at the start of an error message, as in needs-rank; or an operator and the version to which
    it is brought, as in resize-11 or softmax-13, with -down for the way back below that version, as in softmax-13-down:
    then what this step changes, and why the result computes the same. With -written-out, as in softplus-written-out, it is
    what replaces an operator that a runtime lacks.
    """
    from onnx_migrate.report.codes import CODES

    code = code.lower()
    if code in CODES:
        click.echo(f"{code}\n\n{textwrap.fill(CODES[code], 100, break_on_hyphens=False)}")
        return 0
    from onnx_migrate.engine.steps.decomposition_registry import Decomposition, decompositions
    from onnx_migrate.engine.steps.lowering_registry import Lowering, lowerings
    from onnx_migrate.engine.steps.registry import Step, steps

    known: list[Step | Lowering | Decomposition] = [*steps(), *lowerings(), *decompositions()]
    found = [step for step in known if step.code == code]
    if not found:
        near = [step.code for step in known if step.operator.lower() == code.partition("-")[0]]
        hint = (
            f"known for this operator: {', '.join(near)}"
            if near
            else "the code of an error follows 'onnx-migrate:' in its message"
        )
        raise click.UsageError(f"unknown code {code!r}; {hint}")
    for step in found:
        if isinstance(step, Decomposition):
            click.echo(f"{step.operator} where a runtime lacks it: {step.exactness.value}\n\n{step.doc}")
            continue
        grade = f", {step.exactness.value}" if step.adapt else ""
        if isinstance(step, Lowering):
            versions = f"{step.leaves} → {step.to_version or f'other operators, of opset {step.leaves - 1}'}"
        else:
            versions = f"{step.from_version} → {step.to}"
        click.echo(f"{step.operator} {versions}: {step.kind}{grade}\n\n{step.doc}")
        if step.hint:
            click.echo(f"\n{step.hint}")
    return 0
