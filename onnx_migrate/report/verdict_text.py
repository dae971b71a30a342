"""The results of a verification as lines of markup: the headline, each output, runs at other sizes and in other runtimes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from onnx_migrate.messages import count_of, listed, markup_of, share_text
from onnx_migrate.report.data import AS_DECLARED
from onnx_migrate.verdicts import Comparison, DynamicProof, RuntimeProof, Trial, Verdict

__all__ = [
    "claim_lines",
    "condition_lines",
    "grouped",
    "headline",
    "metric_lines",
    "output_lines",
    "proof_lines",
    "run_line",
    "short_verdict_lines",
    "sizes_line",
    "trial_lines",
    "verdict_lines",
]

_COLOURS = {"verified": "green", "unverified": "yellow", "differs": "red"}

_SAME = 3
"""Notes whose first 3 words are equal count as one kind."""

_WORST, _WORST_VALUES = 5, 10
"""Numbers of outputs and of inner values that a short report lists, those that differ most first."""


def headline(verdict: Verdict | None) -> str:
    """Return the verdict in one line."""
    if verdict is None:
        return "[bold yellow]not verified[/]: verification was turned off"
    kind = verdict.kind.value
    return f"[bold {_COLOURS[kind]}]{kind}[/]{markup_of(verdict.short.removeprefix(kind))}"


def run_line(verdict: Verdict) -> str:
    """Return how many outputs a runtime compared, on how many inputs, and its name; "" if nothing was compared."""
    if not verdict.evaluator:
        return ""
    inputs = f" on {count_of(len(verdict.feeds), 'set of inputs')}" if verdict.feeds else ""
    outputs = (
        f"compared {count_of(len(verdict.comparisons), 'output')}" if verdict.comparisons else "compared"
    )
    return f"{outputs}{inputs} in {verdict.evaluator}"


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield all lines of a verdict below its headline."""
    yield from _first_difference(verdict)
    yield from _worst_values(verdict)
    if verdict.verified and verdict.setting:
        yield f"  {markup_of(verdict.setting)}"
    yield from claim_lines(verdict)
    if verdict.statements and verdict.comparisons:
        yield f"  each output, compared with {markup_of(verdict.compared_with)}:"
    yield from output_lines(verdict.comparisons)
    yield from metric_lines(verdict, everything=True)
    for note in (*map(str, verdict.rounded), *verdict.notes):
        yield f"  {markup_of(note)}"


def claim_lines(verdict: Verdict, *, short: bool = False) -> Iterator[str]:
    """Yield the statements of a verdict, and the models that stood for others in the comparison.

    A `short` report has the statements with figures alone: its headline has the others, and -v the models. Without statements
    the headline has the models too.
    """
    # Statements with figures contain a colon.
    statements = [statement for statement in verdict.statements if not short or ":" in statement.text]
    stand_ins = verdict.stand_ins if verdict.statements and not short else ()
    for text in (*map(str, statements), *stand_ins):
        yield f"  {markup_of(text)}"


def _first_difference(verdict: Verdict) -> Iterator[str]:
    if verdict.first_difference is not None:
        yield f"  {markup_of(str(verdict.first_difference))}"
        yield f"    {markup_of(verdict.first_difference.problem)}"
        yield from (f"    why: {markup_of(reason)}" for reason in verdict.first_difference.reasons)


def _worst_values(verdict: Verdict) -> Iterator[str]:
    unlike = [item for item in verdict.values if item.error]
    worst = sorted(unlike, key=lambda item: -item.error)[:_WORST_VALUES]
    if worst:
        yield f"  the largest errors of {count_of(len(verdict.values), 'inner tensor')}, as a share of the largest value:"
    for item in worst:
        yield f"    {item.error:8.2g}  {markup_of(item.value)}  {item.operator} {markup_of(repr(item.node))}"


def short_verdict_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the most important lines below the headline: the first value that differs, and the outputs that differ."""
    yield from _first_difference(verdict)
    yield from _worst_values(verdict)
    yield from claim_lines(verdict, short=True)
    if setting := run_line(verdict):
        yield f"  {markup_of(setting)}"
    unlike = sorted(
        # Identical outputs need no line.
        (item for item in verdict.comparisons if not item.identical and not _told(item, verdict)),
        key=lambda item: (not item.problem, not item.doubt, -item.largest_relative),
    )
    yield from output_lines(unlike[:_WORST], spread=False)
    if len(unlike) > _WORST:
        yield f"  and {count_of(len(unlike) - _WORST, 'more output')} with other bits"
    for output in sorted(verdict.rounded, key=lambda output: -output.excess)[:_WORST]:
        yield f"  {markup_of(str(output))}"
    yield from metric_lines(verdict)
    for text, more in grouped(verdict.notes):
        yield f"[yellow]note[/]: {markup_of(text)}{f' ({more} more of this kind)' if more else ''}"


def metric_lines(verdict: Verdict, *, everything: bool = False) -> Iterator[str]:
    """Yield a line of metrics for each output; a short report has the worst, and only for inputs of the user's."""
    metrics = sorted(
        verdict.metrics, key=lambda item: (item.equal == 1, math.inf if item.snr is None else item.snr)
    )
    if not metrics or not (everything or verdict.on_own_inputs):
        return
    yield f"  over {count_of(max(item.inputs for item in metrics), 'set of inputs')}:"
    for item in metrics if everything else metrics[:_WORST]:
        yield f"    {markup_of(item.output)}: {item.short}"
        if everything and item.more:
            yield f"      {item.more}"
    if not everything and len(metrics) > _WORST:
        yield f"    and {count_of(len(metrics) - _WORST, 'more output')}; -v shows all"


def _told(item: Comparison, verdict: Verdict) -> bool:
    """Whether the headline has the problem of an output."""
    return bool(item.problem) and item.problem in verdict.reason


def output_lines(comparisons: Iterable[Comparison], *, spread: bool = True) -> Iterator[str]:
    """Yield a line for each output, and of one that differs also where and by how much, unless `spread` is False."""
    for comparison in comparisons:
        shape = "×".join(map(str, comparison.shape_after or ())) or "scalar"
        left_out = (
            f"; {comparison.left_out:,} of {comparison.elements:,} elements are not compared: they are undefined or unstable"
            if comparison.left_out
            else ""
        )
        yield f"  {markup_of(comparison.output)}  {comparison.dtype_after} {shape}  {_finding(comparison)}{left_out}"
        if comparison.problem and spread:
            yield from _spread(comparison)


def _finding(item: Comparison) -> str:
    if item.problem:
        return f"[red]{markup_of(item.problem)}[/]"
    if item.doubt:
        return f"[yellow]{markup_of(item.doubt)}[/]"
    return "bit-identical" if item.identical else difference_text(item)


def difference_text(item: Comparison) -> str:
    """Return the difference of an output, as a share of its largest value, and the limit."""
    if not item.largest_absolute:
        return "only the signs of zeros differ"
    if not item.largest_relative:
        return f"differs by up to {item.largest_absolute:.3g} (limit {item.allowed:.3g})"
    largest = item.largest_absolute / item.largest_relative
    limit = share_text(item.allowed / largest)
    return f"differs by up to {share_text(item.largest_relative)} of the largest value (limit {limit})"


def _spread(item: Comparison) -> Iterator[str]:
    """Yield the position of an output's largest difference, and how many elements differ by how much."""
    if item.largest_at is not None:
        yield f"    differs {markup_of(str(item.largest_at))}"
    for row in item.histogram.lines() if item.histogram else ():
        yield f"      {row}"


def grouped(notes: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield notes; of several notes with the same first words, only the first, and how many more there are."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for note in notes:
        # Notes of one kind begin with the same words.
        groups.setdefault(tuple(note.split()[:_SAME]), []).append(note)
    yield from ((members[0], len(members) - 1) for members in groups.values())


def proof_lines(proofs: Iterable[RuntimeProof]) -> Iterator[str]:
    """Yield the results of running the models in other runtimes."""
    for proof in proofs:
        colour = "green" if proof.outcome in ("right", "gained") else "yellow" if proof.passed else "red"
        yield f"  [{colour}]{markup_of(proof.runtime)}[/]: {markup_of(proof.text)}"
        for note in proof.notes:
            yield f"    {markup_of(note)}"


def trial_lines(proof: DynamicProof) -> Iterator[str]:
    """Yield each run at other sizes."""
    for trial in proof.trials:
        sizes = ", ".join(f"{symbol}={size}" for symbol, size in trial.sizes)
        yield f"  {markup_of(sizes)}: {markup_of(trial.problem) or AS_DECLARED}"
    for note in proof.notes:
        yield f"  {markup_of(note)}"


def sizes_line(proof: DynamicProof) -> str:
    """Return the sizes of each symbol at which the result ran, in one line; "" if it did not run."""
    ran = [trial for trial in proof.trials if not trial.problem]
    if not ran:
        return ""
    sizes = listed(f"{symbol} = {_numbers(values)}" for symbol, values in _sizes(ran).items())
    return f"ran right at {count_of(len(ran), 'combination of sizes')}: {sizes}"


def _sizes(trials: Sequence[Trial]) -> dict[str, list[int]]:
    sizes_by_symbol: dict[str, list[int]] = defaultdict(list)
    for trial in trials:
        for symbol, size in trial.sizes:
            if size not in sizes_by_symbol[symbol]:
                sizes_by_symbol[symbol].append(size)
    return sizes_by_symbol


def _numbers(values: Iterable[int]) -> str:
    return "/".join(map(str, sorted(values)))


def condition_lines(proof: DynamicProof) -> Iterator[str]:
    """Yield each condition on the sizes once, with its symbols and the sizes that were tried."""
    tried = _sizes([trial for trial in proof.trials if not trial.problem])
    symbols: dict[str, list[str]] = defaultdict(list)
    for condition in proof.conditions:
        symbols[condition.text].append(condition.symbol)
    for text, names in symbols.items():
        sizes = sorted({size for name in names for size in tried.get(name, ())})
        span = f", tried {sizes[0]:,}" if sizes else ""
        span += f" to {sizes[-1]:,}" if len(sizes) > 1 else ""
        yield f"{listed(names)}: {text.replace('a multiple of', 'multiples of')}{span}"
