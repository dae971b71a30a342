"""`onnx-migrate explain [MODEL] TEXT...` explains an error text, a code, an operator or a runtime, and gives a fix."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.model_options import codes
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.progress import ProgressLine

if TYPE_CHECKING:
    from onnx_migrate.explanation import Answer, ModelVerdict, Unknown

__all__ = ["explain"]

_LARGEST = 64 * 2**20
"""Bytes of a log that are read; of a larger one its start and its end."""

_MOST = 4 * _LARGEST
"""Bytes that are read from standard input at most."""


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("text", nargs=-1, shell_complete=codes)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def explain(text: tuple[str, ...], as_json: bool) -> int:
    """Explain an error text, a code, an operator or a runtime.

    TEXT is an error message that you paste, a log file, or - for standard input. The answer names the tool that prints the
    message, explains the cause, and gives a command that fixes it. Without TEXT, explain lists everything it knows.

    With a MODEL before TEXT, explain also checks whether this model would cause the error, and at which nodes. It runs
    nothing.

    \b
    TEXT can also be:
        a code of onnx-migrate        needs-rank
        an operator, or a step of it  Resize, resize-13, softplus-written-out
        a runtime, or one release     tensorrt, tensorrt==8.6
        the list of runtimes          runtimes

    \b
    Exit codes:
        0  explained, whether or not the model would cause the error
        1  not recognised; the most similar texts are shown
        2  wrong usage
        4  MODEL is not a readable ONNX model
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import LoadError
    from onnx_migrate.errors import UsageError as WrongArgument
    from onnx_migrate.explanation import Unknown, ask_model
    from onnx_migrate.explanation import explain as ask

    if not text or text in (("runtimes",), ("targets",)):
        return _overview(as_json, "Runtimes" if text else "")
    # The first argument may be a path.
    model, words = _model(text)
    question_text = _read(words)
    if not question_text.strip():
        hint = f"; to see what it contains: onnx-migrate inspect {shlex.quote(model)}" if model else ""
        raise click.UsageError(f"there is no text to explain{hint}")
    try:
        answer = ask(question_text, shlex.quote(model) if model else "")
        if isinstance(answer, Unknown):
            return _unknown(answer, as_json)
        with ProgressLine(as_json, f"inspecting {model}"):
            verdicts = [ask_model(error_entry, model) for error_entry in answer.errors] if model else []
    except WrongArgument as error:
        return fail(error, "explain", as_json=as_json)
    except LoadError as error:
        return fail(error, model, as_json=as_json)
    return _answer(answer, model, verdicts, as_json)


def _overview(as_json: bool, title: str) -> int:
    """Print all that is known, or the group of this title."""
    from onnx_migrate.cli.output.explanation_view import overview_lines
    from onnx_migrate.explanation import overview
    from onnx_migrate.json_form import json_of

    groups = [group for group in overview() if title in ("", group.title)]
    if as_json:
        _print({"groups": list(map(json_of, groups))})
    else:
        click.echo("\n".join(overview_lines(groups)))
    return 0


def _unknown(unknown: Unknown, as_json: bool) -> int:
    from onnx_migrate.cli.output.explanation_view import unknown_lines
    from onnx_migrate.cli.output.failure import line
    from onnx_migrate.json_form import json_of

    shown = " ".join(unknown.asked.split())
    shown = f"{shown[:120]}…" if len(shown) > 120 else shown
    if as_json:
        _print({"recognised": False, "near": json_of(unknown)})
    click.echo(line(code="unknown-text", model="explain", message=f"{shown!r} is not known"), err=True)
    if not as_json:
        click.echo("\n".join(unknown_lines(unknown)), err=True)
    return 1


def _answer(answer: Answer, model: str, verdicts: list[ModelVerdict], as_json: bool) -> int:
    from onnx_migrate.cli.output.explanation_view import answer_lines, verdict_lines
    from onnx_migrate.json_form import json_of

    if as_json:
        answer_json: dict[str, Any] = {"recognised": True, **json_of(answer)}
        if model:
            answer_json["model"] = model
            for error, verdict in zip(answer_json["errors"], verdicts, strict=True):
                error["model"] = json_of(verdict)
        _print(answer_json)
        return 0
    click.echo("\n".join(answer_lines(answer)))
    for error_entry, verdict in zip(answer.errors, verdicts, strict=False):
        title = error_entry.name if len(verdicts) > 1 else ""
        click.echo("\n" + "\n".join(verdict_lines(model, verdict, title)))
    return 0


def _print(answer: dict[str, Any]) -> None:
    from onnx_migrate.json_form import SCHEMA_VERSION

    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **answer}, indent=2))


def _model(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the path of the model that stands before or after the text, "" if there is none, and the words of the text."""
    first, last = words[0], words[-1]
    if len(words) == 1:
        return (first, ()) if first.endswith(".onnx") and os.path.isfile(first) else ("", words)
    if first.endswith(".onnx") or (first != "-" and os.path.isfile(first)):
        return first, words[1:]
    if last.endswith(".onnx") and os.path.isfile(last):
        return last, words[:-1]
    return "", words


def _read(words: tuple[str, ...]) -> str:
    """Return the text to explain: the words, standard input, or the text of a file."""
    from onnx_migrate.standard.error_texts.pasted import decoded

    if words == ("-",):
        return decoded(_stdin())
    if len(words) == 1 and len(words[0]) < 1000 and "\n" not in words[0]:
        try:
            if os.path.isfile(words[0]):  # False too for what is too long for a name, as a pasted line may be
                return decoded(_ends(Path(words[0])))
        except OSError as error:
            raise click.UsageError(f"{words[0]} cannot be read: {error.strerror}") from error
    return " ".join(words)


def _stdin() -> bytes:
    if sys.stdin is None:
        raise click.UsageError("stdin is closed; pipe a text into it")
    if sys.stdin.isatty():
        click.echo("paste the text, then press Ctrl-D", err=True)
    data = sys.stdin.buffer.read(_MOST)  # a pipe may never end
    return data if len(data) <= _LARGEST else data[: _LARGEST // 2] + b"\n" + data[-_LARGEST // 2 :]


def _ends(path: Path) -> bytes:
    """Return the bytes of a file; of a large one, its start and its end."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if size <= _LARGEST:
            return file.read()
        start = file.read(_LARGEST // 2)
        file.seek(size - _LARGEST // 2)
        return start + b"\n" + file.read()
