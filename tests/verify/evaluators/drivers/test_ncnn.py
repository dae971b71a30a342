"""The driver of ncnn reads how pnnx feeds and returns values, as its releases write it; without ncnn, which a stub stands for."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType

import pytest

from onnx_migrate.verify.evaluators.driver_facts import DRIVERS

NEWEST = """
            ex.input("in0", ncnn.Mat(in0.numpy(), batch_index=0).clone())
            _, out0 = ex.extract("out0")
            out.append(torch.from_numpy(out0.numpy(batch_index=0)))
"""
OLDER = """
            ex.input("in0", ncnn.Mat(in0.squeeze(0).numpy()).clone())
            _, out0 = ex.extract("out0")
            out.append(torch.from_numpy(np.array(out0)).unsqueeze(0))
"""


@pytest.mark.parametrize(
    ("text", "given", "returned"),
    [
        pytest.param(NEWEST, ("in0", "", "0"), ("out0", "0", ""), id="pnnx 20261020"),
        pytest.param(OLDER, ("in0", "0", ""), ("out0", "", "0"), id="pnnx 20240819 and 20241223"),
    ],
)
def test_what_releases_of_pnnx_write_is_read(
    text: str, given: tuple[str, ...], returned: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ncnn", ModuleType("ncnn"))
    driver = runpy.run_path(str(DRIVERS / "ncnn.py"))

    assert driver["_INPUT"].findall(text) == [given]
    assert driver["_OUTPUT"].findall(text) == [returned]
