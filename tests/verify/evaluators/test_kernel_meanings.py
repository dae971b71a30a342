"""ONNX Runtime's own operators are run by what they mean: without quantised inputs, and with outputs that keep them in bounds."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

import onnx_migrate
from onnx_migrate.verify.evaluators.kernel_meanings import write_as_meant
from tests.passes.contrib.level_2 import few_bits
from tests.passes.contrib.level_3 import multi_head
from tests.passes.contrib.one_node import Case, session


def find(cases: object, label: str) -> Case:
    return next(case for case in cases if case.label == label)  # type: ignore[attr-defined]


def test_a_product_that_quantises_its_input_is_compared_by_its_weights() -> None:
    case = find(few_bits(), "4-64-32-None-False-True")
    proto = case.model(21)
    proto.graph.node[0].attribute.append(helper.make_attribute("accuracy_level", 4))
    exact = session(case.model(21)).run(None, case.feeds)[0]
    quantised = session(proto).run(None, case.feeds)[0]
    assert np.abs(exact - quantised).max() > 1e-3 * np.abs(exact).max()
    migration = onnx_migrate.migrate(proto, standard=True, opset=21)
    assert migration.report.verified
    assert "accuracy_level 0" in str(migration.report)


def test_an_attention_with_a_cache_gets_the_outputs_that_it_needs() -> None:
    case = find(multi_head(), "0-3-none-False-0")
    proto = case.model(17)
    del proto.graph.output[1:]
    del proto.graph.node[0].output[1:]
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(copy) == (1, False)
    assert len(copy.graph.node[0].output) == 3
    assert write_as_meant(copy) == (0, False)
    assert onnx_migrate.migrate(proto, standard=True).report.verified
