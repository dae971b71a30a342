"""The command group: finds the command, and turns usage errors into one line and an exit code."""

from __future__ import annotations

import difflib
import functools
import os
import shlex
import sys
from typing import Any, NoReturn

import rich_click as click
from click.shell_completion import CompletionItem

from onnx_migrate._version import __version__
from onnx_migrate.cli.commands.batch import batch
from onnx_migrate.cli.commands.diff import diff
from onnx_migrate.cli.commands.explain import explain
from onnx_migrate.cli.commands.inspect import inspect
from onnx_migrate.cli.commands.migrate import migrate
from onnx_migrate.cli.commands.passes import passes
from onnx_migrate.cli.commands.reduce import reduce
from onnx_migrate.cli.commands.verify import verify
from onnx_migrate.cli.options.panels import format_help_text, in_panels, keep_help, long_help
from onnx_migrate.cli.standard_streams import OUTPUT_FAILED, OutputFailed, drop_output, guard_streams
from onnx_migrate.cli.stop_signals import PROGRAM, code_of_stop, end_on_signals, stop_on_signals
from onnx_migrate.messages import printable
from onnx_migrate.process import current_workers
from onnx_migrate.process.signals import STOPS, blocked
from onnx_migrate.process.temporary import remove_all

__all__ = ["app", "run"]

_OTHER_NAMES = {
    **dict.fromkeys(("convert", "upgrade", "downgrade", "update", "simplify", "optimize"), "migrate"),
    **dict.fromkeys(("info", "show", "summary", "stats", "check", "print"), "inspect"),
    **dict.fromkeys(("compare", "test"), "verify"),
    **dict.fromkeys(("error", "why", "list", "runtimes"), "explain"),
}
"""Names that other tools use for the commands."""


_SHORT = f"""Usage: {PROGRAM} MODEL OUTPUT [OPTIONS]
       {PROGRAM} COMMAND [OPTIONS] ...

Convert an ONNX model to another opset, form or precision, and prove that it
still computes the same.

Example:
  {PROGRAM} model.onnx out.onnx --opset 17

Commands:
"""
"""The text of -h before the commands."""


def _print_commands(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Print what -h says: the two forms of a call, and a line for each command."""
    if not asked or context.resilient_parsing:
        return
    rows = [f"  {name:8} {command.get_short_help_str(68)}" for name, command in app.commands.items()]
    end = f"\n\n{PROGRAM} COMMAND -h shows the most important options, --help all of them.\nWithout a COMMAND, migrate runs."
    click.echo(_SHORT + "\n".join(rows) + end)
    context.exit()


class _DefaultsToMigrate(click.RichGroup):
    """A group with a default command: `onnx-migrate a.onnx b.onnx` is `onnx-migrate migrate a.onnx b.onnx`."""

    format_help_text = format_help_text  # type: ignore[assignment]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        keep_help(self)
        self.params.append(
            click.Option(
                ["-h", "short_help"], is_flag=True, is_eager=True, expose_value=False, callback=_print_commands,
                help="List the commands, and exit.",
            )
        )  # fmt: skip

    def get_help_option(self, ctx: Any) -> click.Option | None:
        """Return the option `--help`."""
        return long_help(super().get_help_option(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", "-h", "--version", "-V"}
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx).rstrip())
            ctx.exit(2)
        # A model may be a file named help.
        if args[:1] == ["help"] and not os.path.exists("help"):
            args = [*args[1:2], "--help"]
        if args and args[0] not in self.commands and args[0] not in own:
            self._check_spelling(ctx, args)
            args = ["migrate", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: Any) -> None:
        """Write the two forms of a call."""
        formatter.write(f"Usage: {PROGRAM} [OPTIONS] MODEL OUTPUT\n       {PROGRAM} COMMAND [OPTIONS] ...\n")

    def _check_spelling(self, ctx: click.Context, args: list[str]) -> None:
        """Raise click.UsageError if the first word is no file, but similar to a command or its name in other tools."""
        word = args[0]
        names = {**_OTHER_NAMES, **{name: name for name in self.commands}}
        near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.75)
        if near and not ctx.resilient_parsing and not os.path.exists(word):
            raise click.UsageError(
                f"there is no command and no file {word!r}; "
                f"did you mean {PROGRAM} {shlex.join([names[near[0]], *args[1:]])}?",
                ctx,
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the first word to a command, or, once it has a letter, to a file.

        The completion of a file comes first, because click's script for bash drops the completions before it. An empty word
        gets no files, because click's script for zsh miscounts after a file.
        """
        file = [CompletionItem(incomplete, type="file")] if incomplete else []
        return [*file, *super().shell_complete(ctx, incomplete)]


@click.group(
    cls=_DefaultsToMigrate,
    context_settings={
        "help_option_names": ["--help"],
        "max_content_width": 110,
        "token_normalize_func": lambda token: token.replace("_", "-"),  # --target_opset is --target-opset
    },
)
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM)
def app() -> None:
    """Convert an ONNX model to another opset, form or precision, and prove that it still computes the same.

    \b
    To opset 17, simplified and verified:
        onnx-migrate model.onnx out.onnx
    To opset 21, with dynamic batch, height and width:
        onnx-migrate model.onnx out.onnx --opset 21 --dynamic x:N,3,H,W
    For a runtime:
        onnx-migrate model.onnx out.onnx --for tensorrt==8.6
    All models of a folder, two at a time:
        onnx-migrate batch models --out-dir out --jobs 2

    Without a COMMAND, migrate runs. onnx-migrate migrate -h shows its most important options, and --help all of them.

    \b
    Exit codes:
        0  done
        1  the model cannot be converted, or a step failed; nothing is written
        2  wrong usage
        3  the numbers differ; nothing is written
        4  the file is not an ONNX model, or not a valid one
        5  files are written, but printing to standard output failed
    """


def _stoppable(callback: Any) -> Any:
    """Wrap a command so that SIGINT and SIGTERM raise exceptions only within it. Its end removes all temporary files.

    It first imports the native modules, with these signals blocked. Python loses an exception that a signal handler raises
    during these imports, or crashes.
    """

    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            with blocked(*STOPS):
                import onnx  # noqa: F401

                stop_on_signals()
            return callback(*args, **kwargs)
        except KeyboardInterrupt:
            raise click.Abort from None
        finally:
            with blocked(*STOPS):
                current_workers().clear()
                remove_all()
                end_on_signals()

    return call


in_panels(app)
for command in (migrate, batch, inspect, verify, diff, reduce, explain, passes):
    command.callback = _stoppable(command.callback)
    app.add_command(in_panels(command))


def run(args: list[str] | None = None) -> NoReturn:
    """Run the command line, with the arguments of the process by default, and exit."""
    try:
        # A closed stream must not end the command without a message.
        guard_streams()
        code: Any = app.main(args, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C before click runs raises KeyboardInterrupt
        click.echo(f"{PROGRAM}: interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        command = getattr(error, "ctx", None)
        code = getattr(error, "code", "usage")
        hint = f" (see {command.command_path} --help)" if command and code == "usage" else ""
        click.echo(f"{PROGRAM}: {code}: {' '.join(error.format_message().split())}{hint}", err=True)
        sys.exit(error.exit_code)
    except OutputFailed as error:
        drop_output()
        if not error.reader_left:
            click.echo(f"{PROGRAM}: stdout: standard output could not be written: {error}", err=True)
        sys.exit(OUTPUT_FAILED)
    except OSError as error:  # of a question to the file system that no command expects to fail
        location = f"{printable(str(error.filename))}: " if error.filename else ""
        click.echo(f"{PROGRAM}: failed: {location}{error.strerror or error}", err=True)
        sys.exit(1)
    except ImportError as error:  # of a module that is imported where it is used
        click.echo(f"{PROGRAM}: failed: a module cannot be loaded: {printable(str(error))}", err=True)
        sys.exit(1)
    except (
        MemoryError,
        SystemError,
    ) as error:  # Python itself may raise SystemError when memory runs out
        click.echo(f"{PROGRAM}: failed: {str(error) or 'memory is exhausted'}", err=True)
        sys.exit(1)
    sys.exit((code if isinstance(code, int) else 0) or code_of_stop())
