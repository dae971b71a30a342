"""Sentences for the headline of a verdict about models and nodes that a comparison runs instead of the original's."""

from __future__ import annotations

from collections.abc import Iterator

from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.evaluators.integer_sums import NOTE
from onnx_migrate.verify.evaluators.kernel_meanings import ACCURACY_NOTE, SKIP_NOTE
from onnx_migrate.verify.evaluators.quantized_meanings import ORDER_NOTE, STEP_NOTE
from onnx_migrate.verify.evaluators.scopes import OWN_NAMES_NOTE
from onnx_migrate.verify.evaluators.transforms import TRANSFORM_NOTE
from onnx_migrate.verify.model_traits import is_random, random_outputs

__all__ = ["stand_ins"]

_FOR_KERNELS = {
    ACCURACY_NOTE: "MatMulNBits without quantised inputs stood in for MatMulNBits",
    NOTE: "exact sums of integers stood in for kernels that saturate",
    ORDER_NOTE: "AveragePool that adds by rows stood in for AveragePool",
    OWN_NAMES_NOTE: "names of their own stood in for inner values that have the name of an outer one",
    SKIP_NOTE: "Add and LayerNormalization stood in for SkipLayerNormalization",
    STEP_NOTE: "DequantizeLinear, floats and QuantizeLinear stood in for QLinearAdd, QLinearMul and"
    " QLinearGlobalAveragePool without optimisation",
    TRANSFORM_NOTE: "products of matrices stood in for DFT and STFT",
}
"""Sentences by the notes of evaluators that write nodes for others before they load a model."""


def stand_ins(original: Model, verdict: Verdict) -> Iterator[str]:
    """Yield a sentence for each thing that was run instead of one of the original's nodes."""
    if is_random(original.proto):
        operators = sorted(set(random_outputs(original.proto).values()))
        if operators:
            yield f"fixed numbers stood in for random ones ({', '.join(operators)})"
    yield from (_FOR_KERNELS[note] for note in verdict.notes if note in _FOR_KERNELS)
