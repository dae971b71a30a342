"""The library call: the smallest model that still fails a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import onnx

from onnx_migrate import files
from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import CannotMigrate, InvalidModel, MigrateError, UsageError
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.process import CancelToken, Limits, stoppable
from onnx_migrate.process.progress import ProgressListener, Reporter
from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.candidate import Candidate, node_count, operators_of
from onnx_migrate.reduction.checks import Check, CommandCheck
from onnx_migrate.reduction.failures import Failure, KeptFailure, error_line
from onnx_migrate.reduction.numbers import strip_weights as with_random_weights
from onnx_migrate.reduction.pair import reduced_pair
from onnx_migrate.reduction.plain_form import with_initializers
from onnx_migrate.reduction.recording import Feeds, Values, feeds_of, guessed_feeds
from onnx_migrate.reduction.result import Reduction, ReductionReport, input_files, ports_of
from onnx_migrate.reduction.runtime_check import RuntimeCheck
from onnx_migrate.reduction.search import smallest
from onnx_migrate.reduction.trials import TimeOver, Trials
from onnx_migrate.reduction.validity import fault_of
from onnx_migrate.safe_open.transfers import transfers_within
from onnx_migrate.verify import InputData, Settings
from onnx_migrate.verify.compare.model_precision import coarsest_eps, is_quantized
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.other_runtimes.places import place_of
from onnx_migrate.verify.own_inputs import bind_inputs
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import inputs_of
from onnx_migrate.verify.tolerances import OutputLimits, require_outputs, tolerance_of

__all__ = ["reduce"]

_RUNTIME = "onnxruntime"
"""The runtime of a check that has only a message."""

_INPUTS = 8
"""Most of the user's inputs on which the original is checked; the first on which it fails is kept."""


def reduce(
    model: files.Source,
    *,
    check: str = "",
    check_exit: str | int = "",
    run_in: str = "",
    message: str = "",
    against: files.Source | None = None,
    any_failure: bool = False,
    strip_weights: bool = False,
    input_data: InputData | None = None,
    mean: str | float | Sequence[float] | None = None,
    std: str | float | Sequence[float] | None = None,
    layout: Literal["nchw", "nhwc"] | None = None,
    rtol: OutputLimits = None,
    atol: OutputLimits = None,
    seed: int = 0,
    jobs: int = 1,
    check_timeout: float = 60.0,
    time_limit: float = 3600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    progress: ProgressListener | None = None,
    cancel: CancelToken | None = None,
) -> Reduction:
    """Find the smallest model that still fails a check, and return it with inputs on which it fails.

    There are three checks. `check` is a shell command in which {} stands for the model and {inputs} for an .npz of its inputs. A
    command fails with an exit code other than 0, or only with `check_exit`, a code or a signal such as "SIGSEGV". `run_in` names
    a runtime as in `migrate`: a model fails if it does not load or run there, or computes wrong values. ONNX Runtime without
    optimisation computes the right ones. `against` is a second model with the same inputs and outputs: the result is the smallest
    part of both that computes different values. `message` is a text that the output of a command, or the message of the runtime,
    must contain.

    A smaller model must show the same failure: the same exit code, signal or kind, and a similar message. `any_failure` accepts
    any other one too. `strip_weights` puts random numbers of the same size and distribution in place of weights, where the
    failure stays. `jobs` checks run at once, each for `check_timeout` seconds at most. After `time_limit` seconds, the smallest
    model so far is the result. `progress` is that of `migrate`.

    Inputs have the shapes of `input_data`, or of random inputs that the model runs on. Inner values of one run replace removed
    nodes. Raises UsageError, code `check-passes`, if the model does not fail, and code `flaky-check` if two runs disagree. Raises
    MigrateError, code `timed-out`, if the time is over before the original fails. Raises LoadError for an unreadable model.
    """
    tolerance = tolerance_of(rtol, atol)
    own_inputs = inputs_of(input_data, mean=mean, std=std, layout=layout, most=_INPUTS)
    with stoppable(cancel), transfers_within(check_timeout):
        reporter = Reporter(progress, {"reduce": "looking for the smallest model"})
        reporter.stage("reduce")
        loaded = files.load(model)
        require_outputs(tolerance, (value.name for value in loaded.proto.graph.output))
        settings = Settings(own_inputs, tolerance, seed, Limits.of(check_timeout, memory_limit), isolated)
        if own_inputs is not None:
            _bind(own_inputs, loaded, settings)
        if against is not None:
            if check or check_exit or run_in or message or any_failure or strip_weights:
                raise UsageError(
                    "against compares two models, and takes no check, message or weights to replace",
                    code="bad-check",
                    hint="leave the others out",
                )
            with stoppable(None, time_limit):
                return reduced_pair(loaded, files.load(against), settings, reporter.within)
        chosen = _check(check, str(check_exit), run_in, message, settings, loaded)
        with Trials(chosen, jobs, time_limit, reporter.within) as trials, Prover(settings) as prover:
            run = _Run(loaded, chosen, trials, prover)
            return run.reduced(
                message, any_failure=any_failure, own_exit=bool(check_exit), strip=strip_weights
            )


def _bind(own_inputs: GivenInputs, model: Model, settings: Settings) -> None:
    """Read the user's inputs for a model. Without ONNX Runtime, images keep their own sizes. Raises UsageError."""
    try:
        bind_inputs(own_inputs, model, settings)
    except UsageError as error:
        if error.code != "not-installed" or not own_inputs.has_own_sizes:
            raise


def _check(check: str, check_exit: str, run_in: str, message: str, settings: Settings, model: Model) -> Check:
    """Return the check that the arguments describe. Raises UsageError for none, and for two."""
    if check and run_in:
        raise UsageError(
            "a check is a command or a runtime, and not both", hint="name one of check and run_in"
        )
    if check:
        return CommandCheck(check, settings.limits.seconds or float("inf"), check_exit)
    if check_exit:
        raise UsageError("check_exit needs a command", hint="give the command as check")
    if not (run_in or message):
        raise UsageError(
            "there is no check that the model fails",
            code="bad-check",
            hint="give a command (--check 'CMD {}'), a runtime (--run-in), a text of its message (--message), or a second model"
            " (--against)",
        )
    tolerance = replace(settings.tolerance, eps=coarsest_eps(model.proto), quantum=is_quantized(model.proto))
    return RuntimeCheck(place_of(run_in or _RUNTIME), settings.limits, tolerance)


class _Run:
    """One reduction of one model by a check."""

    def __init__(self, model: Model, check: Check, trials: Trials, prover: Prover) -> None:
        self._model, self._check, self._trials, self._prover = model, check, trials, prover
        self._settings = prover.settings
        self._notes: list[str] = []
        self._size = 0, 0
        """The size of the original with its inputs; Constants count as initializers do."""

    def reduced(self, message: str, *, any_failure: bool, own_exit: bool, strip: bool) -> Reduction:
        """Check the original twice, search, and return the result."""
        base = self._sorted()
        feeds = self._feeds(base)
        if feeds.reason:
            self._notes.append(
                f"no runtime here runs the model, so cuts have the types of its values alone: {feeds.reason}"
            )
        try:
            candidate, failure = self._failing(base, feeds, message)
        except TimeOver as over:
            raise MigrateError(
                "the time limit ended the search before the original was checked",
                code="timed-out",
                hint="--time-limit, in Python time_limit, allows more seconds",
            ) from over
        self._size = with_initializers(candidate).size
        names = frozenset(_names(self._model.proto))
        self._trials.kept = KeptFailure(failure, names, message, any_failure or own_exit)
        self._trials.best = candidate
        bench = Bench(self._trials, self._settings, runs_here=not feeds.reason)
        kept_weights: tuple[str, ...] = ()
        finished = True
        try:
            candidate = smallest(candidate, bench)
            if strip:
                candidate, kept_weights = with_random_weights(candidate, bench)
        except TimeOver:
            finished = False
            candidate = self._trials.best or candidate
        return self._result(candidate, finished=finished, stripped=strip and finished, kept=kept_weights)

    def _feeds(self, base: Model) -> Feeds:
        """Return inputs; a command may check a model without ONNX Runtime. Raises UsageError for inputs that do not fit."""
        try:
            runnable = self._prover.runnable(base)
        except UsageError as error:
            if error.code != "not-installed":
                raise
            structure: bytes = base.proto.SerializeToString(deterministic=True)
            return guessed_feeds(Runnable(structure=structure), self._settings, error.reason)
        return feeds_of(runnable, self._settings)

    def _sorted(self) -> Model:
        """Return the model with its nodes in order, repaired if onnx-migrate can do that."""
        try:
            base = accepted(self._model).copy()
        except (InvalidModel, CannotMigrate) as error:
            self._notes.append(
                f"the model is not valid, and smaller ones are not checked for that: {error.reason}"
            )
            self._trials.checks_validity = False
            return self._model
        sort_model(base.proto)
        fault = fault_of(base.proto)
        if fault:
            self._notes.append(
                f"onnx's checker refuses the model, so it does not check smaller ones: {error_line(fault)}"
            )
            self._trials.checks_validity = False
        return base

    def _failing(self, base: Model, feeds: Feeds, message: str) -> tuple[Candidate, Failure]:
        """Return the original with inputs on which it fails, and the failure. Raises UsageError and TimeOver."""
        failing_inputs = (
            [*zip(feeds.feeds, feeds.outputs, strict=True)]
            if feeds.outputs
            else [(feed, {}) for feed in feeds.feeds]
        )
        path = self._model.origin[0] if self._model.origin and "://" not in self._model.origin[0] else ""
        tried = (failing_inputs if self._check.needs_values else failing_inputs[:1]) or [({}, {})]
        last: Failure | None = None
        for feed, outputs in tried:
            original = Candidate(replace(self._model), feed, Values(dict(outputs)), path=path)
            failure = self._trials.failures([original])[0]
            if failure is not None or feed is tried[-1][0]:
                self._require_repeatable(original, failure)
            last = failure or last
            if failure is not None and message in failure.text:
                return Candidate(base, feed, Values(dict(outputs))), failure
        if last is not None:
            raise UsageError(
                f"the failure ({last}) does not contain the text {message!r}: {error_line(last.text)}",
                code="check-passes",
                hint="give a part of its message",
            )
        raise UsageError(
            "the model passes the check, so there is nothing to reduce",
            code="check-passes",
            hint="run the command on the model by hand: it must end with another exit code than 0"
            if isinstance(self._check, CommandCheck)
            else "give inputs on which the runtime fails (--input-data)",
        )

    def _require_repeatable(self, original: Candidate, first: Failure | None) -> None:
        """Raise UsageError if a second run of the check disagrees with the first."""
        second = self._trials.again(original)
        if (first is None and second is None) or (first is not None and KeptFailure(first).is_same(second)):
            return
        texts = [str(each) if each is not None else "it passes" for each in (first, second)]
        raise UsageError(
            f"two runs of the check on the original disagree: first {texts[0]}, then {texts[1]}",
            code="flaky-check",
            hint="make the check repeatable, for example with fixed random numbers and one thread",
        )

    def _result(
        self, candidate: Candidate, *, finished: bool, stripped: bool, kept: tuple[str, ...]
    ) -> Reduction:
        trials = self._trials
        assert trials.kept is not None
        failure = trials.failure_of(candidate) or trials.kept.failure
        inputs, outputs = ports_of(candidate)
        counts = operators_of(candidate.proto)
        if with_initializers(candidate).size >= self._size:
            self._notes.append("no smaller model shows the failure")
        report = ReductionReport(
            self._model.name, _title(self._check), failure, node_count(self._model.proto), node_count(candidate.proto),
            tuple(counts.items()), inputs, outputs, trials.runs, trials.cached, trials.invalid, trials.seconds, finished,
            stripped, kept, tuple(self._notes),
        )  # fmt: skip
        return Reduction(report, candidate, self._check, _input_files=input_files(self._settings))


def _names(proto: onnx.ModelProto) -> Iterator[str]:
    for located in bodies(proto):
        for node in located.body.node:
            yield from filter(None, (node.name, *node.input, *node.output))


def _title(check: Check) -> str:
    return (
        check.text
        if isinstance(check, CommandCheck)
        else check.request.runtime
        if isinstance(check, RuntimeCheck)
        else ""
    )
