"""Dims of outputs: inferred, declared, as formulas of lengths, and of the batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx_migrate.passes.dynamic_dims.length_formulas import Lengths, formula
from onnx_migrate.passes.dynamic_dims.output_dims import (
    OutputDims,
    declare_outputs,
    note_symbols,
    symbolic_outputs,
)
from onnx_migrate.passes.dynamic_dims.repair import RepairResult

import onnx_migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.expressions import value_of
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.steps import refuses
from tests.support.repairs import text

POOLED = text(
    "float[N,1,H] x", "float[p,q,r] y, float[s,t,u] z",
    """p = Shape(x) a = Reshape(x, p) y = Relu(a) z = MaxPool<kernel_shape=[2], strides=[2]>(y)""",
)  # fmt: skip


def test_an_axis_as_long_as_one_symbol_at_all_sizes_is_that_symbol() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["y"] == ("N", 1, "H")


def test_an_axis_computed_from_a_symbol_is_unknown() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["z"] == ("N", 1, "H//2")
    assert found.computed == {"H": [("z", 2)]}


def test_a_size_that_the_network_does_not_take_is_left_out() -> None:
    """Split into 2 equal parts takes even lengths only; the odd samples fail."""
    source = text(
        "float[H] x", "float[p] y",
        """s = Shape(x) w = Reshape(x, k) r = Transpose<perm=[1,0]>(w) y = Reshape(r, s)""",
        "int64[2] k = {2, -1}",
    )  # fmt: skip

    assert symbolic_outputs(model(source), {"H": 8}, set()).dims == {"y": ("H",)}


SOURCE = model(text("float[N,H] x", "float[N,a] y, float[b] z", "y = Relu(x) z = Abs(x)"))


def notes(outputs: OutputDims, output_symbols: dict[str, list[list[str] | None]]) -> list[str]:
    log = ChangeLog()
    result = RepairResult(Model(SOURCE), {}, output_symbols, ("N", "H"))
    note_symbols(result, outputs, log, "dynamic_dims")
    return [note.message for note in log.notes]


def test_an_output_axis_that_is_computed_from_a_symbol_is_named() -> None:
    found = notes(OutputDims({}, {"H": [("y", 1)]}, []), {})

    assert found == [
        "N: x[0] → y[0]",
        "H: x[1] → y[1] (computed from H)",
    ]


def test_what_inference_of_the_whole_leaves_open_comes_from_the_interpretation_of_the_nodes() -> None:
    found = notes(OutputDims({}, {}, [("z", 0)]), {"y": [["N"], []], "z": [["N", "H"]]})

    assert "N: x[0] → y[0], z[0] (computed from N)" in found[0]
    assert "H: x[1] → z[0] (computed from H)" in found[1]


def test_without_any_knowledge_of_an_axis_no_claim_is_made_of_it() -> None:
    assert "H: x[1] → no output axis" in notes(OutputDims({}), {})[1]
    assert "no output axis, as far as shape inference shows" in notes(OutputDims({}, {}, [("z", 0)]), {})[1]


DECLARED_SOURCE = text(
    "float[N,4,T] x", "float[9,9,9] y, float[9,9,9] z",
    "y = Relu(x) z = MaxPool<kernel_shape=[2], strides=[2]>(x)",
)  # fmt: skip


def declared(names: dict[str, dict[int, str]]) -> list[tuple[int | str | None, ...] | None]:
    result = Model(model(DECLARED_SOURCE))
    frozen = Interface.of(model(text("float[1,4,8] x", "float[1,4,8] y, float[1,4,4] z", "y = Relu(x)")))
    plan = DimPlan.of_axes({"x": {0: "N", 2: "T"}, **names}, frozen)
    declare_outputs(result, plan, {}, ChangeLog(), "dynamic_dims")
    return [port.shape for port in Interface.of(result.proto).outputs]


def test_symbols_and_numbers_are_inferred_and_other_lengths_get_own_names() -> None:
    assert declared({}) == [("N", 4, "T"), ("N", 4, "T//2")]


def test_a_name_of_the_users_stands_for_a_length_of_its_own() -> None:
    assert declared({"z": {2: "half"}})[1] == ("N", 4, "half")


def test_a_name_for_a_fixed_length_is_refused() -> None:
    refuses("frozen-output", declared, {"y": {1: "C"}})


def test_a_second_name_for_an_inputs_symbol_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        declared({"y": {0: "M"}})

    assert caught.value.code == "two-names"


def untyped(body: str) -> Model:
    found = model(text("float[N,4] x", "float[9,9] y", body))
    found.graph.output[0].ClearField("type")
    found.opset_import.add(domain="mine", version=1)
    frozen = Interface.of(model(text("float[1,4] x", "float[1,4] y", "y = Relu(x)")))
    result = Model(found)
    declare_outputs(result, DimPlan.of_axes({"x": {0: "N"}}, frozen), {}, ChangeLog(), "dynamic_dims")
    return result


def test_an_output_without_a_type_gets_the_inferred_one() -> None:
    (port,) = Interface.of(untyped("y = Shape(x)").proto).outputs
    assert (port.kind, port.shape) == ("int64", (2,))


def test_an_output_whose_type_is_not_inferred_stays_without() -> None:
    """Element type 0 with a shape is not a type: ONNX Runtime does not load it."""
    (value,) = untyped("y = mine.Odd(x)").proto.graph.output
    assert value.type.WhichOneof("value") is None


STEPS = (1, 2, 31, 32, 33, 63, 64)


def found(length: Callable[..., int], **frozen: int) -> Lengths:
    """Return what shape inference would find of a length that this function computes."""
    alone = [{**frozen, name: size + step} for name, size in frozen.items() for step in STEPS]
    together = [
        {name: size + STEPS[place + start] for place, (name, size) in enumerate(frozen.items())}
        for start in (0, 1)
    ]
    tried = [*alone, *(together if len(frozen) > 1 else [])]
    return Lengths(frozen, length(**frozen), [(sizes, length(**sizes)) for sizes in tried])


@pytest.mark.parametrize(
    ("length", "frozen", "text"),
    [
        (lambda h: 2 * h, {"h": 32}, "2*h"),
        (lambda h: h - 2, {"h": 32}, "h - 2"),
        (lambda h: 3 * h + 5, {"h": 7}, "3*h + 5"),
        (lambda h: h // 2, {"h": 33}, "h//2"),
        (lambda h: -(-h // 2), {"h": 33}, "(h + 1)//2"),
        (lambda h: -(-h // 32), {"h": 224}, "(h + 31)//32"),
        (lambda h: h // 32, {"h": 224}, "h//32"),
        (lambda h: 4 * (h // 8), {"h": 64}, "4*(h//8)"),
        (lambda h: h // 4 + 1, {"h": 224}, "h//4 + 1"),
        (lambda n, t: n * t, {"n": 1, "t": 9}, "n*t"),
        (lambda n, t: 8 * n * t, {"n": 2, "t": 9}, "8*n*t"),
        (lambda p, t: p + t, {"p": 4, "t": 9}, "p + t"),
        (lambda p, t: p + t + 1, {"p": 4, "t": 9}, "p + t + 1"),
    ],
)  # fmt: skip
def test_the_expression_of_a_length(length: Callable[..., int], frozen: dict[str, int], text: str) -> None:
    assert formula(found(length, **frozen)) == text
    larger = {name: size + 100 * place for place, (name, size) in enumerate(frozen.items(), 1)}
    assert value_of(text, larger) == length(**larger)


@pytest.mark.parametrize(
    ("length", "frozen"),
    [
        (lambda h: h * h, {"h": 8}),
        (lambda h: min(h, 40), {"h": 32}),
        (lambda h: (h + 12) // 32, {"h": 224}),
        (lambda h, w: (h // 8) * (w // 8), {"h": 64, "w": 64}),
        (lambda h, w: max(h, w), {"h": 32, "w": 48}),
    ],
    ids=["square", "bound", "several fit", "product of quotients", "larger of two"],
)  # fmt: skip
def test_no_expression_where_none_or_several_fit(length: Callable[..., int], frozen: dict[str, int]) -> None:
    assert formula(found(length, **frozen)) is None


def test_a_symbol_that_is_no_identifier_is_in_no_expression() -> None:
    assert formula(Lengths({"a.b": 4}, 8, [({"a.b": size}, 2 * size) for size in (5, 6, 7, 8)])) is None


def test_few_sizes_are_not_enough() -> None:
    assert formula(Lengths({"h": 4}, 8, [({"h": 5}, 10), ({"h": 6}, 12)])) is None


def test_the_plan_that_succeeds_is_the_one_that_is_reported() -> None:
    """[1, 1, 3]: layers and batch are both 1. Only the network's operators show which is the batch."""
    rows = ",".join(["0.5"] * 36)
    source = text(
        "float[4,1,2] x, float[1,1,3] h", "float[4,1,1,3] y, float[1,1,3] yh",
        "y, yh = LSTM<hidden_size=3>(x, w, r, , , h)",
        "float[1,12,2] w = {" + ",".join(["0.5"] * 24) + "}, float[1,12,3] r = {" + rows + "}",
    )  # fmt: skip

    migration = onnx_migrate.migrate(model(source), dynamic_batch="batch")

    interface = Interface.of(migration.model)
    assert [port.shape for port in interface.inputs] == [(4, "batch", 2), (1, "batch", 3)]
    assert [port.shape for port in interface.outputs] == [(4, 1, "batch", 3), (1, "batch", 3)]
    assert migration.report.dynamic is not None
    assert migration.report.dynamic.holds
    assert [(dim.input, dim.axis, dim.symbol) for dim in migration.report.dims.dims] == [
        ("x", 1, "batch"),
        ("h", 1, "batch"),
    ]


def test_a_batch_that_is_dynamic_already_is_kept() -> None:
    migration = onnx_migrate.migrate(
        model(text("float[M,4] x", "float[M,4] y", "y = Relu(x)")), dynamic_batch=True
    )

    assert Interface.of(migration.model).inputs[0].shape == ("M", 4)
