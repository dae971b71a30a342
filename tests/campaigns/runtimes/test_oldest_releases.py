"""The rows of ONNX Runtime before 1.6 against the wheels, which need a Python 3.7 or older: `pytest -m campaign`.

Releases before 1.2 load a model of any opset and IR version, as far as they have its operators. So each opset is tried with an
operator that it added.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate.standard.targets import resolve
from tests.campaigns.runtimes.releases import Unavailable, run
from tests.campaigns.runtimes.sample import write_io
from tests.support.skips import Elsewhere, skip

VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "1.0.0", "1.1.2", "1.2.0", "1.3.0", "1.4.0", "1.5.2", "1.6.0")

ADDED = {
    9: "g (float[2] x) => (float[2] y) { y = Shrink<lambd = 0.0, bias = 0.0> (x) }",
    10: "g (float[2] x) => (float[2] y) { y = Mod<fmod = 1> (x, x) }",
    11: "g (float[2] x) => (float[2] y) { y = Round (x) }",
    12: "g (float[2] x) => (float[2] y) { y = Celu (x) }",
    14: "g (float[2] x) => (float[2] y) { y = HardSwish (x) }",
}
"""A graph with an operator that the opset added; opset 13 added none."""


OUTPUTS = {"opset10": np.zeros(2, np.float32), "opset14": np.array([1 * 4 / 6, 2 * 5 / 6], np.float32)}
"""What the models compute for 1 and 2 where that is not 1 and 2."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for each opset, at IR version 3, and one for each IR version whose weights are no inputs."""
    folder = tmp_path_factory.mktemp("oldest")
    (folder / "io").mkdir()
    x = np.array([1, 2], np.float32)
    texts = {f"opset{opset}": (3, opset, text) for opset, text in ADDED.items()}
    sum_ = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
    texts |= {f"ir{version}": (version, 7, sum_) for version in range(4, 9)}
    for name, (ir_version, opset, text) in texts.items():
        model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {text}')
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        write_io(folder, name, {"x": x}, [OUTPUTS.get(name, x if name.startswith("opset") else x + x)])
    return folder


@pytest.mark.campaign
@pytest.mark.parametrize("version", VERSIONS)
def test_the_row_has_the_newest_opset_and_an_ir_version_that_loads(version: str, models: Path) -> None:
    try:
        found = run("onnxruntime", version, models, sorted(path.stem for path in models.glob("*.onnx")))
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)

    right = {name for name, ended in found.ended.items() if ended == "right"}
    row = resolve([f"onnxruntime=={version}"])
    assert found.release["version"] == version
    assert {name for name in right if name.startswith("opset")} == {
        f"opset{opset}" for opset in ADDED if opset <= (row.opset or 0)
    }
    assert {f"ir{v}" for v in range(4, (row.ir_version or 0) + 1)} <= right
    if tuple(map(int, version.split("."))) >= (1, 2):
        assert f"ir{(row.ir_version or 0) + 1}" not in right
