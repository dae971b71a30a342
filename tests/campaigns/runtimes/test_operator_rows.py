"""How the rows of operators follow from kept results, and that the generated tables load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onnx_migrate
from benchmarks.operator_cases import Case
from benchmarks.operator_limits import Ended, Limits, limits
from benchmarks.operator_rows import Measured, rows, text
from onnx_migrate.standard.targets.read import parse_table
from onnx_migrate.standard.targets.rows import Table

TABLES = Path(onnx_migrate.__file__).parent / "standard" / "targets" / "tables"

RELEASES = b'name = "mychip"\n[[release]]\nfrom = "1.0"\nopset = 17\n'


def ended(
    how: str, operator: str = "Relu", *, name: str = "opset9/x", version: int = 6, kind: str = "float32",
    rank: int = 4, given: tuple[str, ...] = (), others: tuple[str, ...] = (), **attributes: Any,
) -> Ended:  # fmt: skip
    case = Case(
        name,
        operator,
        version,
        kind,
        rank,
        rank,
        given,
        others,
        attributes,
        outputs=1,
        empty=False,
        digest="0",
    )
    return Ended(case, how)


def table(found: list[Measured]) -> Table:
    return parse_table(RELEASES, "mychip.toml", text(rows(found)).encode())


def test_what_is_right_in_every_case_is_measured_for_its_types() -> None:
    found = limits([ended("right"), ended("right", kind="int8")])

    assert found == Limits(types=("float32", "int8"))


@pytest.mark.parametrize(("why", "types"), [("(-5) in function 'setInput'", 2), ("it does not load", 1)])
def test_a_type_that_cannot_be_fed_is_taken_as_in_float32(why: str, types: int) -> None:
    half = replace(ended("fails", name="opset9/x-float16", kind="float16"), why=why)
    (row,) = rows([Measured("1.0", [ended("right"), half])])

    assert len(row.limits.types) == types


@pytest.mark.parametrize("how", ["wrong", "fails", "crashes", "times out"])
def test_what_is_right_in_no_case_is_lacking(how: str) -> None:
    assert limits([ended(how), ended(how, kind="int8")]) == Limits(lacking=True)


def test_a_type_that_fails_is_not_taken() -> None:
    assert limits([ended("right"), ended("fails", kind="int8")]) == Limits(types=("float32",))


def test_a_version_that_fails_bounds_the_others() -> None:
    right = [ended("right", version=version) for version in (6, 13)]

    assert limits([*right, *[ended("fails", version=14)] * 3]) == Limits(newest=13, types=("float32",))
    assert limits([*right, ended("fails", version=14)]) is None
    assert limits([*right, ended("fails", version=1)]) == Limits(oldest=6, types=("float32",))
    assert (
        limits([*right, ended("fails", version=9)]) is None
    )  # between two that are right, and one case in three


def test_a_value_of_an_attribute_that_fails_is_not_taken() -> None:
    right = [ended("right", mode=mode, n=3) for mode in ("linear", "nearest")]

    found = limits([*right, ended("wrong", mode="cubic", n=3)])

    assert found == Limits(types=("float32",), attributes=(("mode", ("linear", "nearest")),))


def test_an_input_that_is_constant_where_it_is_right_and_a_rank_that_is_too_high() -> None:
    right = [ended("right"), ended("right", rank=3)]

    found = limits([*right, *[ended("fails", given=("shape",))] * 4])

    assert found == Limits(types=("float32",))
    assert found.constants == ("shape",)
    assert limits([*right, ended("fails", rank=5)]) == Limits(rank=4, types=("float32",))
    assert limits([*right, ended("fails", rank=2)]) is None


def test_what_fails_without_a_sign_is_not_known() -> None:
    assert limits([ended("right"), ended("right"), ended("fails")]) is None
    assert limits([ended("right", n=3), ended("fails", n=4)]) is None  # a number of which there are many


def test_versions_beyond_the_newest_opset_do_not_count_for_operators_that_it_has() -> None:
    older = [ended("fails", "Gemm", name="opset9/x", version=9)] * 3 + [
        ended("right", "Gemm", version=9)
    ] * 10
    newer = [ended("right", "Gemm", name="opset13/x", version=13)] * 11
    late = [ended("fails", "Einsum", name="opset12/x", version=12)]

    def found(opset: int | None) -> list[tuple[tuple[str, ...], int | None, bool]]:
        cases = [*older, *newer, *late]
        return [
            (row.names, row.limits.oldest, row.limits.lacking)
            for row in rows([Measured("1.2", cases, opset=opset)])
        ]

    assert found(None) == [(("Gemm",), 13, False), (("Einsum",), None, True)]
    assert found(9) == [(("Gemm",), None, False), (("Einsum",), None, True)]


def test_what_seldom_fails_without_a_sign_is_named() -> None:
    found = table([Measured("1.2", [*[ended("right")] * 9, ended("wrong", name="opset9/relu_odd")])])

    (row,) = found.operators
    assert row.source == "python -m benchmarks.runtime_operators, 1.2 (10 models); not right: Relu (relu_odd)"


def test_where_node_tests_fail_the_forms_of_exporters_decide() -> None:
    forms = [ended("right", name=f"opset9/form_Relu_{number}") for number in range(10)]

    found = table([Measured("1.2", [*forms, *[ended("fails"), ended("right")] * 9])])
    assert [row.names for row in found.operators] == [("Relu",)]
    assert not table([Measured("1.2", [ended("fails"), ended("right")])]).operators


def test_an_operator_that_a_right_model_has_is_not_lacking() -> None:
    other = [ended("right", "Add", name="opset9/form_Add", others=("Shape",)), ended("fails", "Shape")]

    assert [row.names for row in table([Measured("1.2", other)]).operators] == [("Add",)]


@pytest.mark.parametrize("right", [{"Add": 2}, {"Add": 2, "Erf": 1}])
def test_a_model_that_fails_though_all_is_known_of_it_leaves_its_rarest_operator_unknown(
    right: dict[str, int],
) -> None:
    cases = [ended("right", name) for name in ("Erf", "Add", "If")] + [ended("fails", "Scan")]
    failing = (frozenset({"Erf", "Add"}), frozenset({"Scan", "Add"}))

    found = table([Measured("1.2", cases, computed=right, failing=failing)])

    assert [(row.names, row.lacking) for row in found.operators] == [(("Add",), False), (("Scan",), True)]


def test_a_form_that_the_table_has_written_makes_a_case_right() -> None:
    one = ended("fails", "Conv")
    found = [Ended(one.case, one.how, written=frozenset({"kernel_shape"}))]

    assert table([Measured("1.2", found)]).operators[0].lacking
    assert not table([Measured("1.2", found, frozenset({"kernel_shape"}))]).operators[0].lacking


def test_runtimes_without_scalars_vectors_and_integers_are_not_judged_by_them() -> None:
    cases = [ended("right"), ended("fails", rank=1), ended("fails", kind="int64")]

    (row,) = table([Measured("1.2", cases, axes=2)]).operators
    assert {"float", "int64"} <= set(row.types)


def test_a_type_that_does_not_mostly_fail_is_not_ruled_out() -> None:
    cases = [ended("right"), *[ended("right", kind="int8")] * 2, *[ended("fails", kind="int8")] * 5]

    assert limits(cases) == Limits(types=("float32", "int8"))


def test_a_row_holds_until_the_release_that_differs() -> None:
    found = table(
        [
            Measured("4.5.5.64", [ended("fails")]),
            Measured("4.8.1.78", [ended("right")]),
            Measured("4.9.0.80", [ended("right"), ended("fails")]),
            Measured("4.10.0.84", [ended("right")]),
        ]
    )

    assert [(row.since, row.until, row.lacking) for row in found.operators] == [
        ("4.8", "4.9", False), ("4.10", "", False), ("4.5", "4.8", True),
    ]  # fmt: skip


def test_operators_that_are_taken_alike_share_a_row() -> None:
    found = table([Measured("1.2", [ended("right", name) for name in ("Relu", "Abs")])])

    (row,) = found.operators
    assert row.names == ("Abs", "Relu")
    assert row.measured
    assert row.types == ("float",)


@pytest.mark.parametrize("path", sorted(TABLES.glob("*.operators.toml")), ids=lambda path: path.name)
def test_a_generated_table_loads(path: Path) -> None:
    beside = path.with_name(path.name.replace(".operators", ""))

    found = parse_table(beside.read_bytes(), beside.name, path.read_bytes())

    assert [row for row in found.operators if row.measured and row.source]


def test_a_sample_says_neither_limits_nor_what_is_lacking() -> None:
    cases = [ended("right", kind=kind, version=6) for kind in ("float32", "int8")]
    cases += [ended("fails", "Abs")] * 9 + [ended("fails", version=13)] * 9
    (row,) = table([Measured("1.2", cases, sampled=True)]).operators

    assert (row.names, row.types, row.newest, row.lacking) == (("Relu",), (), None, False)
    assert "a sample of 20 models, no limits" in row.source
