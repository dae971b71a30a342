"""The command group: finds the command, and turns usage errors into one line and an exit code."""

from __future__ import annotations

import functools
import sys
from typing import Any, NoReturn

import rich_click as click
from click.shell_completion import CompletionItem

from onnx_migrate._version import __version__
from onnx_migrate.cli.commands.batch import batch
from onnx_migrate.cli.commands.explain import explain
from onnx_migrate.cli.commands.inspect import inspect
from onnx_migrate.cli.commands.migrate import migrate
from onnx_migrate.cli.commands.passes import passes
from onnx_migrate.cli.commands.verify import verify
from onnx_migrate.cli.standard_streams import OUTPUT_FAILED, OutputFailed, drop_output, guard_streams
from onnx_migrate.cli.stop_signals import STOPS, code_of_stop, stop_on_signals
from onnx_migrate.signals import blocked

__all__ = ["app", "run"]

PROGRAM = "onnx-migrate"


class _DefaultsToMigrate(click.RichGroup):
    """A group with a default command: `onnx-migrate a.onnx b.onnx` is `onnx-migrate migrate a.onnx b.onnx`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", "-h", "--version"}
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx).rstrip())
            ctx.exit(2)
        if args and args[0] not in self.commands and args[0] not in own:
            args = ["migrate", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the first word to a command, or, once it has a letter, to a file.

        The completion of a file comes first, because click's script for bash drops what precedes one; an empty word is
        not completed to files, because click's script for zsh miscounts after one.
        """
        file = [CompletionItem(incomplete, type="file")] if incomplete else []
        return [*file, *super().shell_complete(ctx, incomplete)]


@click.group(
    cls=_DefaultsToMigrate,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name=PROGRAM)
def app() -> None:
    """Bring an ONNX model of any age to the opset you need, and prove that it still computes the same.

    \b
    Bring a model to opset 17, simplify and verify it:
        onnx-migrate model.onnx migrated.onnx
    To opset 21, with dynamic batch, height and width:
        onnx-migrate model.onnx migrated.onnx --opset 21 --dynamic x:N,3,H,W
    Replace the model, and print the report as JSON:
        onnx-migrate model.onnx --in-place --json
    All models of a folder, two at a time:
        onnx-migrate batch models --out-dir migrated --jobs 2

    Without the name of a command, migrate is run: onnx-migrate migrate --help lists its options.

    \b
    Exit codes:
        0  done
        1  refused or failed; nothing is written
        2  wrong usage
        3  the numbers differ; nothing is written
        4  not a readable ONNX model
        5  standard output could not be written whole; what was asked for as files is written
    """


def _with_native_modules(callback: Any) -> Any:
    """Wrap a command so that it imports the native modules first, with SIGINT and SIGTERM blocked.

    An exception raised by a signal handler during these imports is lost, or crashes the process.
    """

    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        with blocked(*STOPS):
            import onnx  # noqa: F401
        return callback(*args, **kwargs)

    return call


for command in (migrate, batch, inspect, verify, explain, passes):
    command.callback = _with_native_modules(command.callback)
    app.add_command(command)


def run(args: list[str] | None = None) -> NoReturn:
    """Run the command line, with the arguments of the process by default, and exit."""
    guard_streams()
    stop_on_signals(PROGRAM)
    try:
        code: Any = app.main(args, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
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
    sys.exit((code if isinstance(code, int) else 0) or code_of_stop())
