"""Control flow, sequences, optionals and recurrent operators, which plain nodes replace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate.core_options import OPERATORS, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed

__all__ = ["FEATURE", "ControlFlowOptions"]


@dataclass(frozen=True, kw_only=True)
class ControlFlowOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    control_flow: bool = option(
        True, "--no-control-flow", changes_graph=True, panel=OPERATORS, is_flag=True,
        help="Replace If, Loop, Scan, sequences and optionals by plain nodes. If: pick the branch, or compute both and select. "
        "Loop: unroll it if the number of rounds is known. Otherwise it is an error. See docs/control-flow.md.",
        text="""with False, replace If, Loop, Scan, sequences and optionals by plain nodes; a node that depends on the data is
        an error (docs/control-flow.md). With a `runtime` whose table says so, this happens automatically.""",
    )
    unroll_rnn: bool = option(
        False, "--unroll-rnn", changes_graph=True, panel=OPERATORS, is_flag=True,
        help="Replace LSTM, GRU and RNN of fixed sequence length by the MatMuls and activations of each time step.",
        text="replace LSTM, GRU and RNN of fixed sequence length by the MatMuls and activations of each time step.",
    )
    unroll_limit: int = option(
        2000, "--unroll-limit", panel=OPERATORS, type="count", default=2000, show_default=True, metavar="NODES",
        help="The most nodes that unrolling one Loop or LSTM may write. More is an error.",
        text="the most nodes that unrolling one Loop or LSTM may write.",
    )
    branch_limit: int = option(
        10_000_000, "--branch-limit", panel=OPERATORS, type="count", default=10_000_000, show_default=True,
        metavar="MULTIPLICATIONS",
        help="The most multiplications that both branches of an If may take if both are computed. More is an error.",
        text="the most multiplications that both branches of an If may take if both are computed.",
    )
    # fmt: on


def build(options: ControlFlowOptions) -> Iterator[Placed]:
    """Yield the passes that replace control flow, where the user or a runtime asks for it."""
    if options.targets or options.of_feature("static") or not options.control_flow:
        from .known_branches import KnownBranches

        # A condition may follow from a size that was fixed until the dims became dynamic.
        dynamic = options.of_feature("dynamic") is not None or options.of_feature("dynamic_batch")
        yield (Phase.LATE_BRANCHES if dynamic else Phase.BRANCHES), KnownBranches()
    wanted, wished = _operators(options)
    if wanted | wished:
        from .control_flow import ControlFlow

        yield (
            Phase.UNROLL,
            ControlFlow(
                wanted=wanted,
                wished=wished - wanted,
                nodes=options.unroll_limit,
                extra=options.branch_limit,
                best_effort=options.best_effort,
                targets=options.targets,
            ),
        )


def _operators(options: ControlFlowOptions) -> tuple[frozenset[str], frozenset[str]]:
    """Return the operators that must go, and those that a runtime would rather not have."""
    from onnx_migrate.standard.schema import CONTROL_FLOW, RECURRENT, SEQUENCES

    wanted = frozenset() if options.control_flow else CONTROL_FLOW | SEQUENCES
    wanted |= RECURRENT if options.unroll_rnn else frozenset()
    wished: set[str] = set()
    for target in options.targets or ():
        wished.update(target.row.unrolled)
        wanted |= {name for name in CONTROL_FLOW | SEQUENCES | RECURRENT if not target.has("", name)}
        if target.row.falls_back:
            wished |= {name for name in CONTROL_FLOW | SEQUENCES if not target.rows_of("", name)}
    return wanted, frozenset(wished)


FEATURE = Feature(
    "control_flow",
    build,
    phases=(
        Phase.BRANCHES,
        Phase.LATE_BRANCHES,
        Phase.UNROLL,
    ),
    options=ControlFlowOptions,
    modules=("control_flow", "known_branches"),
)
