"""What is installed, by every way of installing."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution, distributions, packages_distributions
from pathlib import Path

import pytest

from onnx_migrate import __version__
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

MODEL = ROOT / "fixtures" / "conv_relu_upsample_opset11.onnx"
SKIPPED = {
    ".git",
    ".venv",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "dist",
}


def call(*command: object, cwd: Path) -> str:
    """Run a command without anything of this source tree on its path. Returns what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the source tree, for what building leaves behind."""
    copy = tmp_path_factory.mktemp("tree") / "onnx-migrate"
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if name not in SKIPPED and not name.endswith(".egg-info")]
        target = copy / Path(folder).relative_to(ROOT)
        target.mkdir()
        for name in files:
            if not name.endswith(".pyc"):
                (target / name).write_bytes((Path(folder) / name).read_bytes())
    return copy


def build(tree: Path, target: Path, kind: str) -> Path:
    """Build a "wheel" or an "sdist" with the setuptools of this environment, and return it."""
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(target)!r}))"
    return target / call(sys.executable, "-c", code, cwd=tree).splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("sdist"), "sdist")


def sources() -> set[str]:
    """Return the files a wheel is to hold, by the names they have in it."""
    kinds = ("*.py", "*.pyi", "*.toml", "*.jsonl", "*.mjs", "*.jinja")
    package = {str(path.relative_to(ROOT)) for kind in kinds for path in (ROOT / "onnx_migrate").rglob(kind)}
    passes = {
        f"onnx_migrate/{path.relative_to(ROOT)}" for kind in kinds for path in (ROOT / "passes").rglob(kind)
    }
    texts = {"onnx_migrate/py.typed", "onnx_migrate/explanation/step_examples.txt"}
    manual = {f"onnx_migrate-{__version__}.data/data/share/man/man1/onnx-migrate.1"}
    return package | passes | texts | manual


def files_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.long
def test_the_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    info = f"onnx_migrate-{__version__}.dist-info/"
    names = files_in(wheel)

    assert len(names) == len(set(names))
    assert {name for name in names if not name.startswith(info)} == sources()
    assert f"{info}entry_points.txt" in names
    assert any(name.startswith(info) and name.endswith("LICENSE") for name in names)


def test_no_top_level_package_but_ours(wheel: Path) -> None:
    assert {name.split("/")[0] for name in files_in(wheel)} == {
        "onnx_migrate",
        f"onnx_migrate-{__version__}.data",
        f"onnx_migrate-{__version__}.dist-info",
    }


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"onnx_migrate-{__version__}.dist-info/METADATA").decode()
    needs = {
        line.partition(": ")[2].split(";")[0].replace(" ", "")
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist") and "extra ==" not in line
    }

    assert "Requires-Python: >=3.10" in metadata
    for name in ("onnx", "numpy", "protobuf", "onnx-graphsurgeon", "onnxsim", "rich-click"):
        assert any(need.startswith(f"{name}>=") for need in needs), f"{name} has no lower bound"
    runtime = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: onnxruntime>=")]
    assert {line.partition("extra == ")[2].strip("'\"") for line in runtime} == {"all", "onnxruntime", "test"}


@pytest.mark.long
def test_the_sdist_can_be_tested(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    kept = [
        "setup.cfg",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "SECURITY.md",
        "passes/cleanup.py",
        "tests/harness.py",
        "fixtures/make.py",
    ]
    assert set(kept) <= names
    assert MODEL.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if name.endswith(".pyc")]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, onnx_migrate; print({'onnx', 'numpy', 'onnxruntime', 'rich_click'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new environment that sees the packages of this one, but nothing of ours."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    others = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    return folder / "bin" / "python"


def unpack(wheel: Path, python: Path) -> Path:
    """Put a wheel's files where pip would put them, and return the folder."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


USE = """
import importlib, sys
from pathlib import Path
import onnx_migrate
home = Path(onnx_migrate.__file__).parent
source, target = sys.argv[1:]
onnx_migrate.migrate(source, verify=False, isolated=True).save(target)
from onnx_migrate.engine.steps.registry import steps
assert len(list(steps())) > 100  # found by looking into the folder of adapters
assert "passes" not in sys.modules
print(home)
"""


@pytest.mark.long
@skip_if(sys.platform == "win32", "paths of environments", Elsewhere.LINUX)
def test_the_wheel_works(wheel: Path, python: Path, tree: Path, tmp_path: Path) -> None:
    site = unpack(wheel, python)
    for cwd in (tmp_path, tree):  # in a source tree the folder found first is the tree's
        target = tmp_path / f"{cwd.name}.onnx"
        home = call(python, "-c", USE, MODEL, target, cwd=cwd).strip()
        assert Path(home) == (tree if cwd == tree else site) / "onnx_migrate"
        assert target.stat().st_size > 0
    assert (tmp_path / f"{tree.name}.onnx").read_bytes() == (tmp_path / f"{tmp_path.name}.onnx").read_bytes()


def new_environment(folder: Path) -> Path:
    """Return the interpreter of a new environment with pip, which installs what we need from the registry."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


@pytest.mark.campaign
@pytest.mark.parametrize("way", ["regular", "editable", "sdist", "wheel"])
def test_installed_by_pip(way: str, tree: Path, wheel: Path, sdist: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path / "venv")
    place, *option = {"regular": [tree], "editable": [tree, "-e"], "sdist": [sdist], "wheel": [wheel]}[way]
    what = [*option, f"{place}[all]"]
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what, cwd=tmp_path)
    console = python.with_name("onnx-migrate")

    outputs = set()
    for number, cwd in enumerate((tmp_path, tree)):
        for start in ([console], [python, "-m", "onnx_migrate"]):
            assert call(*start, "--version", cwd=cwd) == f"onnx-migrate, version {__version__}\n"
            target = tmp_path / f"out{number}.onnx"
            call(*start, MODEL, target, "--dynamic", "x:N,3,H,W", cwd=cwd)
            outputs.add(target.read_bytes())
    assert len(outputs) == 1
    modules = call(
        python, "-c", "import pkgutil; print([m.name for m in pkgutil.iter_modules()])", cwd=tmp_path
    )
    assert ("passes" in modules) == (way == "editable")  # which puts the root of the project on the path
    listed = call(python, "-m", "pip", "show", "-f", "onnx-migrate", cwd=tmp_path)
    assert "\n  passes/" not in listed
    call(python, "-m", "pip", "check", cwd=tmp_path)


def linked(folder: Path, names: Iterable[str]) -> tuple[Path, Path]:
    """Return the interpreter and the site-packages of a new environment with these packages, as links to those of this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in names:
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))).resolve())
    return folder / "bin" / "python", site


def install(python: Path, *what: object) -> None:
    """Install into an environment with the pip of this one, without a registry: nothing can be fetched that is not there."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    call(*pip, "install", "--quiet", "--no-index", *what, cwd=python.parent)


ALONE = """
import sys
import onnx, onnx_migrate
from onnx_migrate import UsageError, files
source, target = sys.argv[1:]
assert onnx_migrate.convert_version(onnx.load(source), 17).opset_import[0].version == 17
migration = onnx_migrate.migrate(source, opset=17, verify=False, simplify=False)
migration.save(target)
assert migration.report.json() and migration.report.outcome == "migrated"
files.save(files.load(target), target + ".copy")
assert onnx_migrate.inspect(target).opset == 17
assert onnx_migrate.inspect(source, runtime="all").outlooks
for call in (
    lambda: onnx_migrate.migrate(source, opset=17, simplify=False),
    lambda: onnx_migrate.compare(source, target),
    lambda: onnx_migrate.batch([source], target + ".d"),
    lambda: migration.report.text(),
):
    try:
        call()
    except UsageError as error:
        print(error.code, error.with_hint)
warned, = [note.message for note in onnx_migrate.migrate(source, verify=False).report.notes if note.code == "left-out"]
print(warned)
print(sorted({"onnxruntime", "onnxsim", "onnx_graphsurgeon", "rich", "click", "onnx_ir"} & set(sys.modules)))
"""


@pytest.mark.long
@skip_if(sys.platform == "win32", "paths of environments", Elsewhere.LINUX)
def test_beside_onnx_and_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    """What an exporter calls needs no other package; what does says so, with the command that installs it."""
    needed = [
        "onnx",
        "numpy",
        "protobuf",
        *{"ml_dtypes", "typing_extensions"} & set(packages_distributions()),
        *(["tomli"] if sys.version_info < (3, 11) else []),
    ]
    python, _ = linked(tmp_path / "venv", needed)
    install(python, "--no-deps", wheel)

    *refused, warned, loaded = call(
        python, "-c", ALONE, MODEL, tmp_path / "out.onnx", cwd=tmp_path
    ).splitlines()

    assert loaded == "[]"
    assert "pip install onnxsim" in warned
    assert len(refused) == 4
    assert all(line.startswith("not-installed ") and "pip install " in line for line in refused)
    assert ["--verify=off" in line for line in refused] == [True, False, True, False]
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "out.onnx.copy").read_bytes()


@pytest.mark.long
@skip_if(sys.platform == "win32", "paths of environments", Elsewhere.LINUX)
def test_another_distribution_of_onnxruntime_keeps_its_files(wheel: Path, tmp_path: Path) -> None:
    """All of them own the folder onnxruntime, so that a dependency on one would overwrite the other's files."""
    others = {found.metadata["Name"] for found in distributions()}
    others = {
        name
        for name in others
        if not name.lower().startswith(("onnxruntime", "onnx-migrate", "onnx_migrate"))
    }
    python, site = linked(tmp_path / "venv", sorted(others))
    standin = tmp_path / "onnxruntime_gpu-1.32.0-py3-none-any.whl"
    info = "onnxruntime_gpu-1.32.0.dist-info"
    with zipfile.ZipFile(standin, "w") as archive:
        archive.writestr("onnxruntime/__init__.py", "__version__ = '1.32.0'\n")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.32.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    install(python, standin)
    before = {path: path.read_bytes() for path in (site / "onnxruntime").rglob("*.py")}

    install(python, wheel)

    assert {path: path.read_bytes() for path in (site / "onnxruntime").rglob("*.py")} == before
    code = "from onnx_migrate import errors, report\nfrom onnx_migrate.report.request import tool_versions\n"
    code += "errors.require_onnxruntime('a test', '')\nprint(tool_versions()['onnxruntime'])"
    assert call(python, "-c", code, cwd=tmp_path) == "1.32.0\n"
    assert call(python.with_name("onnx-migrate"), "--version", cwd=tmp_path)


def test_an_editable_install_is_a_path_that_type_checkers_follow(tree: Path, tmp_path: Path) -> None:
    wheel = build(tree, tmp_path, "editable")

    with zipfile.ZipFile(wheel) as archive:
        (line,) = [name for name in archive.namelist() if name.endswith(".pth")]
        assert Path(archive.read(line).decode().strip()).samefile(tree)
    assert not [name for name in files_in(wheel) if name.endswith(".py")], "an import hook"


@pytest.mark.long
@pytest.mark.parametrize("module", ["files", "process", "inspection", "batching", "migration", "cli.app"])
def test_any_module_may_be_the_first_that_is_imported(module: str) -> None:
    """An import in a circle works or not by which module comes first."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", f"import onnx_migrate.{module}"], env=environment, check=True)
