"""What is a URL, and what is said where one cannot be opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

import onnx_migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.url import (
    absolute,
    basename,
    identity,
    is_url,
    is_web,
    join,
    open_file_system,
    resolve_file_url,
    without_query,
)
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if
from tests.support.small_model import small


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s3://bucket/a.onnx", True),
        ("memory://a.onnx", True),
        ("abfs+x://a.onnx", True),
        ("file:///tmp/a.onnx", False),
        ("FILE:///tmp/a.onnx", False),
        ("a.onnx", False),
        ("/s3://a.onnx", False),
        ("s3:/bucket/a.onnx", False),
        ("C:\\models\\a.onnx", False),
        ("C://models/a.onnx", False),
        ("-", False),
    ],
)
def test_which_names_are_urls(name: str, expected: bool) -> None:
    assert is_url(name) is expected


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "50% é.onnx"

    assert resolve_file_url(path.as_uri()) == str(path)
    assert resolve_file_url("file://localhost/a.onnx") == "/a.onnx"
    assert resolve_file_url("s3://bucket/a.onnx") == "s3://bucket/a.onnx"
    assert resolve_file_url("C:\\a.onnx") == "C:\\a.onnx"
    assert identity(path.as_uri()) == identity(str(path)) == identity(f"{tmp_path}/x/../a folder/50% é.onnx")


@pytest.mark.parametrize("name", ["file://models/a.onnx", "file://a.onnx"])
def test_a_file_of_another_host_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="host"):
        resolve_file_url(name)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket/a/b.onnx", "b.onnx"),
        ("memory://b.onnx", "b.onnx"),
        ("s3://bucket/a/b?c.onnx", "b?c.onnx"),
        ("https://host/a/b.onnx?X-Signature=a/b#c", "b.onnx"),
        ("memory://a/", ""),
    ],
)
def test_basename_of_a_url(url: str, name: str) -> None:
    assert basename(url) == name


def test_the_query_is_no_part_of_a_web_address_s_path() -> None:
    assert without_query("HTTPS://host/a.onnx?b=c#d") == "HTTPS://host/a.onnx"
    assert without_query("s3://bucket/a?b#c.onnx") == "s3://bucket/a?b#c.onnx"
    assert not is_web("httpx://host/a.onnx")


def test_names_below_a_folder() -> None:
    assert join("s3://bucket/a", "b/c.onnx") == join("s3://bucket/a/", "b/c.onnx") == "s3://bucket/a/b/c.onnx"
    assert join("memory://", "c.onnx") == "memory://c.onnx"
    assert join("a", "c.onnx") == str(Path("a", "c.onnx"))


def test_two_names_of_one_object() -> None:
    assert identity("memory://a/b.onnx") == identity("memory:///a/b.onnx") != identity("memory://a/c.onnx")
    assert identity("memory://tmp") != identity("/tmp")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("nonsense://a.onnx", "nonsense"),
        ("memory://a::s3://b/c.onnx", "chain"),
    ],
)
def test_what_cannot_be_opened(url: str, text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        open_file_system(url)
    assert caught.value.reason.startswith(url)


def test_a_protocol_whose_package_is_missing_names_it() -> None:
    text = "Install nowhere_fs to reach nowhere"
    fsspec.register_implementation("nowhere", "nowhere_fs.System", errtxt=text, clobber=True)

    with pytest.raises(UsageError, match=r"nowhere://b/a\.onnx: ") as caught:
        open_file_system("nowhere://b/a.onnx")
    assert caught.value.hint == text


def test_without_fsspec_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(UsageError, match=r"memory://a\.onnx.*\nHint: run pip install 'onnx-migrate\[url\]'"):
        open_file_system("memory://a.onnx")


def test_paths_do_not_load_fsspec() -> None:
    root = ROOT
    code = (
        "import sys, onnx\n"
        "by_onnx = set(sys.modules)\n"  # 1.16 loads urllib.request itself
        "import onnx_migrate\n"
        "onnx_migrate.migrate('fixtures/conv_relu_upsample_opset11.onnx', verify=False, simplify=False)\n"
        "assert not {'fsspec', 'urllib.request'} & (set(sys.modules) - by_onnx)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


@skip_if(sys.platform == "win32", "no folder in use can be deleted there", Elsewhere.LINUX)
def test_a_deleted_working_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="the working folder of this program was deleted") as caught:
        absolute("model.onnx")
    assert caught.value.code == "no-such-file"
    assert absolute(tmp_path / "model.onnx") == str(tmp_path / "model.onnx")
    with pytest.raises(UsageError, match="was deleted"):
        onnx_migrate.migrate("model.onnx")
    assert onnx_migrate.migrate(small(), opset=17, simplify=False).report.verified
