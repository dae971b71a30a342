"""Requests such as "onnxruntime==1.9@FOLDER": what is found, and what is said where it is not there."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import onnxruntime
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.evaluators import driver_facts
from onnx_migrate.verify.other_runtimes.places import asked_for, place_of


def test_what_is_installed_here(faulty):
    assert faulty.runtime == "Faulty 2.3.4"
    assert asked_for("faulty") == (faulty,)
    assert asked_for([" Faulty", "Faulty", "faulty==2.3"])[0].place == faulty.place


@pytest.mark.parametrize("version", ["2", "2.3", "2.3.4"])
def test_a_version_may_be_shortened(faulty, version):
    assert place_of(f"faulty=={version}").runtime == "Faulty 2.3.4"


@pytest.mark.parametrize("version", ["2.4", "1", "2.3.40", "2.3.4.5"])
def test_another_version_is_refused(faulty, version):
    with pytest.raises(
        UsageError, match=r"asks for another version than the one that is there, Faulty 2\.3\.4"
    ) as caught:
        place_of(f"faulty=={version}")
    assert caught.value.code == "runtime-not-installed"
    assert f"=={version}@FOLDER" in caught.value.hint


def test_an_unknown_runtime_names_the_nearest():
    with pytest.raises(UsageError, match="nothing can be run in 'trakt' here") as caught:
        place_of("trakt")
    assert caught.value.code == "no-such-evaluator"
    assert "did you mean tract?" in caught.value.hint


def test_what_is_not_installed_names_the_command(faulty, tmp_path):
    (driver_facts.DRIVERS / "faulty.py").write_text("import no_such_package", encoding="utf-8")
    place_of.cache_clear()
    with pytest.raises(
        UsageError, match="Faulty is not installed: No module named 'no_such_package'"
    ) as caught:
        place_of("faulty")
    assert (caught.value.code, caught.value.hint) == (
        "runtime-not-installed",
        'pip install "onnx-migrate[faulty]"',
    )


def test_a_virtual_environment_is_asked_by_its_own_python(faulty, tmp_path):
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    with pytest.raises(UsageError, match="other: No module named 'numpy'") as caught:
        place_of(f"faulty==1.0@{tmp_path / 'other'}")
    assert "bin/pip install faulty==1.0" in caught.value.hint
    packages = Path(next(entry for entry in sys.path if Path(entry, "numpy").is_dir()))
    site = next((tmp_path / "other").glob("lib/python*/site-packages"))
    Path(site, "all.pth").write_text(str(packages), encoding="utf-8")
    found = place_of(f"faulty@{tmp_path / 'other'}")
    assert found.runtime == "Faulty 2.3.4"
    assert str(tmp_path) in found.place.python


def test_a_folder_of_packages_comes_first(faulty, tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "onnxruntime.py").write_text("__version__ = '0.1'", encoding="utf-8")
    driver = "import onnxruntime\ndef version(): return 'Faulty ' + onnxruntime.__version__"
    (driver_facts.DRIVERS / "faulty.py").write_text(driver, encoding="utf-8")
    place_of.cache_clear()
    assert place_of("faulty").runtime == f"Faulty {onnxruntime.__version__}"
    assert place_of(f"faulty@{folder}").runtime == "Faulty 0.1"


def test_a_folder_that_is_not_there(faulty, tmp_path):
    with pytest.raises(UsageError, match="there is no folder"):
        place_of(f"faulty@{tmp_path / 'none'}")
