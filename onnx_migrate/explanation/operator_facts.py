"""Reads facts from the schemas about an operator that an error text names."""

from __future__ import annotations

import re
from functools import cache

from onnx import defs

from onnx_migrate.engine.steps.registry import decomposition_of, step_at
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.standard.schema import signature, versions
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS, RUNTIME_OPERATORS

__all__ = [
    "attribute_facts",
    "canonical",
    "contributed_facts",
    "operator_facts",
    "operator_names",
    "version_facts",
]

_CONTRIBUTED = {
    "Attention", "BeamSearch", "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax", "BiasSplitGelu",
    "BifurcationDetector", "BitmaskDropout", "CDist", "ComplexMul", "ConvTransposeWithDynamicPads", "CropAndResize",
    "DecoderAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "DequantizeBFP",
    "DequantizeWithOrder", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "DynamicTimeWarping", "EPContext",
    "EmbedLayerNormalization", "ExpandDims", "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul",
    "FusedMatMulActivation", "GatedRelativePositionBias", "GatherBlockQuantized", "GatherND", "GemmFastGelu",
    "GemmFloat8", "GreedySearch", "GroupNorm", "GroupQueryAttention", "Inverse", "Irfft", "LongformerAttention",
    "MatMulBnb4", "MatMulFpQ4", "MatMulInteger16", "MatMulIntegerToFloat", "MatMulNBits", "MoE", "MulInteger",
    "MultiHeadAttention", "MurmurHash3", "NGramRepeatBlock", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool",
    "PackedAttention", "PackedMultiHeadAttention", "PagedAttention", "QAttention", "QGemm", "QLinearAdd",
    "QLinearAveragePool", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul",
    "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QMoE", "QuickGelu",
    "RelativePositionBias", "RemovePadding", "RestorePadding", "Rfft", "RotaryEmbedding", "SampleOp", "Sampling",
    "SimplifiedLayerNormalization", "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
    "Snpe", "SparseAttention", "SparseToDenseMatMul", "Tokenizer", "TorchEmbedding", "TransposeMatMul", "Trilu",
    "UnfoldTensor", "WhisperBeamSearch", "WordConvEmbedding",
}  # fmt: skip
"""Operators of the domain com.microsoft (docs/ContribOperators.md of github.com/microsoft/onnxruntime)."""

_QUANTIZED = re.compile(
    r"(?:QLinear\w+|QGemm|QAttention|QEmbedLayerNormalization|ConvInteger|MatMulInteger(?:ToFloat)?|MatMulNBits"
    r"|DynamicQuantizeMatMul|GatherBlockQuantized)"
)
"""Operators that `--quantized-form qdq` replaces by float operators between DequantizeLinear and QuantizeLinear."""

_MICROSOFT = "com.microsoft"

_OLDEST_KERNELS = 7
"""The oldest opset for which ONNX Runtime has kernels: an older version never solves a problem."""


@cache
def operator_names() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the domains and names of all operators that are known, by the name in lower case; ai.onnx comes first."""
    keys_by_name: dict[str, set[tuple[str, str]]] = {}
    # Error texts name operators that the standard has removed, too.
    for schema in defs.get_all_schemas_with_history():
        keys_by_name.setdefault(schema.name.lower(), set()).add((schema.domain, schema.name))
    for own in (*EXPERIMENTAL_OPERATORS, *RUNTIME_OPERATORS):
        keys_by_name.setdefault(own.name.lower(), set()).add(("", own.name))
    return {name: tuple(sorted(keys)) for name, keys in keys_by_name.items()}


def canonical(name: str) -> tuple[str, str] | None:
    """Return domain and name of an operator, as in "resize", "ai.onnx:Resize" and "ai.onnx.ml.Scaler"; None if it is unknown."""
    domain, mark, own = name.replace("::", ":").rpartition(":")
    if not mark:
        domain, mark, own = name.rpartition(".")
    keys = operator_names().get(own.lower(), ())
    if mark:
        domain = domain.lower().removeprefix("onnx").strip(".:") if domain.lower() == "onnx" else domain
        keys = tuple(key for key in keys if key[0] == ("" if domain in ("", "ai.onnx") else domain))
    return keys[0] if keys else None


def operator_facts(name: str, opset: int | None) -> dict[str, str]:
    """Return the facts about an operator that a text names, and about the opset in the text."""
    facts = {"op": name}
    key = canonical(name)
    if key is None or key[1] == "ATen":
        return {**facts, **_unknown(name)}
    domain, own = key
    facts["op"] = own
    known_versions = versions(domain, own)
    if domain:
        facts |= {"op_domain": domain, "op_in_other_domain": "yes", "op_since": str(known_versions[0])}
        facts["op_history"] = (
            f"{own} is an operator of the domain {domain}, from its opset {known_versions[0]} on"
        )
        return facts
    removed = next((unlisted.removed_in for unlisted in EXPERIMENTAL_OPERATORS if unlisted.name == own), None)
    runtime = next((unlisted for unlisted in RUNTIME_OPERATORS if unlisted.name == own), None)
    if runtime is not None and runtime.standard_from is None:
        facts |= {"op_contributed": "yes"}
        facts["op_history"] = f"{own} is an operator of ONNX Runtime's own, not of ONNX"
        return facts
    # The last opset that has it, None if the newest one has.
    last = known_versions[-1] - 1 if signature("", own, known_versions[-1]).deprecated else None
    first = 2 if removed is not None else runtime.standard_from or 1 if runtime is not None else 1
    standard = [v for v in known_versions if v >= first]
    if removed is not None and (not standard or (opset or 0) < removed or last is not None):
        facts |= {"op_experimental": "yes", "op_removed": str(removed), "op_last": str(removed - 1)}
        facts["op_history"] = (
            f"{own} was an experimental operator of ONNX, which was removed in 2019 (opset {removed})"
        )
        if not standard or last is not None:
            return facts
    facts |= {"op_known": "yes", "op_since": str(standard[0])}
    if last is not None:
        facts |= {"op_last": str(last), "op_ended": "yes"}
        facts["op_history"] = f"{own} is deprecated since opset {last + 1}"
    elif "op_experimental" not in facts:
        changed = f" and was changed in {', '.join(map(str, standard[1:]))}" if standard[1:] else ""
        facts["op_history"] = f"{own} exists since opset {standard[0]}{changed}"
    # Without an opset in the text, the answer has only the history.
    if opset is not None:
        if opset < standard[0] and "op_experimental" not in facts:
            facts["op_newer"] = "yes"
        elif last is not None and opset > last:
            facts["op_gone"] = "yes"
        else:
            facts["op_in_opset"] = "yes"
    if any(key[0] for key in operator_names()[own.lower()]) or own in _CONTRIBUTED:
        facts["op_also_contributed"] = "yes"
    return facts


def version_facts(name: str, version: int | None) -> dict[str, str]:
    """Return the newest version of an operator of ai.onnx, and the way to an opset below the version that a text names."""
    known_versions = versions("", name)
    facts = {"op_newest": str(known_versions[-1])}
    if version is None:
        return facts
    # ONNX Runtime has no kernels of older versions.
    if 0 < version < _OLDEST_KERNELS:
        return {**facts, "version_before_7": "yes"}
    # Texts also give the opset in place of the version of the operator.
    own = max((since for since in known_versions if since <= version), default=0)
    step = step_at(Direction.DOWN, "", name, own)
    if step is None or own <= _OLDEST_KERNELS:
        return facts
    if step.refusal:
        return {**facts, "version_stays": step.refusal}
    facts["opset_before_version"] = str(own - 1)
    if not step.older:
        facts["version_is_first"] = "yes"
    return facts


def contributed_facts(name: str) -> dict[str, str]:
    """Return whether onnx-migrate has a rewrite for an operator of com.microsoft: with QDQ pairs, or with ai.onnx."""
    own = name.rpartition(":")[2].rpartition(".")[2]
    rewrite = decomposition_of(_MICROSOFT, own)
    facts = {"op_quantized": "yes"} if _QUANTIZED.fullmatch(own) else {}
    if rewrite is not None and not rewrite.refusal:
        facts["op_written_out"] = "yes"
    return facts


def attribute_facts(name: str, attribute: str, opset: int | None) -> dict[str, str]:
    """If an operator of ai.onnx lacks an attribute at an opset, return the first or last opset that has it."""
    known_versions = versions("", name)
    # An attribute may appear in one version and vanish in another.
    having = [version for version in known_versions if attribute in signature("", name, version).attributes]
    if not having:
        return {}
    later = [version for version in known_versions if version > having[-1]]
    if opset is not None and opset < having[0]:
        return {"attribute_since": str(having[0])}
    if later:
        return {"attribute_last": str(later[0] - 1), "attribute_gone": str(later[0])}
    return {"attribute_since": str(having[0])} if having[0] > known_versions[0] else {}


def _unknown(name: str) -> dict[str, str]:
    own = name.rpartition(":")[2].rpartition(".")[2]
    if own in _CONTRIBUTED or name.lower().startswith("com.microsoft"):
        return {
            "op_contributed": "yes",
            "op_history": f"{name} is an operator of ONNX Runtime's own domain com.microsoft, not of ONNX",
        }
    if own.startswith("ATen") or name.startswith("aten") or name.lower().startswith("org.pytorch"):
        return {"op_of_torch": "yes", "op_history": f"{name} is an operator of PyTorch, not of ONNX"}
    if name.startswith(("Flex", "Tf", "tf.")):
        return {"op_history": f"{name} is an operator of TensorFlow, not of ONNX", "op_unknown": "yes"}
    return {"op_unknown": "yes", "op_history": f"{name} is no operator of ONNX"}
