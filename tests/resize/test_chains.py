"""Resizes in a row, with shapes read between them and lengths that onnx infers wrong, stay exact in every form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run
from tests.resize.oracle import output_lengths
from tests.resize.test_grid import TARGETS

F = np.float32


def chains(count: int, seed: int) -> Iterator[tuple[onnx.ModelProto, tuple[int, ...]]]:
    """Yield models of up to four Resizes, of opsets 9 to 18, and the shape of their input."""
    rng = random.Random(seed)
    while count:
        made = _draw(rng)
        if made is not None:
            count -= 1
            yield made


def _draw(rng: random.Random) -> tuple[onnx.ModelProto, tuple[int, ...]] | None:
    opset = rng.choice((9, 10, 10, 11, 13, 18))
    shape = (1, 2, rng.randint(3, 40), rng.randint(3, 40))
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray[Any, Any]] = {"e": np.zeros(0, F)} if opset == 11 else {}
    value, lengths = "x", list(shape)
    for place in range(rng.randint(1, 4)):
        scales = [1.0, 1.0, *(_scale(rng, length, opset) for length in lengths[2:])]
        lengths = output_lengths(lengths, scales)
        if 0 in lengths or max(lengths) > 200:
            return None
        mode = rng.choice(("nearest", "linear", "cubic") if opset >= 11 else ("nearest", "linear"))
        words: dict[str, Any] = {"mode": mode}
        inputs = [value, f"s{place}"]
        if opset >= 11:
            words["coordinate_transformation_mode"] = rng.choice(
                ("half_pixel", "asymmetric", "align_corners")
            )
            inputs.insert(1, "e" if opset == 11 else "")
        weights[f"s{place}"] = np.array(scales, F)
        operator = "Upsample" if opset == 9 else "Resize"
        value = f"y{place}"
        nodes.append(helper.make_node(operator, inputs, [value], **words))
        if rng.random() < 0.4:
            nodes += [
                helper.make_node("Shape", [value], [f"n{place}"]),
                helper.make_node("Cast", [f"n{place}"], [f"f{place}"], to=1),
                helper.make_node("ReduceSum", [f"f{place}"], [f"t{place}"], keepdims=0),
                helper.make_node("Add", [value, f"t{place}"], [f"a{place}"]),
            ]
            value = f"a{place}"
    nodes.append(helper.make_node("Identity", [value], ["y"]))
    declared = rng.choice((shape, ("N", *shape[1:]), ("N", "C", "H", "W")))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, declared)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), shape


def _scale(rng: random.Random, length: int, opset: int) -> float:
    least = length if opset == 9 else max(1, length // 3)
    if rng.random() < 0.5:
        return float(F(rng.randint(least, 2 * length + 1)) / F(length))
    return rng.choice((1.0, 1.5, 2.0, 1.3, 1.04) if opset == 9 else (1.0, 1.5, 2.0, 1.3, 1.04, 0.7))


def check_chains(count: int, seed: int) -> int:
    changed = 0
    rng = random.Random(seed)
    for number, (source, shape) in enumerate(chains(count, seed)):
        batches = (
            (1,) if source.graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value") else (1, 3)
        )
        opset = source.opset_import[0].version
        x = np.random.default_rng(number).standard_normal((3, *shape[1:])).astype(F)
        # Where no length is known, none is inferred wrong, so the original loads.
        free = onnx.ModelProto.FromString(source.SerializeToString())
        free.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", 1, ("N", "C", "H", "W")))
        expected = [run(free, {"x": x[:batch]})[0] for batch in batches]
        for form in ("auto", "sizes", "scales"):
            target = rng.choice([target for target in TARGETS if target >= opset])
            log = ChangeLog()
            result = Model(onnx.ModelProto.FromString(source.SerializeToString()))
            builtin_passes()["migrate_opset"](opset=target).run(result, log)  # type: ignore[call-arg]
            builtin_passes()["resize_form"](form=form).run(result, log)  # type: ignore[call-arg]
            changed += any(change.pass_name == "resize_form" for change in log.changes)
            if any(note.code == "resize-length" for note in log.notes):
                continue  # may not load, and the report says so
            for batch, wanted in zip(batches, expected, strict=True):
                actual = run(result.proto, {"x": x[:batch]})[0]
                np.testing.assert_array_equal(
                    actual, wanted, err_msg=f"{number}: {opset} to {target}, {form}"
                )
    return changed


def test_sample() -> None:
    assert check_chains(60, 1) > 40


@pytest.mark.slow
def test_many() -> None:
    assert check_chains(3000, 2) > 1500
