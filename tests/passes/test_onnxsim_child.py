"""onnxsim on a file, with lower and lower limits for folded tensors until the result is small enough."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest

from onnx_migrate.engine.pass_registry import builtin_passes
from tests.harness import model
from tests.steps import operators
from tests.support.paths import ROOT

TEXT = """17 (float[1,4] x) => (float[1,3000] y)
<float[4,1] w = {1., 2., 3., 4.}, int64[2] n = {4, 3000}> { e = Expand(w, n)  y = MatMul(x, e) }"""


builtin_passes()
CHILD = sys.modules["onnx_migrate.passes.onnxsim_child"]
FOR_ANNOTATIONS, IMPORTS_ALONE = CHILD.FOR_ANNOTATIONS, CHILD.IMPORTS_ALONE


def simplify_file(folder: Path, allowed: int, *, alone: bool = False) -> int:
    from onnx_migrate.passes.onnxsim_child import simplify_file

    onnx.save(model(TEXT), folder / "a.onnx")
    return simplify_file(str(folder / "a.onnx"), str(folder / "b.onnx"), allowed, True, True, alone)


def test_with_enough_room_a_constant_is_folded(tmp_path: Path) -> None:
    size = simplify_file(tmp_path, 1 << 20)

    result = onnx.load(tmp_path / "b.onnx")
    assert operators(result) == ["MatMul"]
    assert size == result.ByteSize() > 48_000


def test_with_less_it_stays_computed(tmp_path: Path) -> None:
    simplify_file(tmp_path, 20_000)

    assert operators(onnx.load(tmp_path / "b.onnx")) == ["Expand", "MatMul"]


def test_with_too_little_nothing_is_written(tmp_path: Path) -> None:
    assert simplify_file(tmp_path, 10) > 10
    assert not (tmp_path / "b.onnx").exists()


@pytest.mark.long
def test_alone_it_imports_less_and_writes_the_same(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from tests.passes.test_onnxsim_child import simplify_file
for _ in range(2):
    simplify_file(Path({str(tmp_path)!r}), 1 << 20, alone=True)
print(*sys.modules)
"""
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    alone = (tmp_path / "b.onnx").read_bytes()
    simplify_file(tmp_path, 1 << 20)

    assert (tmp_path / "b.onnx").read_bytes() == alone
    assert "onnxsim" in loaded
    assert not any(name.startswith("sympy.") for name in loaded)
    if version("onnxsim") in IMPORTS_ALONE:
        assert not {"onnxsim.accuracy", "rich.table"}.intersection(loaded)


def test_nothing_that_simplify_calls_has_names_of_the_modules_that_are_left_out() -> None:
    spec = find_spec("onnxsim.onnx_simplifier")
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text())
    left_out = {name.removeprefix("onnxsim.") for name in FOR_ANNOTATIONS}
    taken = {
        alias.name
        for item in ast.walk(tree)
        if isinstance(item, ast.ImportFrom) and item.module in left_out
        for alias in item.names
    }
    parts = {
        item.name: {part.id for part in ast.walk(item) if isinstance(part, ast.Name)}
        for item in tree.body
        if isinstance(item, (ast.FunctionDef, ast.ClassDef))
    }
    used, pending = set[str](), ["simplify"]
    while pending:
        found = parts.get(pending.pop(), set()) - used
        used |= found
        pending += found

    assert not used & taken or version("onnxsim") not in IMPORTS_ALONE


def test_the_package_that_is_not_run_only_imports() -> None:
    spec = find_spec("onnxsim")
    assert spec is not None
    body = ast.parse(Path(str(spec.origin)).read_text()).body
    only_imports = all(
        isinstance(item, ast.ImportFrom) or ast.unparse(item).startswith("__all__ = [") for item in body
    )

    assert only_imports or version("onnxsim") not in IMPORTS_ALONE


@pytest.mark.parametrize(("alone", "copied"), [(True, [False, True, False]), (False, [False, True, True])])
def test_schemas_are_copied_for_operators_that_onnxsim_may_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool, copied: list[bool]
) -> None:
    import onnxsim

    asked = []

    def simplify(model: onnx.ModelProto, *, import_custom_schemas: bool = True, **options: object) -> object:
        asked.append(import_custom_schemas)
        return model, True

    monkeypatch.setattr(onnxsim, "simplify", simplify)
    monkeypatch.setattr(CHILD, "_copied", False)
    newer = TEXT.replace("MatMul(x, e)", "Gelu(e)").replace("17 (", "20 (")
    for text in (TEXT, newer, newer):
        onnx.save(model(text), tmp_path / "a.onnx")
        CHILD.simplify_file(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), 1 << 20, True, True, alone)

    assert asked == copied
