"""Users' own passes: how they are found, and what the pipeline checks of their results."""

from __future__ import annotations

import importlib.metadata
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from onnx_migrate import migrate
from onnx_migrate.engine import pass_infra as passes_module
from onnx_migrate.engine.pass_infra import (
    Pass,
    as_pass,
    installed_passes,
    package_of,
    passes_on_request,
    takes_graph,
)
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.steps.formula import unregistered
from onnx_migrate.errors import PassError, UsageError
from onnx_migrate.files import inline, load
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.engine.passes import TEXT, skip_identity
from tests.harness import model


def apply(source: onnx.ModelProto, *items: Any) -> onnx.ModelProto:
    pipeline = Pipeline(tuple(as_pass(item) for item in items))
    return inline(pipeline.run(load(source), ChangeLog()).model)


def test_a_pass_that_raises_is_named() -> None:
    def broken(proto: onnx.ModelProto) -> None:
        raise KeyError("gone")

    with pytest.raises(PassError, match="pass 'broken' raised KeyError") as caught:
        apply(model(TEXT), broken)

    assert isinstance(caught.value.__cause__, KeyError)


def test_a_pass_may_not_change_the_interface() -> None:
    def rename(proto: onnx.ModelProto) -> None:
        proto.graph.node[-1].output[0] = proto.graph.output[0].name = "other"

    with pytest.raises(PassError, match="outputs were y and became other") as caught:
        apply(model(TEXT), rename)

    assert caught.value.code == "interface-changed"


def test_a_pass_may_not_leave_an_illegal_node() -> None:
    def spoil(proto: onnx.ModelProto) -> None:
        proto.graph.node[-1].op_type = "Upsample"

    with pytest.raises(PassError, match="removed from the standard"):
        apply(model(TEXT), spoil)


def test_a_function_must_say_what_it_takes() -> None:
    def silent(thing):  # type: ignore[no-untyped-def]
        return thing

    with pytest.raises(UsageError, match="annotate its parameter"):
        as_pass(silent)


_ANNOTATED = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import onnx
    import onnx_graphsurgeon as gs
    from onnx_graphsurgeon import Graph
    from onnx_migrate.plugins import Op, Value
def proto(model: onnx.ModelProto) -> None: ...
def graph(graph: gs.Graph) -> None: ...
def named(graph: Graph) -> Graph: ...
def written(op: Op, x: Value, *, alpha: float = 1.0) -> Value:
    'It is x.'
"""


def test_annotations_may_name_what_type_checkers_import_alone() -> None:
    """From Python 3.14 on annotations are evaluated when they are asked for; before, `annotations` of __future__ does it."""
    text = _ANNOTATED if sys.version_info >= (3, 14) else f"from __future__ import annotations{_ANNOTATED}"
    module: dict[str, Any] = {}

    exec(compile(text, "module", "exec", dont_inherit=True), module)

    assert [takes_graph(module[name]) for name in ("proto", "graph", "named")] == [False, True, True]
    assert unregistered(module["written"], "ai.example::Annotated").operator == "Annotated"


def install(monkeypatch: pytest.MonkeyPatch, loaded: object, group: str) -> None:
    """Install a pass `skipper` of the package `skips` in a group of entry points."""
    point = importlib.metadata.EntryPoint("skipper", "tests.engine_passes_plugin:run", group)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda self: loaded)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "dist", SimpleNamespace(name="skips"))
    monkeypatch.setattr(passes_module, "entry_points", lambda: importlib.metadata.EntryPoints([point]))


def test_an_installed_pass_runs_where_the_user_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, skip_identity, "onnx_migrate.passes")

    assert installed_passes() == []
    assert [(item.name, package_of(item)) for item in passes_on_request()] == [("skipper", "skips")]
    assert "skipper" not in migrate(model(TEXT), verify=False).report.passes
    assert len(apply(model(TEXT), "skipper").graph.node) == 2


def test_a_package_may_ask_that_its_pass_always_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, skip_identity, "onnx_migrate.default_passes")

    assert [item.name for item in installed_passes()] == ["skipper"]
    assert passes_on_request() == []
    assert "skipper" in migrate(model(TEXT), verify=False).report.passes
    assert "skipper" not in migrate(model(TEXT), verify=False, without="skipper").report.passes


@dataclass(frozen=True)
class Installed(Pass):
    """A pass that is a class."""

    name = "installed"

    def run(self, model: Model, log: ChangeLog) -> Model:
        return model


@pytest.mark.parametrize("loaded", [skip_identity, Installed])
def test_the_report_names_the_package_of_an_installed_pass(
    loaded: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, loaded, "onnx_migrate.passes")
    report = migrate(model(TEXT), passes=["skipper"], verify=False).report

    (text,) = (note.message for note in report.notes if note.code == "user-pass")
    assert text.startswith("ran ")
    assert text.endswith(" of the installed package skips")


def test_a_name_that_leads_nowhere() -> None:
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        as_pass("no.such.module:run")
    assert caught.value.code == "no-such-pass"
    with pytest.raises(UsageError, match="there is no pass 'nothing'"):
        as_pass("nothing")
