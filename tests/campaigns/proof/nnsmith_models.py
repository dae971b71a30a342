"""Makes random models with NNSmith, in an environment of its own that has it and PyTorch; onnx-migrate is not needed there.

    PYTHON tests/campaigns/proof/nnsmith_models.py FOLDER --models 300 --first 0

The file of a model is named by its seed. Models that are there already are kept, so that a second run goes on.
"""

# ruff: noqa: E402  # the shim comes before the imports of NNSmith
from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
# Python puts this folder first, and nnsmith.py in it is not the package of that name.
sys.path.remove(str(Path(__file__).resolve().parent))

import numpy as np
import onnx
import torch

# NNSmith is of 2023: onnx has had another name for this function since, and PyTorch another exporter by default.
if not hasattr(onnx, "_serialize"):
    onnx._serialize = lambda model: model.SerializeToString()
_export = torch.onnx.export


def _by_torchscript(*arguments: Any, **options: Any) -> Any:
    return _export(*arguments, **{"dynamo": False, **options})


torch.onnx.export = _by_torchscript

from nnsmith.abstract.extension import activate_ext
from nnsmith.graph_gen import model_gen
from nnsmith.materialize import Model
from nnsmith.narrow_spec import auto_opset


def one(kind: Any, operators: Any, seed: int, nodes: int) -> bytes:
    """Return a model as bytes."""
    random.seed(seed)
    np.random.seed(seed)  # NNSmith draws from it
    torch.manual_seed(seed)
    graph = model_gen(
        opset=operators,
        method="symbolic-cinit",
        seed=seed,
        max_elem_per_tensor=4096,
        max_nodes=nodes,
        timeout_ms=8000,
    )
    model = kind.from_gir(graph.make_concrete())
    model.refine_weights()
    return model.native_model.SerializeToString()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="ends after so long")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    kind = Model.init("onnx", backend_target="cpu")
    kind.add_seed_setter()
    operators = auto_opset(kind, None)
    activate_ext(opset=operators, factory=None)
    begin, failed = time.monotonic(), 0
    for seed in range(asked.first, asked.first + asked.models):
        file = asked.folder / f"{seed:05}.onnx"
        if file.exists():
            continue
        if time.monotonic() - begin > asked.seconds:
            break
        try:
            file.write_bytes(one(kind, operators, seed, 5 + seed % 11))
        except Exception as error:  # a net that PyTorch cannot export is none
            failed += 1
            print(seed, type(error).__name__, str(error)[:100], flush=True)
    print(f"{len(list(asked.folder.glob('*.onnx')))} models in {asked.folder}; {failed} seeds gave none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
