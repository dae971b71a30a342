"""The promises made to users, each with a test of its own.

Where a promise is kept by one room alone, that room's tests break it in every way known, and are named:

1. Exit 0: it loads, is valid, at the target, has the interface it had, and computes the same or says why not.
2. All or nothing: `tests/files/test_saving.py` kills it at every system call and fills the disk,
   `tests/cli/test_app.py` ends it by signals.
3. Bad input is one line with a code: `tests/cli/output/test_failure.py`, `tests/files/test_loading.py`.
4. No byte from outside the model's folder: `tests/files/test_loading.py`.
5. Same input, same options, same bytes; a second time changes nothing.
6. Time and memory grow with the graph: `tests/files/test_loading.py`; `benchmarks/` for gigabytes.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnx_migrate import MigrateError, migrate
from onnx_migrate.report.codes import CODES
from tests.cli.running import large
from tests.support.paths import ROOT
from tests.support.processes import Start
from tests.support.skips import Elsewhere, skip_if
from tests.support.warm_start import warm

FIXTURES = sorted((ROOT / "fixtures").glob("*.onnx"))
NAMES = [path.stem for path in FIXTURES]
FAST: dict[str, Any] = {"verify": False, "simplify": False}


def versions_below(proto: onnx.ModelProto) -> list[str]:
    """Return the nodes, of all graphs and functions, that are no operator of the opset their body imports."""

    def walk(nodes: Any, opset: int) -> list[str]:
        found = []
        for node in nodes:
            if node.domain in ("", "ai.onnx"):
                schema = onnx.defs.get_schema(node.op_type, opset, "")
                if schema.deprecated:
                    found.append(f"{node.op_type}-{opset}")
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    found += walk(graph.node, opset)
        return found

    found = walk(proto.graph.node, proto.opset_import[0].version)
    for function in proto.functions:
        found += walk(function.node, function.opset_import[0].version)
    return found


def infers(proto: onnx.ModelProto) -> bool:
    """Tell whether ONNX's shape inference agrees with what the exporter declared; at times it rounds otherwise."""
    try:
        onnx.checker.check_model(proto, full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def run(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def shown(proto: onnx.ModelProto) -> list[tuple[str, bytes]]:
    """Return names, order and types of inputs and outputs, without those that an initializer gives."""
    given = {tensor.name for tensor in proto.graph.initializer}
    values = [value for value in proto.graph.input if value.name not in given]
    return [
        (value.name, value.type.SerializeToString(deterministic=True))
        for value in (*values, *proto.graph.output)
    ]


@pytest.mark.sample(8)
@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_1_success_means_success(path: Path, tmp_path: Path) -> None:
    before, target = onnx.load(path), tmp_path / "out.onnx"

    result = migrate(path, opset=17, isolated=False)
    result.save(target)

    onnx.checker.check_model(str(target), full_check=infers(before))
    after = onnx.load(target)
    assert after.opset_import[0].version == 17
    assert versions_below(after) == []
    names = [(name, type_[:3]) for name, type_ in shown(before)]
    assert [(name, type_[:3]) for name, type_ in shown(after)] == names
    verdict = result.report.verification
    assert verdict is not None
    assert verdict.verified or (verdict.kind.value == "unverified" and verdict.reason)
    with np.load(path.with_suffix("").with_suffix(".io.npz")) as recorded:
        inputs = {value.name: recorded[value.name] for value in before.graph.input if value.name in recorded}
    old = run(path, inputs)
    for name, value in run(target, inputs).items():
        assert (value.shape, value.dtype) == (old[name].shape, old[name].dtype)
        np.testing.assert_allclose(value, old[name], rtol=2e-4, atol=2e-5, err_msg=name)


def test_1_what_cannot_be_verified_is_said() -> None:
    text = """<ir_version: 6, opset_import: ["": 11, "com.acme": 1]>
    g (float[2,3] x) => (float[2,3] y) { a = com.acme.Gizmo (x)  y = Softmax (a) }"""

    report = migrate(onnx.parser.parse_model(text), simplify=False, isolated=False).report

    assert report.verification is not None
    assert report.verification.kind.value == "unverified"
    assert "Gizmo" in report.verification.reason


SLOW = """
import sys
from pathlib import Path
from onnx_migrate import migrate
source, target = sys.argv[1:]
for _ in range(1000):
    migrate(source, verify=False, simplify=False).save(target, in_place=True)
    Path(target + ".started").touch()
"""


@pytest.mark.long
@skip_if(sys.platform == "win32", "kills", Elsewhere.LINUX)
@pytest.mark.parametrize("in_place", [False, True], ids=["another file", "in place"])
def test_2_killed_at_any_moment_there_is_a_whole_model(in_place: bool, tmp_path: Path, start: Start) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes((ROOT / "fixtures" / "unet_opset9.onnx").read_bytes())
    target = source if in_place else tmp_path / "out.onnx"
    rng = random.Random(1)
    old = source.read_bytes()
    migrate(source, **FAST).save(tmp_path / "expected.onnx")
    whole = {old, (tmp_path / "expected.onnx").read_bytes()}
    for _ in range(4):
        target.write_bytes(old)
        (tmp_path / f"{target.name}.started").unlink(missing_ok=True)
        child = start(
            [sys.executable, "-c", warm(SLOW), str(source), str(target)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        while not (tmp_path / f"{target.name}.started").exists():
            assert child.poll() is None
            time.sleep(0.005)
        time.sleep(rng.random() * 0.2)
        child.send_signal(signal.SIGKILL)
        child.wait()

        assert target.read_bytes() in whole
        if not in_place:
            assert source.read_bytes() == old


@pytest.mark.parametrize(("target", "code"), [("w.bin", "would-overwrite"), ("l.onnx", "in-place")])
def test_2_nothing_of_the_source_is_written_over(target: str, code: str, tmp_path: Path) -> None:
    """Also where the simplifier has made a model that needs none of it any more."""
    source = tmp_path / "l.onnx"
    onnx.save(large(), source, save_as_external_data=True, location="w.bin", size_threshold=0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    result = migrate(source, verify=False, isolated=False)
    with pytest.raises(MigrateError) as caught:
        result.save(tmp_path / target)

    assert "simplified" in {note.code for note in result.report.notes}
    assert caught.value.code == code
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("cut", range(1, 100, 7))
def test_3_bad_input_is_one_line_with_a_code(cut: int, tmp_path: Path) -> None:
    whole = (ROOT / "fixtures" / "control_flow_opset11.onnx").read_bytes()
    rng = random.Random(cut)
    damaged = bytearray(whole[: len(whole) * cut // 100])
    for _ in range(cut % 3):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    path = tmp_path / "bad.onnx"
    path.write_bytes(damaged)

    with pytest.raises(MigrateError) as caught:
        migrate(path, **FAST)

    assert caught.value.code in CODES
    assert "\n" not in str(caught.value)
    assert "bad.onnx" in str(caught.value)


def test_4_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    """By a model that is migrated and saved whole, not by the loader alone."""
    (tmp_path / "secret.bin").write_bytes(b"\1\2\3\4" * 4)
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "own.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    for location in ("own.bin", "../secret.bin", str(tmp_path / "secret.bin"), "link.bin", "./../secret.bin"):
        proto = onnx.parser.parse_model(
            '<ir_version: 6, opset_import: ["": 11]> g (float[4] x) => (float[4] y) { y = Add (x, w) }'
        )
        tensor = proto.graph.initializer.add(name="w", dims=[4], data_type=onnx.TensorProto.FLOAT)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        (folder / "model.onnx").write_bytes(proto.SerializeToString())
        if location == "own.bin":
            migrate(folder / "model.onnx", **FAST).save(folder / "out.onnx")
            assert onnx.numpy_helper.to_array(onnx.load(folder / "out.onnx").graph.initializer[0])[3] == 3
            (folder / "out.onnx").unlink()
            continue
        with pytest.raises(MigrateError) as caught:
            migrate(folder / "model.onnx", **FAST).save(folder / "out.onnx")
        assert caught.value.code == "outside-folder"
        assert not (folder / "out.onnx").exists()


@pytest.mark.sample(8)
@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_5_the_same_bytes_and_a_second_time_changes_nothing(path: Path, tmp_path: Path) -> None:
    first, again, second = (tmp_path / name for name in ("first.onnx", "again.onnx", "second.onnx"))

    migrate(path, verify=False, isolated=False).save(first)
    migrate(path, verify=False, isolated=False).save(again)
    report = migrate(first, verify=False, isolated=False)
    report.save(second)

    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.long
def test_5_in_processes_of_their_own(tmp_path: Path) -> None:
    """Where hashes of strings, and so the order of sets, differ."""
    code = (
        "import sys; from onnx_migrate import migrate; migrate(sys.argv[1], verify=False).save(sys.argv[2])"
    )
    outputs = []
    for seed in ("1", "2"):
        target = tmp_path / f"{seed}.onnx"
        subprocess.run(
            [sys.executable, "-c", code, str(ROOT / "fixtures" / "control_flow_opset11.onnx"), str(target)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            check=True,
        )
        outputs.append(target.read_bytes())

    assert outputs[0] == outputs[1]


MEASURE = """
import resource, sys, time
from onnx_migrate import migrate
migrate(sys.argv[3], verify=False, simplify=False)
start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
migrate(sys.argv[1], verify=False, simplify=False).save(sys.argv[2])
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
@skip_if(sys.platform != "linux", "measures memory as Linux does", Elsewhere.LINUX)
def test_6_memory_does_not_grow_with_the_weights(tmp_path: Path) -> None:
    megabytes = 300
    proto = onnx.load(ROOT / "fixtures" / "unet_opset9.onnx")
    proto.graph.initializer.append(
        onnx.numpy_helper.from_array(np.zeros(megabytes << 18, np.float32), "ballast")
    )
    proto.graph.node.append(onnx.helper.make_node("ReduceSum", ["ballast"], ["sum"], keepdims=0))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, []))
    large, out = tmp_path / "large.onnx", tmp_path / "out.onnx"
    onnx.save(proto, large)

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(large), str(out), str(ROOT / "fixtures" / "unet_opset9.onnx")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, kilobytes = map(float, done.stdout.split())

    assert out.stat().st_size > megabytes << 20
    assert kilobytes < 60_000, "memory"
    assert seconds < 3.0, "time of the processor, in which the weights are copied by the kernel"
    large.unlink()
    out.unlink()


@pytest.mark.long
def test_6_time_grows_with_the_nodes() -> None:
    def chain(count: int) -> onnx.ModelProto:
        nodes = "\n".join(f"v{i + 1} = {'Relu' if i % 2 else 'Softmax'} (v{i})" for i in range(count))
        header = f'<ir_version: 6, opset_import: ["": 11]> g (float[2,3,4] v0) => (float[2,3,4] v{count})'
        return onnx.parser.parse_model(f"{header} {{ {nodes} }}")

    def seconds(proto: onnx.ModelProto) -> float:
        start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        migrate(proto, opset=13, **FAST)
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime - start

    short, long = chain(1000), chain(4000)
    seconds(short)
    # In pairs, as the speed of a machine changes; the median, as it may change within one.
    assert median(seconds(long) / seconds(short) for _ in range(3)) < 4 * 1.6
