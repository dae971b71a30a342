"""Selection at opsets that have Where; test_where has it below."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_migrate.passes.lowerings.selecting import select

from tests.lowering import NUMPY_TYPES, same_bits, special_values
from tests.passes.lowerings.test_building import Written


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


@pytest.mark.parametrize("name", NUMPY_TYPES)
@pytest.mark.parametrize("constants", ["", "then", "other"])
def test_every_type_keeps_all_bits(written: Written, name: str, constants: str) -> None:
    pool = special_values(np.dtype(name))
    y = np.roll(pool, 1)
    zero = np.zeros((), pool.dtype)
    condition = np.arange(len(pool)) % 3 == 0
    x, other = (zero if constants == which else array for which, array in (("then", pool), ("other", y)))

    def build(rw, _):  # type: ignore[no-untyped-def]
        chosen = rw.before("Cast", [rw.input(0)], to=9)
        values = [
            rw.constant(value, "v") if value.ndim == 0 else rw.before("Identity", [rw.constant(value, "v")])
            for value in (x, other)
        ]
        return select(rw, chosen, *values)

    for leaves in (13, 10):
        result = written.run(build, condition, leaves, leaves - 1, to_type=pool.dtype)
        same_bits([np.where(condition, x, other)], [result], name)
