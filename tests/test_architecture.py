"""Who may import whom, and what the distribution holds."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

ARROWS = """
    __main__   -> cli
    __init__   -> batching session comparison difference reduction explanation inspection conversion migration pipelines
        engine report rewrite
    cli -> batching comparison difference reduction explanation inspection compatibility migration report pipelines
        options core_options engine verify files rewrite model standard
    explanation -> inspection compatibility engine report files model standard
    batching   -> migration options core_options engine verify report files model standard
    inspection -> remedies tried_advice compatibility pipelines options core_options engine report files rewrite
        facts model standard
    session    -> comparison migration files model
    comparison -> engine verify files facts model
    difference -> report files rewrite model
    reduction  -> engine verify files rewrite facts model standard
    conversion -> tried_advice options engine report files model rewrite
    migration  -> tried_advice migration_result verification report pipelines options
        core_options engine verify files rewrite model
    migration_result -> report files model
    verification -> engine verify rewrite model
    remedies   -> splitting tried_advice compatibility pipelines options model rewrite standard
    splitting  -> pipelines options rewrite model
    tried_advice  -> pipelines options rewrite model
    compatibility     -> pipelines options core_options engine rewrite facts model standard
    report     -> pipelines options engine rewrite facts model standard
    passes     -> plugins core_options engine verify files rewrite facts model standard
    plugins    -> engine rewrite standard
    pipelines  -> options engine
    options    -> core_options engine
    core_options -> engine verify standard
    engine     -> files rewrite facts model standard
    verify     -> files facts model standard
    files      -> model
    rewrite    -> facts model standard
    facts   -> model standard
    model      -> standard
    standard       ->

    cli/commands -> options output
    cli/output -> options

    passes/integers -> precision
    passes/precision -> targets
    passes/targets -> resize quantized standard
    passes/quantized -> standard
    passes/dynamic_dims/repair/control_flow -> domain
    passes/dynamic_dims/repair/grids -> domain
    passes/dynamic_dims/repair/rules -> domain grids

    model/mending -> validity

    verify/other_runtimes -> equivalence evaluators compare kernel
    verify/divergence -> equivalence evaluators kernel
    verify/precision -> equivalence evaluators inputs compare kernel
    verify/equivalence -> inputs evaluators compare kernel
    verify/dynamic -> inputs evaluators compare kernel
    verify/inputs -> evaluators compare kernel
    verify/evaluators -> kernel
    verify/compare -> kernel

    verify/inputs/corners -> constraints

    files/places -> wire
    files/reading -> kinds wire
"""
"""Who may import whom, from the top floor down: each room imports only what is below it. Nobody imports passes: the
registry finds them. Then the folders inside the rooms, by the names of the folders beside them: one without a row imports none
of these. The files of a folder are not listed; what keeps them in order is that there is no circle."""

LEAVES = {
    "advice",
    "cached",
    "declared",
    "docstrings",
    "errors",
    "forks",
    "json_form",
    "installed",
    "lazy_names",
    "process",
    "messages",
    "reported",
    "safe_open",
    "url",
    "verdicts",
    "_version",
}
"""May be imported by all, and import only each other."""

ALLOWED = {
    row.split("->")[0].strip(): row.split("->")[1].split()
    for row in ARROWS.replace("\n        ", " ").splitlines()
    if row
}

LAZY = {"onnxruntime", "onnxsim", "onnx_graphsurgeon"}


def sources() -> list[Path]:
    return sorted([*(ROOT / "onnx_migrate").rglob("*.py"), *(ROOT / "passes").rglob("*.py")])


@cache
def place(path: Path) -> tuple[str, ...]:
    """Return the rooms, folders and file that lead to a source: `("verify", "compare", "statistics")`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts if parts[0] == "passes" else parts[1:]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a body, and those inside them."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(inner := getattr(node, part, None), list):
                yield from statements(inner)


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in statements(parsed(path).body) if isinstance(node, (ast.Import, ast.ImportFrom))]


def imports(nodes: Iterable[ast.stmt], package: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the full names that code in a package imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


@cache
def files_imported() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return each pair of places of which the first imports the second."""
    places = {place(path) for path in sources()}
    found = set()
    for path in sources():
        own = place(path)
        for name in imports(import_nodes(path), ("onnx_migrate", *own[:-1])):
            top, *parts = name.split(".")
            assert top != "passes", f"{path} imports the source tree's folder"
            if top != "onnx_migrate":
                continue
            while tuple(parts) not in places and (*parts, "__init__") not in places:
                parts.pop()
            other = tuple(parts) if tuple(parts) in places else (*parts, "__init__")
            if other != own:
                found.add((own, other))
    return sorted(found)


@cache
def arrows() -> dict[str, dict[str, dict[str, str]]]:
    """Return, for each folder, which of its files and folders import which others of it, and one file that does."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for own, other in files_imported():
        depth = next(depth for depth, (a, b) in enumerate(zip(own, other, strict=False)) if a != b)
        found["/".join(own[:depth])][own[depth]][other[depth]] = "/".join(own)
    return found


def test_rooms_and_the_folders_in_them_follow_the_arrows() -> None:
    folders = {"/".join(place(path)[:depth]) for path in sources() for depth in range(1, len(place(path)))}
    wrong = []
    for folder, rows in arrows().items():
        prefix = f"{folder}/" if folder else ""
        for own, others in rows.items():
            allowed = {*ALLOWED.get(prefix + own, ()), *(LEAVES if not folder else ())}
            wrong += [
                f"{others[other]} must not import {prefix + other}"
                for other in others.keys() - allowed
                if not folder or {prefix + own, prefix + other} <= folders
            ]

    assert not wrong, "\n".join(wrong)


def test_every_arrow_is_that_of_an_import() -> None:
    unused = []
    for row, others in ALLOWED.items():
        folder, _, own = row.rpartition("/")
        unused += [f"{row} -> {other}" for other in others if other not in arrows()[folder].get(own, ())]

    assert not unused


def test_each_row_of_the_picture_imports_only_what_is_below_it() -> None:
    rooms = [row for row in ALLOWED if "/" not in row]
    for number, row in enumerate(rooms):
        assert set(ALLOWED[row]) <= set(rooms[number + 1 :]), row


def test_the_page_on_the_architecture_names_every_room_and_folder_of_passes() -> None:
    page = (ROOT / "docs" / "maintainers" / "architecture.md").read_text(encoding="utf-8")
    _, picture, table = page.split("```")
    rooms = [row for row in (*ALLOWED, *LEAVES) if "/" not in row and not row.startswith("_")]
    folders = {
        f"`passes/{place(path)[1]}/`"
        for path in sources()
        if place(path)[0] == "passes" and len(place(path)) > 2
    }

    assert not [room for room in rooms if not re.search(rf"\b{room}\b", picture)]
    assert not [folder for folder in folders if folder not in table]


def reached(start: str, rows: dict[str, dict[str, str]]) -> set[str]:
    """Return what is imported from a file or folder, at any distance."""
    found: set[str] = set()
    ahead = list(rows.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(rows.get(name, ()))
    return found


def test_no_imports_go_in_a_circle() -> None:
    """On no level: what imports each other is found among the files and folders of the folder that holds them all."""
    found = set()
    for folder, rows in arrows().items():
        below = {name: reached(name, rows) for name in rows}
        for name in rows:
            if name in below[name]:
                members = sorted(other for other in below[name] if name in below.get(other, ()))
                found.add(f"{folder}: {' '.join(members)}")

    assert not found


def test_what_a_file_keeps_for_itself_is_imported_by_no_other() -> None:
    taken = [
        f"{path} imports {alias.name} of {node.module}"
        for path in sources()
        for node in import_nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("onnx_migrate"))
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]

    assert not taken


DRIVERS = ROOT / "onnx_migrate" / "verify" / "evaluators" / "drivers"
"""Run in a process of their own, whose only purpose is the runtime that they import."""


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    wrong = [
        f"{path} imports {name} on top"
        for path in sources()
        if path.parent != DRIVERS
        for node in parsed(path).body
        for name in imports([node])
        if name.split(".")[0] in LAZY
    ]

    assert not wrong


def test_the_package_list_is_the_tree() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())

    assert listed == {".".join(("onnx_migrate", *place(path)[:-1])) for path in sources()}


def test_help_does_not_load_onnx() -> None:
    code = (
        "import sys; sys.argv = ['onnx-migrate', '--help']\n"
        "from onnx_migrate.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {'onnx', 'numpy', 'onnxruntime'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_a_default_migration_loads_only_the_passes_that_it_runs() -> None:
    code = (
        "import sys\n"
        "import onnx_migrate\n"
        "onnx_migrate.migrate('fixtures/conv_relu_upsample_opset9.onnx', simplify=False, verify=False)\n"
        "others = ('control_flow.control_flow', 'integers.int32', 'precision.precision', 'static_shapes.static_shapes')\n"
        "loaded = [name for name in others if f'onnx_migrate.passes.{name}' in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
