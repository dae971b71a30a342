"""`onnx-migrate MODEL OUTPUT`: one model from load to save."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments
from onnx_migrate.cli.options.comparison_options import tolerance_options
from onnx_migrate.cli.options.completion import pass_names, runtimes
from onnx_migrate.cli.options.config import config_option, configured
from onnx_migrate.cli.options.dynamic_batch_option import BatchNamed
from onnx_migrate.cli.options.path_conflicts import check_apart
from onnx_migrate.cli.output.depfile import dependencies, write_depfile
from onnx_migrate.cli.output.html import check_page, html_option, write_failure_page, write_model_page
from onnx_migrate.cli.output.preview import destination, diff_lines, print_diff
from onnx_migrate.cli.output.streams import STREAM, from_stdin, named, read_source, to_stdout

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["migrate"]


class _Joined(click.Option):
    """An option to be given once or more, in a config file also as one text or number; its values become one text."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the values with commas between them."""
        return ",".join(super().process_value(ctx, (value,) if isinstance(value, (str, int)) else value))


@click.command(cls=BatchNamed)
@click.argument("model", type=click.Path(readable=False))
@click.argument("output", type=click.Path(), required=False)
@click.option(
    "-o", "--output", "output_option", type=click.Path(), help="Where to write; the same as OUTPUT."
)
@click.option("--in-place", is_flag=True, help="Write the result over MODEL.")
@click.option(
    "--opset", "--target-opset", cls=_Joined, multiple=True, default=("17+",), show_default=True, metavar="N",
    help="The ai.onnx opset to reach: a number, or latest; 17+ is 17, or the model's own where that is newer. "
    "ai.onnx.ml stays as it is unless ai.onnx.ml=N is given, beside that or alone.",
)  # fmt: skip
@click.option(
    "--for", "runtime", metavar="RUNTIME==VERSION", shell_complete=runtimes,
    help="Reach the newest opset that a release runs, and write each Resize in a form it knows: onnxruntime==1.14, "
    "tensorrt==8.6, openvino==2023.1, opencv==4.8. A name alone is the installed one. See docs/runtimes.md.",
)  # fmt: skip
@click.option(
    "--dynamic", multiple=True, metavar="INPUT:DIMS",
    help="Make dims dynamic, as in x:N,3,H,W: a number keeps its axis, a name makes it dynamic, ? makes a "
    "name. Repeat it for more inputs; outputs follow by themselves.",
)  # fmt: skip
@click.option(
    "--dynamic-batch", is_flag=False, flag_value="N", metavar="[=NAME]",
    help="Make the batch of every input dynamic, under the name N or, after =, another.",
)  # fmt: skip
@click.option(
    "--fix", multiple=True, metavar="NAME=SIZE|INPUT:SIZES",
    help="Make open dims numbers, as in N=1 or x:1,3,224,224. Repeat it for more.",
)  # fmt: skip
@click.option(
    "--simplify", type=click.Choice(["auto", "require", "no"]), default="auto", show_default=True,
    help="Simplify with onnxsim. auto keeps the unsimplified model when that fails and says so; "
    "require fails.",
)  # fmt: skip
@click.option("--no-simplify", is_flag=True, help="The same as --simplify=no.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True,
    help="Run the original and the result and compare every output; write nothing if they differ.",
)  # fmt: skip
@click.option(
    "--resize-form", type=click.Choice(["auto", "scales", "sizes"]),
    help="Write each Resize by scales or by sizes wherever that is exact; auto, the default unless --for says "
    "otherwise, writes sizes where scales do not load.",
)  # fmt: skip
@click.option(
    "--resize-intent", is_flag=True,
    help="Let each Resize compute what PyTorch meant where its exporter up to opset 10 could not say it, and mend "
    "what onnx's version converter damaged. The numbers change.",
)  # fmt: skip
@click.option(
    "--keep", multiple=True, type=click.Choice(["tf_half_pixel_for_nn"]),
    help="Leave a word that the standard has dropped; ONNX Runtime still knows it.",
)  # fmt: skip
@click.option(
    "--input-data", type=click.Path(), metavar="PATH",
    help="Verify on these inputs: an .npz by input name, or a folder of input_*.pb.",
)  # fmt: skip
@tolerance_options
@click.option(
    "--save-as-external-data", is_flag=True, help="Write the weights to OUTPUT.data, below 2 GB too."
)
@click.option("--keep-initializers-as-inputs", is_flag=True, help="Leave initializers listed as inputs.")
@click.option(
    "--pass", "extra", multiple=True, metavar="NAME",
    help="Run a pass of your own before simplify: MODULE:FUNCTION.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, metavar="NAME", shell_complete=pass_names,
    help="Leave a pass out; onnx-migrate passes lists them.",
)  # fmt: skip
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True,
    help="For the simplifier and for the verification, each.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="GB",
    help="For the same two; by default three quarters of the machine's.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 if the result would be another model than MODEL."
)
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; all else, and the exit code, is as it would be."
)
@click.option("--diff", is_flag=True, help="Print what changes line by line instead of the report.")
@click.option(
    "--depfile",
    type=click.Path(),
    metavar="FILE",
    help="Write what OUTPUT was made from to FILE, for make and ninja.",
)
@html_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every changed node.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def migrate(**options: Any) -> int:
    """Bring MODEL to an opset and write it to OUTPUT, each a file or a URL; - is stdin or stdout.

    \b
    load → lift every node → dims made dynamic → cleaned up
         → simplified → verified → saved

    Nothing is written unless all of it succeeds: an existing OUTPUT stays as it was.

    \b
    Exit codes:
        0  done
        1  refused or failed; with --check, not as it should be
        2  wrong usage
        3  the numbers differ
        4  not a readable ONNX model
    """
    options = configured(options, options["model"])
    model, target, given = options["model"], destination(options), arguments(options)
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import check_target, check_unread
    from onnx_migrate.migration import migrate as run
    from onnx_migrate.url import is_url, plain

    if options["extra"]:
        sys.path.append(os.getcwd())  # a console script, unlike `python -m`, does not look there
    piped, page = target == STREAM, None
    with _Progress(options["quiet"] or options["as_json"]) as progress:
        try:
            if target is not None and not piped and (is_url(model) or os.path.isfile(plain(model))):
                check_target(target, source=model, in_place=options["in_place"])
            if target is not None and not piped:
                written = [target, f"{target}.data", options["depfile"], options["html"]]
                check_apart(written, (options["input_data"], options["config"]))
            check_page(options["html"])
            page = options["html"]
            source = read_source(model)
            if target is not None and not (piped or options["in_place"]):
                data = [f"{target}.data"] if options["save_as_external_data"] else []
                check_unread([*data, target, *filter(None, [options["depfile"]])], source)
            migration = named(run(source, **given, progress=progress))
            changes = options["check"] and not migration.same_as(source)
            made_from = dependencies(options) if options["depfile"] else []
            lines = diff_lines(source, migration, target=target) if options["diff"] else []
            if piped:
                to_stdout(migration)
            elif target is not None:
                progress("saving")
                migration.save(
                    target, external=options["save_as_external_data"], in_place=options["in_place"]
                )
            if options["depfile"]:
                write_depfile(options["depfile"], str(target), made_from)
            if page:
                write_model_page(page, migration.report.as_dict(), model=model, output=target)
        except MigrateError as error:
            progress("")
            return _failed(error, model, page, as_json=options["as_json"])
    if options["as_json"]:
        checked = {"would_change": changes} if options["check"] else {}
        click.echo(
            json.dumps({**migration.report.as_dict(), "output": target, **checked}, indent=2), err=piped
        )
    elif options["quiet"]:
        pass
    elif options["diff"]:
        print_diff(lines, err=piped)
    else:
        from rich.console import Console

        from onnx_migrate.report.text import print_report

        print_report(
            migration.report, Console(stderr=piped), target=target or "", everything=options["verbose"]
        )
    return 1 if changes else 0


def _failed(error: MigrateError, model: str, page: str | None, *, as_json: bool) -> int:
    """Say what went wrong, on a page too if there is to be one, and return the exit code."""
    from onnx_migrate.cli.output.failure import fail

    if model == STREAM:
        error, model = from_stdin(error), "<stdin>"
    if page:
        write_failure_page(page, error, model)
    return fail(error, model, as_json=as_json)


class _Progress:
    """Shows on stderr what runs now; only on a terminal, where the line can be taken away again."""

    def __init__(self, quiet: bool) -> None:
        self._status: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("loading")

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self("")

    def __call__(self, stage: str) -> None:
        if self._status is not None:
            self._status.update(stage)
            if not stage:
                self._status.stop()
