"""`onnx-migrate MODEL OUTPUT`: one model from load to save."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Literal

import rich_click as click

__all__ = ["migrate"]


@click.command()
@click.argument("model", type=click.Path())
@click.argument("output", type=click.Path(), required=False)
@click.option(
    "-o", "--output", "output_option", type=click.Path(), help="Where to write; the same as OUTPUT."
)
@click.option("--in-place", is_flag=True, help="Write the result over MODEL.")
@click.option(
    "--opset", "--target-opset", default="17", show_default=True, metavar="N",
    help="The ai.onnx opset to reach: a number, or latest.",
)  # fmt: skip
@click.option(
    "--dynamic", multiple=True, metavar="INPUT:DIMS",
    help="Make dims dynamic, as in x:N,3,H,W: a number keeps its axis, a name makes it dynamic, ? makes a "
    "name. Repeat it for more inputs; outputs follow by themselves.",
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
    "--resize-form", type=click.Choice(["auto", "scales", "sizes"]), default="auto", show_default=True,
    help="Write each Resize by scales or by sizes wherever that is exact; auto writes sizes where scales do not load.",
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
@click.option(
    "--rtol", type=float, help="Largest relative difference allowed; by default it follows from the type."
)
@click.option(
    "--atol", type=float, help="Largest absolute difference allowed; by default it follows from the values."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@click.option(
    "--save-as-external-data", is_flag=True, help="Write the weights to OUTPUT.data, below 2 GB too."
)
@click.option("--keep-initializers-as-inputs", is_flag=True, help="Leave initializers listed as inputs.")
@click.option(
    "--pass", "extra", multiple=True, metavar="NAME",
    help="Run a pass of your own before simplify: MODULE:FUNCTION.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, metavar="NAME", help="Leave a pass out; onnx-migrate passes lists them."
)
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True,
    help="For the simplifier and for the verification, each.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="GB",
    help="For the same two; by default three quarters of the machine's.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every changed node.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def migrate(**options: Any) -> int:
    """Bring MODEL to an opset and write it to OUTPUT.

    \b
    load → lift every node → dims made dynamic → cleaned up
         → simplified → verified → saved

    Nothing is written unless all of it succeeds: an existing OUTPUT stays as it was.

    \b
    Exit codes:
        0  done
        1  refused or failed
        2  wrong usage
        3  the numbers differ
        4  not a readable ONNX model
    """
    model, target = options["model"], _target(options)
    from onnx_migrate.cli.failure import fail
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import check_target
    from onnx_migrate.migration import migrate as run

    if options["extra"]:
        sys.path.append(os.getcwd())  # a console script, unlike `python -m`, does not look there
    with _Progress(options["quiet"] or options["as_json"]) as progress:
        try:
            if os.path.isfile(model):
                check_target(target, source=model, in_place=options["in_place"])
            migration = run(
                model,
                opset=options["opset"],
                dynamic=options["dynamic"] or None,
                simplify=_simplify(options),
                verify=options["verify"],
                resize_form=options["resize_form"],
                resize_intent=options["resize_intent"],
                keep=options["keep"],
                keep_initializers_as_inputs=options["keep_initializers_as_inputs"],
                passes=options["extra"],
                without=options["without"],
                input_data=options["input_data"],
                rtol=options["rtol"],
                atol=options["atol"],
                seed=options["seed"],
                timeout=options["timeout"],
                memory_limit=None
                if options["memory_limit"] is None
                else int(options["memory_limit"] * 2**30),
                progress=progress,
            )
            progress("saving")
            migration.save(target, external=options["save_as_external_data"], in_place=options["in_place"])
        except MigrateError as error:
            progress("")
            return fail(error, model, as_json=options["as_json"])
    if options["as_json"]:
        click.echo(json.dumps({**migration.report.as_dict(), "output": target}, indent=2))
    elif not options["quiet"]:
        from rich.console import Console

        from onnx_migrate.report.text import print_report

        print_report(migration.report, Console(), target=target, everything=options["verbose"])
    return 0


def _target(options: dict[str, Any]) -> str:
    given = [path for path in (options["output"], options["output_option"]) if path is not None]
    if options["in_place"]:
        if given:
            raise click.UsageError("--in-place writes over MODEL: leave OUTPUT out")
        return str(options["model"])
    if len(given) != 1:
        raise click.UsageError("say where to write: MODEL OUTPUT, or --in-place to write over MODEL")
    return str(given[0])


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    if options["no_simplify"] and options["simplify"] == "require":
        raise click.UsageError("--no-simplify and --simplify=require contradict each other")
    if options["no_simplify"] or options["simplify"] == "no":
        return False
    return "require" if options["simplify"] == "require" else True


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
