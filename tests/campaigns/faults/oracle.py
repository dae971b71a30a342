"""What must hold after a fault, judged by the files alone and by onnx: nothing lost, no lie of an exit code."""

from __future__ import annotations

import json
import re
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.faults.injector import Fault
from tests.campaigns.faults.models import digest_of
from tests.campaigns.faults.scenarios import Scenario

__all__ = ["Ended", "State", "is_left_out", "look", "wrongs", "wrongs_afterwards"]

UNTIDY = re.compile(r"^onnx-migrate: untidy: ", re.MULTILINE)
"""What a command says that leaves something behind."""

_HINDERING = ("open", "list", "stat", "unlink")
"""Kinds of calls without which a temporary folder cannot be emptied: it is left to the next run."""

_VERDICT = re.compile(
    rb"^unverified: (the process was ended from outside \(SIG(TERM|INT)\)|out of memory"
    rb"|the process crashed \(exit code 1\), in the step 'start')",
    re.MULTILINE,
)
"""What a verification says whose worker was ended by a signal: SIGKILL is how Linux ends what lacks memory, and SIGINT during
its imports ends it with code 1."""


@dataclass(frozen=True)
class State:
    """The files of a folder: their bytes and permissions, and the digests of the models that a command writes."""

    files: dict[str, tuple[bytes, int]]
    models: dict[str, str]


@dataclass(frozen=True)
class Ended:
    """How a command ended: None as its code if it took too long, a negative one for a signal."""

    code: int | None
    out: bytes
    err: str


def is_left_out(ended: Ended) -> bool:
    """Return whether a command says that the simplifier failed, so that the result is the one without it."""
    return b"warning: skipped simplify" in ended.out


def look(root: Path, scenario: Scenario) -> State:
    """Return the state of the folders `work` and `tmp` below `root`."""
    files = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            files[name] = (str(path.readlink()).encode(), 0)
        elif path.is_file():
            files[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        elif name not in ("work", "tmp"):
            files[name] = (b"", -1)
    return State(files, {name: digest_of(root / "work" / name) for name in scenario.models})


def wrongs(
    scenario: Scenario,
    fault: Fault,
    before: State,
    after: State,
    reference: tuple[Ended, State],
    ended: Ended,
) -> Iterator[str]:
    """Yield what is wrong after a command that had a fault; `reference` is how it ends without one."""
    _, new = reference
    text = ended.err + ended.out.decode("utf-8", "replace")
    if ended.code is None:
        yield "it took too long"
    if "Traceback" in text or "Exception ignored" in text:
        yield f"a traceback: {_last_line(ended.err)}"
        return
    stream = f"work/{scenario.stdout}"
    written = {f"work/{name}" for name in (*scenario.models, *scenario.sides)} | {stream}
    for name, content in before.files.items():
        if after.files.get(name) != content and name not in written and not _belongs(name, scenario):
            yield f"{name} changed"
    for name, digest in after.models.items():
        if digest not in (before.models[name], new.models[name]):
            yield f"{name} is neither the old nor the new model: {digest}"
    for name in scenario.sides:
        found = after.files.get(f"work/{name}")
        if _is_failure_page(name, ended, found):
            continue
        if not any(_same_text(found, state.files.get(f"work/{name}")) for state in (before, new)):
            yield f"{name} is neither the old nor the new file"
    yield from _of_code(scenario, fault, before, after, reference, ended)
    extra = sorted(after.files.keys() - before.files.keys() - new.files.keys())
    if fault.kind in _HINDERING:
        extra = [name for name in extra if not name.startswith("tmp/")]
    if extra and not fault.kills and not UNTIDY.search(ended.err):
        yield f"left behind: {', '.join(extra)}"


def _of_code(
    scenario: Scenario,
    fault: Fault,
    before: State,
    after: State,
    reference: tuple[Ended, State],
    ended: Ended,
) -> Iterator[str]:
    done, new = reference
    sides = {f"work/{name}" for name in scenario.sides}
    stream = f"work/{scenario.stdout}"
    if ended.code == done.code and done.code is not None and not fault.kills:
        if after.models != new.models and done.code == 0:
            yield f"exit {done.code}, and not all models are written: {_differing(after.models, new.models)}"
        for name in sides | ({stream} if scenario.stdout not in ("", "pipe") else set()):
            if not _same_text(after.files.get(name), new.files.get(name)):
                yield f"exit {done.code}, and {name} is not whole"
        if scenario.stdout == "pipe" and ended.out != done.out:
            yield f"exit {done.code}, and {len(ended.out)} of {len(done.out)} bytes came through the pipe"
    elif ended.code in (1, 2, 3, 4):
        lines = [line for line in ended.err.splitlines() if line.strip()]
        if scenario.command.startswith("batch"):
            yield from _of_batch(before, after, new, ended)
            return
        if scenario.command.startswith("verify") and _VERDICT.search(after.files[stream][0]):
            return  # a worker was killed by the signal, and the report on standard output says so
        most = 2 if "--html" in scenario.command else 1  # one of them is of the page
        told = sum(line.startswith("onnx-migrate: ") and not UNTIDY.match(line) for line in lines)
        if not 1 <= told <= most:
            yield f"exit {ended.code} with {len(lines)} lines: {ended.err[:300]!r}"
        unlike = [
            name
            for name in before.files.keys() | after.files.keys()
            if name != stream
            and before.files.get(name) != after.files.get(name)
            and not (name.startswith("tmp/") and fault.kind in _HINDERING)
            and not (name.endswith(".tmp") and UNTIDY.search(ended.err))
            and not _is_failure_page(name, ended, after.files.get(name))
        ]
        if unlike:
            yield f"exit {ended.code}, and changed: {', '.join(sorted(unlike))}: {ended.err[:200]!r}"
    elif ended.code == 5:
        if not scenario.stdout:
            yield f"exit 5 of a command whose standard output is not at fault: {ended.err[:200]!r}"
        elif after.models != new.models:
            yield f"exit 5, and not all models are written: {_differing(after.models, new.models)}"
    elif ended.code == -signal.SIGTERM and "SIGTERM" in fault.what:  # it came before the command handles it
        if any(
            before.files.get(name) != after.files.get(name)
            for name in before.files.keys() | after.files.keys()
            if name != stream
        ):
            yield "ended by SIGTERM at once, and files changed"
    elif ended.code not in (130, 143, -9, None, done.code):
        yield f"exit {ended.code}: {ended.err[:300]!r}"
    elif ended.code in (130, 143) and "SIGTERM" not in fault.what and "SIGINT" not in fault.what:
        yield f"exit {ended.code} without a signal"
    elif ended.code == -9 and not fault.kills:
        yield "killed by nobody"


def _of_batch(before: State, after: State, new: State, ended: Ended) -> Iterator[str]:
    """Compare what a batch says of each model with what is there."""
    said = {}
    for line in ended.out.decode("utf-8", "replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("kind") == "model":
            said[entry["output"]] = entry["outcome"]
    if len(said) < len(new.models) and not ended.err.strip():
        yield f"exit {ended.code}, and nothing is said of {len(new.models) - len(said)} models"
    for name, digest in after.models.items():
        outcome = said.get(name)
        if outcome in ("migrated", "unchanged") and digest != new.models[name]:
            yield f"{name} is said to be {outcome}, and is not the new model: {digest}"
        if outcome in ("failed", "refused") and digest != before.models[name]:
            yield f"{name} is said to be {outcome}, and is not as it was: {digest}"
        if outcome is None and not ended.err.strip() and digest not in (before.models[name],):
            yield f"nothing is said of {name}, which changed"


def wrongs_afterwards(scenario: Scenario, after: State, reference: State, ended: Ended) -> Iterator[str]:
    """Yield what is wrong when the command has run once more, without a fault: all is to be as if there had been none."""
    if ended.code != scenario.code:
        yield f"the next run ends with {ended.code}: {ended.err[-300:]!r}"
    if after.models != reference.models:
        yield f"the next run does not write the models: {_differing(after.models, reference.models)}"
    extra = sorted(
        name for name in after.files.keys() - reference.files.keys() if not name.startswith("tmp/")
    )
    if extra:
        yield f"the next run leaves: {', '.join(extra)}"
    missing = sorted(reference.files.keys() - after.files.keys())
    if missing:
        yield f"after the next run there is no {', '.join(missing)}"
    for name, content in reference.files.items():
        if name.endswith(".jsonl") and after.files.get(name) != content:
            yield f"{name} differs after the next run"


def _belongs(name: str, scenario: Scenario) -> bool:
    """Return whether a file is the external data of a model that the command writes."""
    return any(name == f"work/{model}.data" for model in scenario.models) or name.endswith(".jsonl")


def _is_failure_page(name: str, ended: Ended, found: tuple[bytes, int] | None) -> bool:
    """Return whether a file is the page that --html writes of a command that failed."""
    return (
        name.endswith(".html")
        and ended.code in (1, 3, 4)
        and found is not None
        and found[0].startswith(b"<!DOCTYPE html>")
        and found[0].rstrip().endswith(b"</html>")
    )


def _same_text(one: tuple[bytes, int] | None, other: tuple[bytes, int] | None) -> bool:
    """Compare files, but for the times that reports hold."""
    if one is None or other is None:
        return one is other
    return _timeless(one[0]) == _timeless(other[0])


def _timeless(text: bytes) -> bytes:
    # The size of a file is null, and not on the page, where it could not be found out.
    text = re.sub(rb'"file_bytes": (null|\{[^}]*\})|<li[^>]*><span>file</span>.*?</li>', b"", text)
    return re.sub(rb"\d+(\.\d+)?(e-?\d+)?( ?m?s\b|(?=[,\s]*[\"}\n]))", b"#", text)


def _differing(one: dict[str, str], other: dict[str, str]) -> str:
    return ", ".join(f"{name}: {one[name][:60]}" for name in one if one[name] != other[name])


def _last_line(text: str) -> str:
    """Return the last line of a traceback, which names the error, and those before it."""
    start = max(text.find("Traceback"), text.find("Exception ignored"), 0)
    return " / ".join(text[start:].strip().splitlines()[-6:])[-400:]
