"""The command group: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

import rich_click as click

from onnx_migrate._version import __version__
from onnx_migrate.cli.explain import explain
from onnx_migrate.cli.migrate import migrate
from onnx_migrate.cli.passes import passes

__all__ = ["app", "run"]

PROGRAM = "onnx-migrate"


class _DefaultsToMigrate(click.RichGroup):
    """A group whose first word may be a model: `onnx-migrate model.onnx out.onnx` is `onnx-migrate migrate …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--help", "-h", "--version"}
        if args and args[0] not in self.commands and args[0] not in own:
            args = ["migrate", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_DefaultsToMigrate,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name=PROGRAM)
def app() -> None:
    """Bring an ONNX model of any age to the opset you need, and prove that it still computes the same.

    \b
    onnx-migrate model.onnx migrated.onnx                       to opset 17, simplified, verified
    onnx-migrate model.onnx migrated.onnx --opset 21            to another opset
    onnx-migrate model.onnx migrated.onnx --dynamic x:N,3,H,W   with batch, height and width dynamic
    onnx-migrate model.onnx --in-place --json                   in its place, the report as JSON

    A first word that is no command is a model: all options are those of `onnx-migrate migrate --help`.

    \b
    exit codes: 0 done · 1 refused or failed · 2 usage · 3 the numbers differ · 4 not a readable ONNX model
    """


for command in (migrate, explain, passes):
    app.add_command(command)


def run(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code: Any = app.main(args, prog_name=PROGRAM, standalone_mode=False)
    except click.Abort:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _terminate(number: int, frame: object) -> NoReturn:
    """Let `finally` blocks run, so that no temporary file is left."""
    sys.exit(128 + number)
