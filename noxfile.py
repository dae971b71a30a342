"""The parts of CI. `nox -l` lists them, `nox -s style` runs one, and `.ci/run` runs all of them.

The parts `job` to `oldest` work in clean copies of the commit in build/ci, in environments that README's commands made.
The others check the files of this folder.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "style"]

ROOT = Path(__file__).parent
WORK = ROOT / "build" / "ci"
PYTHON = ".venv/bin/python"

os.environ["PIP_COMPILE"] = "0"  # Python compiles and keeps the files that it imports: a quarter of all
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@nox.session(venv_backend="none")
def job(session: nox.Session) -> None:
    """Run README's first command in a clean copy: it installs onnx-migrate and converts a model."""
    with session.chdir(_copy(session, "job")):
        session.run("bash", "-euo", "pipefail", "-c", _readme(1), external=True)
        if not Path("migrated.onnx").stat().st_size:
            session.error("README's first command wrote no model")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run README's test command in a clean copy, with a new environment."""
    _programs(session, "groff", "cmake", "ninja")
    with session.chdir(_copy(session, "tests")):
        session.run("bash", "-euo", "pipefail", "-c", _readme(2), external=True)


@nox.session(venv_backend="none")
def long(session: nox.Session) -> None:
    """Run the tests that take longer than 1.5 s each, with a browser."""
    _programs(session, "chromium", "groff", "cmake", "ninja")
    with session.chdir(_environment(session)):
        files = [
            str(path)
            for path in sorted(Path("tests").rglob("*.py"))
            if "mark.long" in path.read_text("utf-8")
        ]
        # Only files that have some, because to collect all tests takes 10 s. Three at a time: some wait for processes.
        session.run(PYTHON, "-m", "pytest", "-n", "3", "-m", "long", *files, external=True)


@nox.session(venv_backend="none")
def runtimes(session: nox.Session) -> None:
    """Run the tests that need other runtimes than ONNX Runtime."""
    _programs(session, "npm")
    node = WORK / "node"
    session.run("npm", "install", "--silent", "--prefix", str(node), "onnxruntime-web", external=True)
    with session.chdir(_environment(session)):
        _install(session, "-e", ".[test,openvino,opencv,tract,mnn]")
        # pnnx asks for 4 GB of PyTorch, and converts ONNX models without it.
        _install(session, "ncnn")
        _install(session, "--no-deps", "pnnx")
        session.run(
            PYTHON, "-m", "pytest", "-n", "2", "--all",
            "tests/verify/evaluators/drivers", "tests/verify/other_runtimes", "tests/campaigns/runtimes",
            external=True, env={"ONNX_MIGRATE_TEST_NODE": str(node)},
        )  # fmt: skip


@nox.session(venv_backend="none")
def integers(session: nox.Session) -> None:
    """Run the tests of integer products on an emulated processor without VNNI, whose kernels saturate."""
    if platform.machine() != "x86_64":
        session.skip("the emulator is for x86-64")
    _programs(session, "qemu-x86_64")
    with session.chdir(_environment(session)):
        session.run(
            "qemu-x86_64", "-cpu", "Haswell", PYTHON, "-m", "pytest",
            "tests/verify/evaluators/quirks/test_integer_sums.py", "tests/passes/steps/test_integer_products.py",
            external=True,
        )  # fmt: skip


@nox.session(venv_backend="none")
def one_release(session: nox.Session) -> None:
    """Run the tests of faults that ONNX Runtime 1.31 has, on four threads."""
    with session.chdir(_environment(session)):
        _install(session, "onnxruntime==1.31.*")
        session.run(
            PYTHON, "-m", "pytest",
            "tests/verify/equivalence/test_check.py", "tests/verify/equivalence/test_endings.py",
            "tests/verify/equivalence/test_original_run.py", "tests/verify/test_load_check.py", "tests/test_verification.py",
            "tests/explanation/test_provoked.py",
            external=True, env={"OMP_NUM_THREADS": "4"},
        )  # fmt: skip
        _install(session, "--upgrade", "onnxruntime")


OF_NEWEST = (
    "docs", "examples", "standard/error_texts", "report/test_codes.py", "report/html/test_render.py",
    "report/html/test_node_diagram.py", "campaigns/faults", "batching", "test_session.py", "test_skips.py",
    "test_architecture.py", "test_packaging.py", "cli/test_endless_inputs.py", "cli/test_for.py",
    "cli/test_process_limits.py", "cli/test_request.py", "cli/test_standard_streams.py", "cli/test_stop_signals.py",
    "verify/other_runtimes/test_proof.py",
)  # fmt: skip
"""Tests that old versions of packages do not change.

They test the project's text, pages in Chromium, system calls, standard streams, signals, examples and the package."""


@nox.session(venv_backend="none")
def oldest(session: nox.Session) -> None:
    """Run the tests on Python 3.10 with the lower bounds of setup.cfg (tests/oldest.txt)."""
    python = _python310()
    if python is None:
        session.skip("there is no Python 3.10, on PATH or of pyenv: the lower bounds are NOT TESTED")
    with session.chdir(_copy(session, "oldest")):
        session.run(python, "-m", "venv", ".venv", external=True)
        _install(session, "-r", "tests/oldest.txt")
        _install(session, "-e", ".[test]")
        session.run(
            PYTHON,
            "-m",
            "pytest",
            "-n",
            "2",
            *(f"--ignore=tests/{path}" for path in OF_NEWEST),
            "tests",
            external=True,
        )


@nox.session
def style(session: nox.Session) -> None:
    """Check style, types and English."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy", "onnx_migrate", "passes", "tests/typed_calls.py")
    session.run("python", "-m", "tools.prose")


@nox.session
def release(session: nox.Session) -> None:
    """Build the files of a release, and check them and the workflows."""
    session.install("build", "twine", "zizmor", "check-jsonschema")
    files = Path(session.create_tmp()) / "dist"
    shutil.rmtree(files, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(files), str(_copy(session, "release")))
    session.run("python", "-m", "tools.core_wheel", str(files))
    session.run("twine", "check", "--strict", *map(str, files.iterdir()))
    session.run("zizmor", "--offline", ".github", "action.yml")
    for schema, pattern in (
        ("vendor.github-workflows", "workflows/*.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.dependabot", "dependabot.yml"),
    ):
        found = map(str, sorted(ROOT.joinpath(".github").glob(pattern)))
        session.run("check-jsonschema", "--builtin-schema", schema, *found)


@nox.session
def site(session: nox.Session) -> None:
    """Build the docs as a site, without broken links."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


def _readme(number: int) -> str:
    """Return a block of commands of README, the first being 1."""
    return re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[number - 1]


def _copy(session: nox.Session, name: str) -> Path:
    """Return a new folder with the files of the commit."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    session.log(f"{folder} has the files of the commit")
    return folder


def _environment(session: nox.Session) -> Path:
    """Return the copy in which README's test command made an environment; make both if the part `tests` did not."""
    folder = WORK / "tests"
    if not (folder / PYTHON).exists():
        folder = _copy(session, "tests")
        *preparation, _ = _readme(2).split("&&")
        with session.chdir(folder):
            session.run("bash", "-euo", "pipefail", "-c", "&&".join(preparation), external=True)
    return folder


def _install(session: nox.Session, *packages: str) -> None:
    session.run(PYTHON, "-m", "pip", "install", "--quiet", *packages, external=True)


_PACKAGES = {"chromium": "chromium", "cmake": "cmake", "groff": "groff", "ninja": "ninja-build", "npm": "npm",
             "qemu-x86_64": "qemu-user"}  # fmt: skip
"""The Debian package of each program."""

_OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome")}


def _programs(session: nox.Session, *names: str) -> None:
    """Install the Debian packages of programs that are missing. Fail if one is still missing: its tests would skip."""

    def is_missing(name: str) -> bool:
        return not any(shutil.which(each) for each in (name, *_OTHER_NAMES.get(name, ())))

    missing = [_PACKAGES[name] for name in names if is_missing(name)]
    if missing:
        session.run("apt-get", "update", "-q", external=True)
        session.run("apt-get", "install", "-yq", "--no-install-recommends", *missing, external=True)
    if still := [name for name in names if is_missing(name)]:
        session.error(f"the tests need {', '.join(still)}, which cannot be installed")


def _python310() -> str | None:
    """Return a Python 3.10 that runs, on PATH or of pyenv; a shim of pyenv is on PATH although it may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for python in ("python3.10", *map(str, sorted(pyenv.glob("versions/3.10.*/bin/python")))):
        check = [python, "-c", "import sys; sys.exit(sys.version_info[:2] != (3, 10))"]
        if shutil.which(python) and subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return python
    return None
