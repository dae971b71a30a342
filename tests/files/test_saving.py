"""What is written where: one file or two, in place, through links."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files import inline, load
from onnx_migrate.files.saving import save
from tests.files.feature_models import UNKNOWN, model, plain, weight, with_external_data
from tests.files.saving import changed, names, other, refusal

save_module = sys.modules["onnx_migrate.files.saving"]


def test_permission_bits(source: Path, out: Path) -> None:
    old = os.umask(0o027)
    try:
        save(load(source), out)
        assert stat.S_IMODE(out.stat().st_mode) == 0o640
        out.chmod(0o604)
        save(changed(source), out, external=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(out.stat().st_mode) == 0o604


def test_a_link_is_written_through(source: Path, out: Path) -> None:
    real = source.parent / "real.onnx"
    real.write_bytes(b"old")
    out.symlink_to(real)
    save(load(source), out)
    assert out.is_symlink()
    assert real.read_bytes() == plain().SerializeToString()
    refusal("cannot-write", load(source), out, external=True)  # its data would not be found through the link
    dangling = out.with_name("c.onnx")
    dangling.symlink_to("d.onnx")
    save(load(source), dangling, external=True)
    assert names(out.parent) == {"b.onnx", "c.onnx", "d.onnx", "d.onnx.data"}
    assert inline(load(dangling)) == plain()


def test_the_source_is_replaced_only_when_asked(source: Path) -> None:
    link, hard = source.with_name("link.onnx"), source.with_name("hard.onnx")
    link.symlink_to(source)
    os.link(source, hard)
    for path in (source, link, hard, os.path.relpath(source)):
        assert "--in-place" in refusal("in-place", changed(source), path).hint
    want = plain()
    want.producer_name = "changed"
    save(changed(source), link, in_place=True)
    assert link.is_symlink()
    assert source.read_bytes() == want.SerializeToString()
    assert names(source.parent) == {"a.onnx", "link.onnx", "hard.onnx"}


def test_after_saving_in_place_the_model_knows_its_weights_are_gone(source: Path) -> None:
    loaded = changed(source)
    save(loaded, source, in_place=True)
    with pytest.raises(Exception, match="changed since"):
        inline(loaded)


def test_in_place_external_data_is_neither_read_nor_moved(source: Path) -> None:
    with_external_data(plain(), source, "w.bin")
    before = (source.parent / "w.bin").stat()
    save(changed(source), source, in_place=True)
    after = (source.parent / "w.bin").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert names(source.parent) == {"a.onnx", "w.bin"}
    want = plain()
    want.producer_name = "changed"
    assert inline(load(source)) == want


def test_in_place_from_a_single_file_to_external_data(source: Path) -> None:
    save(changed(source), source, in_place=True, external=True)
    assert names(source.parent) == {"a.onnx", "a.onnx.data"}
    want = plain()
    want.producer_name = "changed"
    assert inline(load(source)) == want


def test_in_place_through_a_hard_link_elsewhere_takes_the_data_along(source: Path, out: Path) -> None:
    with_external_data(plain(), source, "w.bin")
    os.link(source, out)
    save(load(source), out, in_place=True)
    assert out.read_bytes() == plain().SerializeToString()


def test_layout_of_external_data(source: Path, out: Path) -> None:
    proto = model([weight("a", 1, 3), weight("b", 2, 5000), weight("c", 3, 2**19), weight("d", 4, 2000)])
    source.write_bytes(proto.SerializeToString())
    save(load(source), out, external=True)
    saved = onnx.load(out, load_external_data=False).graph.initializer
    assert saved[0].raw_data == proto.graph.initializer[0].raw_data
    got = [{e.key: e.value for e in t.external_data} for t in saved[1:]]
    assert got == [
        {"location": "b.onnx.data", "offset": "0", "length": "20000"},
        {"location": "b.onnx.data", "offset": "20480", "length": "2097152"},
        {"location": "b.onnx.data", "offset": "2117632", "length": "8000"},
    ]
    assert onnx.load(out) == onnx.load(out)
    for tensor, want in zip(onnx.load(out).graph.initializer, proto.graph.initializer, strict=True):
        assert tensor.raw_data == want.raw_data
    first = out.read_bytes(), out.with_name("b.onnx.data").read_bytes()
    save(load(source), out, external=True)
    assert (out.read_bytes(), out.with_name("b.onnx.data").read_bytes()) == first
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}


def test_a_model_over_the_limit_of_one_file_is_written_with_external_data(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(plain().SerializeToString())
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", size)
    save(load(source), out)
    assert names(out.parent) == {"b.onnx"}
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", size - 1)
    save(load(source), out)
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}
    assert inline(load(out)) == plain()
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", 100)
    refusal("cannot-write", load(source), out)


@pytest.mark.parametrize("old_external", [False, True])
@pytest.mark.parametrize("new_external", [False, True])
def test_one_file_and_external_data_replace_each_other(
    old_external: bool, new_external: bool, source: Path, out: Path
) -> None:
    save(load(other()), out, external=old_external)
    save(load(source), out, external=new_external)
    assert inline(load(out)) == plain()
    assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if new_external else {"b.onnx"})


def test_unknown_fields_survive_external_data(source: Path, out: Path) -> None:
    proto = plain()
    proto.graph.initializer[0].MergeFromString(UNKNOWN)
    source.write_bytes(proto.SerializeToString())
    save(load(source), out, external=True)
    tensor = onnx.load(out, load_external_data=False).graph.initializer[0]
    assert tensor.data_location == TensorProto.EXTERNAL
    assert tensor.SerializeToString().endswith(UNKNOWN)


def test_a_model_that_somebody_replaced_meanwhile_is_not_replaced_in_place(source: Path) -> None:
    loaded = changed(source)
    newer = other().SerializeToString()
    source.write_bytes(newer)

    with pytest.raises(LoadError, match="has changed since the model was read") as caught:
        save(loaded, source, in_place=True)
    assert caught.value.code == "source-changed"
    assert source.read_bytes() == newer
    assert names(source.parent) == {source.name}


def test_a_model_without_payloads_may_be_saved_in_place_twice(source: Path) -> None:
    source.write_bytes(model([]).SerializeToString())
    loaded = changed(source)
    save(loaded, source, in_place=True)
    loaded.proto.producer_name = "again"
    save(loaded, source, in_place=True)

    assert load(source).proto.producer_name == "again"
