"""Reports to render, and a browser to open their pages in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate.batching import Outcome
from onnx_migrate.errors import MigrateError
from onnx_migrate.report import Report
from onnx_migrate.report.failure import Failure
from tests.report.html.pages import ODD, write_batch
from tests.support.browser import Browser, browser
from tests.support.paths import FIXTURES

MANY = """<ir_version: 6, opset_import: ["": 9]>
g (float[2,3,4,5] v0) => (float[2,3,4,5] v{count}) {{
{nodes}
}}"""


@pytest.fixture(scope="module")
def report() -> Report:
    migration = onnx_migrate.migrate(
        FIXTURES / "unet_opset9.onnx", opset=17, dynamic=["image:N,3,30,32"], simplify=False, isolated=False
    )
    return replace(migration.report, model="a/unet.onnx")


@pytest.fixture(scope="module")
def viewed() -> Report:
    """Return a report that has a view of the result, in which the simplifier left some of the changed nodes out."""
    migration = onnx_migrate.migrate(FIXTURES / "unet_opset9.onnx", verify=False, isolated=False)
    return migration.viewed(migration.report)


@pytest.fixture(scope="module")
def many() -> Report:
    """Return the report of 1,500 changed nodes of two kinds, one with helper nodes, of names too long for any box."""
    operators = ("Clip <min = -1.0, max = 1.0>", "Softmax <axis = 1>")
    lines = [f"v{index + 1} = {operators[index % 2]} (v{index})" for index in range(1500)]
    proto = onnx.parser.parse_model(MANY.format(count=1500, nodes="\n".join(lines)))
    for index, node in enumerate(proto.graph.node):
        node.name = f"{'layer_of_a_long_name/' * 5}{index}"
    return onnx_migrate.migrate(proto, simplify=False, verify=False, isolated=False).report


@pytest.fixture(scope="module")
def refused() -> Failure:
    proto = onnx.parser.parse_model(
        """<ir_version: 6, opset_import: ["": 9]> g (float[1,3] x) => (float[1,3] y) {
             u = Unsqueeze <axes = [0]> (x)
             v = Squeeze <axes = [0]> (u)
             y = ATen <operator = "where"> (v, x)
           }"""
    )
    proto.graph.node[2].name = "gate"
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(proto, isolated=False)
    return Failure.of("c/refused.onnx", caught.value)


@pytest.fixture(scope="module")
def entries(report: Report, refused: Failure) -> list[Outcome]:
    failed = Failure.of(ODD, onnx_migrate.LoadError(ODD))
    return [
        Outcome(ODD, None, "failed", seconds=0.5, report=failed),
        Outcome("a/unet.onnx", None, "migrated", seconds=10.0, report=report),
        Outcome("b/small.onnx", None, "unchanged", seconds=9.0, report=report),
        Outcome("c/refused.onnx", None, "refused", seconds=0.75, report=refused),
    ]


@pytest.fixture(scope="module")
def batch(entries: list[Outcome], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batch(entries, tmp_path_factory.mktemp("batch"))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
