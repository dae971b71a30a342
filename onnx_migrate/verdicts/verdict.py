"""The results of verifications as values, which pickle and convert to JSON: keys of a report are their fields."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from onnx_migrate.messages import first_of, share_text
from onnx_migrate.verdicts.comparison import Comparison, RoundedOutput
from onnx_migrate.verdicts.metrics import OutputMetrics
from onnx_migrate.verdicts.runtime_proof import RuntimeProof

__all__ = [
    "Blocker",
    "Distance",
    "DynamicProof",
    "FeedNote",
    "FirstDifference",
    "Kind",
    "LoadFailure",
    "SizeCondition",
    "Statement",
    "Trial",
    "ValueDistance",
    "Verdict",
]


_LISTED = 12
"""Sets of inputs that a text names."""


class Kind(str, Enum):
    """Whether two models compute the same: yes, no, or not determined."""

    VERIFIED = "verified"
    DIFFERS = "differs"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Distance:
    """How far another model's outputs are from the original's, over all feeds, without optimisation.

    `output` is the one that differs most for its size: by `largest`, while the other model has magnitudes up to `scale`.
    `reshaped` is whether it has another shape, so that no difference could be computed. `largest` is infinite for integers,
    booleans and texts that are not equal. `original_scale` is the largest value in the original without its sign. `problem` says
    how NaN and infinities differ, "" if they do not. `differing` is the share of the elements that differ, 0 if nobody counted
    them. `metrics` are those of all outputs of the other model, empty if nobody asked for them.
    """

    output: str
    largest: float
    scale: float
    reshaped: bool = False
    original_scale: float = 0.0
    problem: str = ""
    differing: float = 0.0
    metrics: tuple[OutputMetrics, ...] = ()

    def __str__(self) -> str:
        name = f"output {self.output!r}"
        if self.problem:
            return f"{name} has {self.problem}"
        if self.reshaped:
            return f"{name} has another shape"
        if not self.largest:
            return "the outputs are the same on the inputs that were tried"
        if math.isinf(self.largest):  # of integers, booleans and texts no difference is measured
            elements = f"{share_text(self.differing)} of the elements" if self.differing else "elements"
            return f"{elements} of {name} change"
        scale = self.original_scale or self.scale
        if not scale:
            return f"{name} differs by up to {self.largest:.3g}"
        return f"{name} differs by up to {share_text(self.largest / scale)} of its largest value"


@dataclass(frozen=True)
class FeedNote:
    """One set of inputs that was run: its distribution or file, its seed (None for the user's inputs), its shapes.

    A `corner` set holds thresholds, large numbers or the like. How many are run depends on the time that they take.
    """

    name: str
    seed: int | None
    shapes: tuple[tuple[str, tuple[int, ...] | None], ...]
    corner: bool = False


@dataclass(frozen=True)
class LoadFailure:
    """A result that ONNX Runtime does not load, although it loads the original.

    `reason` is the runtime's message. `node` and `operator` are those that it names, "" if none. `unoptimised` is whether the
    result loads when ONNX Runtime optimises nothing. `limit` says that the result may be valid and that this release lacks the
    opset or a kernel.
    """

    reason: str
    node: str = ""
    operator: str = ""
    unoptimised: bool = False
    limit: bool = False


@dataclass(frozen=True)
class Statement:
    """One claim of a verdict on a result with other numbers, for example "float16: within the limit".

    `subject` is the conversion, or the other numbers that the user asked for. `kind` is whether `text` was shown.
    """

    subject: str
    text: str
    kind: Kind = Kind.VERIFIED

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


@dataclass(frozen=True)
class Verdict:
    """Whether original and result compute the same, in which runtime (`evaluator`) and on which inputs.

    `reason` is "" if they do. `exact` is whether the model that must be bit-identical is bit for bit the original. It is None if
    no pass claims bit-identity, or if nobody could check it. `own_rounding` is whether bits differ and the check showed the
    runtime's own rounding to be the cause. `notes` are weaknesses of the proof and facts about the run. `node` is the node that a
    runtime's error names, "" if none. `seconds` is the wall-clock time. `load` says how the result fails to load if the original
    loads, None if it loads.

    `comparable` is False if no result could be compared: the original did not run, or the time was over. `timed_out` is whether
    the time limit ended the comparison, or would have ended it. `distance` is how far the model `other`, which the verifier also
    received, is from the original. It is None without such a model, and if that did not run. `compared_with` describes the model
    that replaces the original if a pass changed numbers on purpose; "" for the original itself. `proved_in` has the outcomes in
    other runtimes. `given_tolerance` is whether the caller set the tolerance.

    `first_difference` is the first value that differs in two models that were compared, None if none is found. `values` are the
    distances of all values that both compute, empty unless the caller asked for them. `rounded` has the errors of outputs with
    every value rounded, if the models compute in float16 or bfloat16. `statements` are claims on a result with other numbers that
    the user asked for. They contain one on the conversion and one for each such change; other results have none. `stand_ins` are
    sentences about models that ran instead of the original. `metrics` are the figures that people quote, for each output. They
    are empty if nobody asked for them.
    """

    kind: Kind
    reason: str = ""
    evaluator: str = ""
    feeds: tuple[FeedNote, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    node: str = ""
    exact: bool | None = None
    own_rounding: bool = False
    load: LoadFailure | None = None
    comparable: bool = True
    timed_out: bool = False
    distance: Distance | None = None
    compared_with: str = ""
    proved_in: tuple[RuntimeProof, ...] = ()
    given_tolerance: bool = False
    first_difference: FirstDifference | None = None
    values: tuple[ValueDistance, ...] = ()
    rounded: tuple[RoundedOutput, ...] = ()
    statements: tuple[Statement, ...] = ()
    stand_ins: tuple[str, ...] = ()
    metrics: tuple[OutputMetrics, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether the models were compared and compute the same."""
        return self.kind is Kind.VERIFIED

    @property
    def on_own_inputs(self) -> bool:
        """Whether the models were compared on inputs of the user's."""
        return any(feed.seed is None for feed in self.feeds)

    @property
    def grade(self) -> str:
        """The agreement of the models: "bit-identical", "within-rounding", "within-tolerance", "other-numbers" or "differs".

        It is "" if not determined. Other numbers are those that the user asked for; then `statements` give their distance.

        Models agree within rounding if they differ by no more than the measured rounding of ONNX Runtime itself. They agree
        within tolerance if they differ by no more than the caller allowed.
        """
        if self.kind is Kind.UNVERIFIED:
            return ""
        if self.kind is Kind.DIFFERS:
            return "differs"
        if self.statements:
            return "other-numbers"
        same = not self.own_rounding and all(comparison.identical for comparison in self.comparisons)
        return "bit-identical" if same else "within-tolerance" if self.given_tolerance else "within-rounding"

    @property
    def agreement(self) -> str:
        """How alike the compared models are, in words; "" if that was not determined."""
        largest = max((comparison.largest_relative for comparison in self.comparisons), default=0.0)
        shown = f" (largest difference {largest:.1g} of the largest value)" if 0 < largest < math.inf else ""
        if not largest and any(comparison.differing for comparison in self.comparisons):
            shown = " (only the signs of zeros differ)"
        words = {
            "bit-identical": "bit-identical",
            "within-rounding": f"within rounding{shown}",
            "within-tolerance": f"within {self._limit}{shown}",
        }
        return words.get(replace(self, statements=()).grade, "")

    @property
    def _limit(self) -> str:
        """The limit in words: the caller's, or for models of different precision that of the narrow type."""
        types = dict.fromkeys(output.type for output in self.rounded if output.type)
        return f"the error of {' and '.join(types)} rounding" if types else "the limit that you gave"

    @property
    def short(self) -> str:
        """The verdict in a few words; if it has statements, each of them without its figures."""
        if self.kind is not Kind.VERIFIED or not self.statements:
            return self.summary
        claims = [f"{statement.subject} {statement.text.partition(':')[0]}" for statement in self.statements]
        return f"{self.kind.value}: {', '.join(claims)}"

    @property
    def summary(self) -> str:
        """Return the verdict on one line: its reason, or the agreement of the models and the replacements of the original."""
        if self.kind is not Kind.VERIFIED:
            return f"{self.kind.value}: {self.reason}"
        claims = [*map(str, self.statements)] or [self.agreement]
        return f"{self.kind.value}: {'; '.join((*claims, *self.stand_ins))}"

    @property
    def setting(self) -> str:
        """The runtime, the inputs, and the model that the result was compared with, if that was not the original."""
        names = list(dict.fromkeys("corners" if feed.corner else feed.name for feed in self.feeds))
        feeds = first_of(names, _LISTED)
        run = f"run with {self.evaluator}" if self.evaluator else ""
        inputs = f"inputs: {feeds}" if feeds else ""
        against = f"compared with {self.compared_with}" if self.compared_with and not self.statements else ""
        return ", ".join(filter(None, (run, inputs, against)))


@dataclass(frozen=True)
class Trial:
    """One run: the size of each symbol, and which requirement or error ended it ("" if none)."""

    sizes: tuple[tuple[str, int], ...]
    problem: str = ""


@dataclass(frozen=True)
class Blocker:
    """The node that keeps a dim at its frozen size or mixes the items of a batch.

    `output` is its first output, and `constant` the constant input that fixes the size. `holds` has the elements of that
    constant, or its type and shape. Each is "" if it is unknown.
    """

    node: str
    operator: str
    output: str = ""
    constant: str = ""
    holds: str = ""

    def __str__(self) -> str:
        name = f"{self.operator} {self.node or self.output!r}" if self.operator else repr(self.node)
        return name + (f" with constant {self.constant!r} = {self.holds}" if self.constant else "")


@dataclass(frozen=True)
class SizeCondition:
    """A condition on the sizes of a symbol, as the end of "H must be ...", for example "a multiple of 16".

    `note` has the condition together with the runs.
    """

    symbol: str
    text: str
    note: str
    step: int = 0
    """The number whose multiples the sizes must be; 0 if the condition is another one."""


@dataclass(frozen=True)
class DynamicProof:
    """Whether the dims are free; if not, the `reason`, and the `blocker` if one was found. `trials` are the runs.

    `conditions` are limits on sizes, if not every size of a symbol runs. `determined` is False if the model could not be run to
    the end, for example for lack of time. Then `holds` is False too.
    """

    holds: bool
    reason: str = ""
    blocker: Blocker | None = None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    determined: bool = True
    conditions: tuple[SizeCondition, ...] = ()


@dataclass(frozen=True)
class ValueDistance:
    """The distance between a value of one model and its counterpart in another, on one input.

    `error` is the largest difference as a share of the largest value; infinite if only one model has NaN or infinity.
    """

    value: str
    other_value: str
    node: str
    operator: str
    shape: tuple[int, ...]
    error: float


@dataclass(frozen=True)
class FirstDifference:
    """The pass after which the model first computes other numbers, and the node at which it does.

    `passes` are several if a model between them could not be compared. `node` and `operator` are "" if the values of the model
    before and after could not be compared one by one. `value` is the value that differs, and `problem` its difference: both
    models compute it from the same values of the nodes before.

    If two models were compared, without `passes`, the node is that of the second. `original_node`, `original_operator` and
    `original_value` are those of the first, "" if it has no counterpart. `agreed` are the last values that agree.
    `original_nodes` and `nodes` are all nodes between these and the first value that differs: a fused node has several
    counterparts. `reasons` say how these nodes differ.
    """

    passes: tuple[str, ...]
    node: str = ""
    operator: str = ""
    value: str = ""
    problem: str = ""
    original_node: str = ""
    original_operator: str = ""
    original_value: str = ""
    original_nodes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.passes:
            first, second = " + ".join(self.original_nodes), " + ".join(self.nodes)
            return f"the models first differ at {first}{f' (in the second model: {second})' if second != first else ''}"
        node = f", at node {self.node!r} ({self.operator})" if self.node else ""
        return f"the numbers first differ after pass {' or '.join(map(repr, self.passes))}{node}"
