"""Writes the models of a migration as files that other runtimes read, and has them proved there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onnx_migrate import files
from onnx_migrate.isolate import Limits, Listener
from onnx_migrate.isolate.temporary import TemporaryFolder
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts.runtime_proof import RuntimeProof
from onnx_migrate.verify.elsewhere.places import Asked
from onnx_migrate.verify.elsewhere.proof import prove_in
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.inputs.user_inputs import Feeds, InputData
from onnx_migrate.verify.model_traits import is_random
from onnx_migrate.verify.random_part import with_fixed_numbers

__all__ = ["prove_models"]

_FIXED = "run with fixed numbers in place of random ones"


def prove_models(
    asked: Sequence[Asked],
    original: Model,
    result: Model,
    *,
    intended: Model | None = None,
    input_data: InputData | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
    listen: Listener | None = None,
) -> tuple[RuntimeProof, ...]:
    """Run original and result in each runtime, each as one file with its weights (`prove_in`).

    Random operators are replaced by fixed ones in all models, as other runtimes draw other numbers. Raises UsageError for
    `input_data` that does not fit the original.
    """
    feeds = None if input_data is None else Feeds.of(input_data)
    models = {"original": original, "result": result}
    if intended is not None and intended is not original:
        models["intended"] = intended
    random = any(is_random(model.proto) for model in models.values())
    with TemporaryFolder() as folder:
        written = {}
        for name, model in models.items():
            written[name] = Path(folder, name, "model.onnx")
            written[name].parent.mkdir()
            files.save(_fixed(model) if random else model, written[name])
        proofs = prove_in(
            asked,
            Runnable(written["original"]),
            Runnable(written["result"]),
            intended=Runnable(written["intended"]) if "intended" in written else None,
            feeds=feeds,
            rtol=rtol,
            atol=atol,
            seed=seed,
            limits=limits,
            isolated=isolated,
            listen=listen,
        )
    return tuple(replace(item, notes=(*item.notes, _FIXED)) for item in proofs) if random else proofs


def _fixed(model: Model) -> Model:
    structure = model.proto.SerializeToString(deterministic=True)
    fixed = with_fixed_numbers(Runnable(structure=structure, weights=model.weights))
    return replace(model, proto=fixed.proto(), weights=model.weights.copy())
