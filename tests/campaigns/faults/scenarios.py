"""What the command is asked to do while calls of it fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.faults.models import write, write_external

__all__ = ["SCENARIOS", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A folder, and a command line that is run in it.

    `models` are those that the command writes, `sides` its other outputs; `stdout` is a file of the folder, or "pipe".
    `again` are the options of the run that follows a fault, in place of which the whole command is run again.
    """

    name: str
    prepare: Callable[[Path], None]
    command: str
    models: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    stdin: str = ""
    stdout: str = ""
    again: str = ""
    code: int = 0
    workers: bool = False
    """Whether the command starts processes, so that a run takes a second."""

    @property
    def arguments(self) -> list[str]:
        return self.command.split()


QUICK = "--no-verify --no-simplify --config none"


def _source(folder: Path) -> None:
    write(folder / "a.onnx", 1)
    (folder / "unrelated.onnx.data").write_bytes(b"someone else's")
    (folder / ".b.onnx.notes.tmp").write_bytes(b"someone else's")


def _over(folder: Path) -> None:
    _source(folder)
    write(folder / "b.onnx", 2, opset=17)
    (folder / "b.onnx").chmod(0o640)


def _over_sides(folder: Path) -> None:
    _over(folder)
    (folder / "b.html").write_bytes(
        b"<!DOCTYPE html><title>onnx-migrate</title>the page of an earlier run</html>"
    )
    (folder / "b.d").write_bytes(b"b.onnx: old.onnx\n")


def _over_external(folder: Path) -> None:
    _source(folder)
    write_external(folder / "b.onnx", 2, opset=17)


def _external_source(folder: Path) -> None:
    _source(folder)
    write_external(folder / "a.onnx", 1)


def _shared(folder: Path) -> None:
    """Two models whose weights are in one file."""
    write_external(folder / "a.onnx", 1, location="shared.data")
    (folder / "twin.onnx").write_bytes((folder / "a.onnx").read_bytes())


def _shared_by_name(folder: Path) -> None:
    """Two models whose weights are in the data file of the first."""
    write_external(folder / "a.onnx", 1)
    (folder / "twin.onnx").write_bytes((folder / "a.onnx").read_bytes())


def _over_shared(folder: Path) -> None:
    """An old model whose data file holds the weights of another one too."""
    _over_external(folder)
    (folder / "twin.onnx").write_bytes((folder / "b.onnx").read_bytes())


def _link(folder: Path) -> None:
    _over(folder)
    (folder / "below").mkdir()
    (folder / "b.onnx").rename(folder / "below" / "b.onnx")
    (folder / "b.onnx").symlink_to("below/b.onnx")


def _three(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in (1, 2, 3):
        write(folder / "in" / f"m{number}.onnx", number)


def _three_over(folder: Path) -> None:
    _three(folder)
    (folder / "out").mkdir()
    write(folder / "out" / "m1.onnx", 11, opset=17)
    write_external(folder / "out" / "m2.onnx", 12, opset=17)


def _two_external(folder: Path) -> None:
    (folder / "in").mkdir()
    write_external(folder / "in" / "m1.onnx", 1)
    write(folder / "in" / "m2.onnx", 2)


OUT = ("out/m1.onnx", "out/m2.onnx", "out/m3.onnx")
IN = ("in/m1.onnx", "in/m2.onnx", "in/m3.onnx")
BATCH = f"--jobs 1 --json-lines - {QUICK}"

SCENARIOS = {
    each.name: each
    for each in (
        Scenario("new", _source, f"a.onnx b.onnx {QUICK}", ("b.onnx",)),
        Scenario("over", _over, f"a.onnx b.onnx {QUICK}", ("b.onnx",)),
        Scenario("over a link", _link, f"a.onnx b.onnx {QUICK}", ("b.onnx", "below/b.onnx")),
        Scenario("external", _source, f"a.onnx b.onnx --save-as-external-data {QUICK}", ("b.onnx",)),
        Scenario(
            "external over one file", _over, f"a.onnx b.onnx --save-as-external-data {QUICK}", ("b.onnx",)
        ),
        Scenario(
            "external over external", _over_external, f"a.onnx b.onnx --save-as-external-data {QUICK}", ("b.onnx",)
        ),
        Scenario("one file over external", _over_external, f"a.onnx b.onnx {QUICK}", ("b.onnx",)),
        Scenario("over shared data", _over_shared, f"a.onnx b.onnx {QUICK}", ("b.onnx", "twin.onnx")),
        Scenario("in place", _source, f"a.onnx --in-place {QUICK}", ("a.onnx",)),
        Scenario("in place, external", _external_source, f"a.onnx --in-place {QUICK}", ("a.onnx",)),
        Scenario(
            "in place, external, simplified", _external_source,
            "a.onnx --in-place --no-verify --save-as-external-data --config none", ("a.onnx",), workers=True,
        ),
        Scenario(
            "in place, external to one file", _external_source,
            "a.onnx --in-place --no-verify --config none", ("a.onnx",), workers=True,
        ),
        Scenario("in place, shared data", _shared, f"a.onnx --in-place {QUICK}", ("a.onnx",)),
        Scenario("in place, shared by name", _shared_by_name, f"a.onnx --in-place {QUICK}", ("a.onnx",)),
        Scenario("stdout", _source, f"a.onnx - {QUICK}", stdout="b.onnx"),
        Scenario("pipe", _source, f"a.onnx - {QUICK}", stdout="pipe"),
        Scenario("stdin", _source, f"- b.onnx {QUICK}", ("b.onnx",), stdin="a.onnx"),
        Scenario("verified", _over, "a.onnx b.onnx --config none", ("b.onnx",), workers=True),
        Scenario("json", _source, f"a.onnx b.onnx --json {QUICK}", ("b.onnx",), stdout="report.json"),
        Scenario("depfile", _over, f"a.onnx b.onnx --depfile b.d {QUICK}", ("b.onnx",), ("b.d",)),
        Scenario("html", _over, f"a.onnx b.onnx --html b.html {QUICK}", ("b.onnx",), ("b.html",)),
        Scenario(
            "over old pages", _over_sides, f"a.onnx b.onnx --html b.html --depfile b.d {QUICK}", ("b.onnx",),
            ("b.html", "b.d"),
        ),
        Scenario(
            "file URL", _over_external, "a.onnx file://{work}/b.onnx --save-as-external-data " + QUICK, ("b.onnx",)
        ),
        Scenario("check", _source, f"a.onnx --check {QUICK}", stdout="report.txt", code=1),
        Scenario("inspect", _source, "inspect a.onnx", stdout="report.txt"),
        Scenario("verify", _over, "verify a.onnx a.onnx", stdout="report.txt", workers=True),
        Scenario("batch", _three, f"batch in --out-dir out {BATCH}", OUT, again="--resume", workers=True),
        Scenario(
            "batch over external", _three_over, f"batch in --out-dir out --save-as-external-data {BATCH}", OUT,
            again="--resume", workers=True,
        ),
        Scenario("batch in place", _two_external, f"batch in --in-place {BATCH}", IN[:2], workers=True),
    )
}  # fmt: skip
