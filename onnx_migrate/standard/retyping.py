"""Which values of a node change when it computes in another floating-point type, from the schema of its operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import TensorProto

from onnx_migrate.standard.element_types import type_text
from onnx_migrate.standard.schema import schema_cache
from onnx_migrate.standard.type_constraints import Constraints, Formal, constraints

__all__ = [
    "FLOATS",
    "TYPE_BY_ATTRIBUTE",
    "Retyping",
    "derived_types",
    "known_constraints",
    "retyping",
    "takes_any",
]

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""The types that a change of precision converts into each other; double stays."""

TYPE_BY_ATTRIBUTE = {
    "Bernoulli": "dtype",
    "BlackmanWindow": "output_datatype",
    "Cast": "to",
    "ConstantOfShape": "value",
    "DequantizeLinear": "output_dtype",
    "EyeLike": "dtype",
    "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "RandomNormal": "dtype",
    "RandomNormalLike": "dtype",
    "RandomUniform": "dtype",
    "RandomUniformLike": "dtype",
}
"""Operators of ai.onnx with an attribute that sets the type of the output; for ConstantOfShape it is a tensor of that type.

Without the attribute the type is that of an input, or else float32.
"""

_ANY = {
    "Cast": (0,), "CastLike": (0,), "EyeLike": (0,), "RandomNormalLike": (0,),
    "RandomUniformLike": (0,), "Shape": (0,), "Size": (0,),
}  # fmt: skip
"""Inputs whose type has no influence: they keep the type that they have."""

_ALL_ALIKE = frozenset({"LinearAttention"})
"""Operators whose outputs have one type, though their schemas have two type variables.

A state that begins at 0 has the type of the other values (the function body, and ONNX Runtime's inference).
"""

_OTHERS = {
    domain: {name: (inputs, outputs, bfloat) for name, inputs, outputs, bfloat in map(str.split, rows.splitlines())}
    for domain, rows in {
        "": """\
LayerNormalization ABB Bff AB
SimplifiedLayerNormalization AB Bf AB""",
        "com.microsoft": """\
Attention AAA-AA- AA A
BiasAdd AAA A -
BiasGelu AA A A
BiasSoftmax AA A -
BiasSplitGelu AA A -
CausalConvWithState AAAA AAA A
ComplexMul AA A -
ComplexMulConj AA A -
ConvTransposeWithDynamicPads AA-A A -
CropAndResize AA-- A -
DecoderAttention AAAAA-AA---- AAA -
DecoderMaskedMultiHeadAttention AAA-AAA---A AAAB -
DecoderMaskedSelfAttention AAA-AA--- AA -
DequantizeLinear -A- A -
DynamicQuantizeLSTM f--f-ffff-f- fff -
DynamicQuantizeMatMul f-f-f f -
EmbedLayerNormalization --AAAAA-- A-A -
ExpandDims A- A -
FastGelu AA A A
FusedConv AAAA A -
FusedGemm AAA A -
FusedMatMul AA A A
FusedMatMulActivation AA A A
GatedRelativePositionBias AAAAAA- A -
GatherBlockQuantized --A- A A
GatherND A- A -
Gelu A A A
GemmFastGelu AAA A A
GridSample AA B -
GroupNorm ABB A -
GroupQueryAttention AAABB--AA-AAffAA- ABBA AB
Inverse A A -
Irfft A A -
LongformerAttention AAAAAA- A -
MatMulBnb4 A-A A A
MatMulIntegerToFloat --AA--A A -
MatMulNBits A-AB-A A AB
MoE AAAAAAAA A A
MultiHeadAttention AAAA-AAA-- AAAB AB
NhwcConv AAA A -
NhwcFusedConv AAAA A -
PackedAttention AAA--A A -
PackedMultiHeadAttention AAAA--A A -
Pad A-A A -
QAttention --AAA---A AA -
QuantizeLinear AA- - -
QuickGelu A A A
RelativePositionBias A-- A -
RemovePadding A- A--- -
RestorePadding A- A -
Rfft A A -
RotaryEmbedding A-AA A A
SkipGroupNorm ABBAA AA -
SkipLayerNormalization AAAAA AffA A
SkipSimplifiedLayerNormalization AAAA AffA A
SparseAttention AAAAA----AA AAA A
SwiGLU AA A A
TorchEmbedding A--- A A
TransposeMatMul AA A A
Trilu A- A A
UnfoldTensor A A A
Unique A A-- -""",
    }.items()
}  # fmt: skip
"""Operators without a schema in onnx, as ONNX Runtime registers them (`get_all_operator_schema()` of onnxruntime 1.32).

The first two columns have a letter for each input and each output. A letter is a type variable that can be float16 and
float32. Variables in the last column can also be bfloat16. The letter f means float32, and - means no such type.
"""


@dataclass(frozen=True)
class Retyping:
    """Whether each input and output gets the new type. Inputs for which `takes_any` is true may have any type."""

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]


def takes_any(domain: str, operator: str, index: int) -> bool:
    """Return whether nothing depends on the type of an input."""
    return not domain and index in _ANY.get(operator, ())


@schema_cache
def retyping(
    domain: str,
    operator: str,
    since_version: int,
    inputs: tuple[bool, ...],
    outputs: tuple[bool, ...],
    target: int,
) -> Retyping | None:
    """Return which values of a node change their type when it computes in `target`; None if it does not support that type.

    `inputs` and `outputs` mark the values whose type is to change. The inputs of one type variable change together. The
    type of an output follows from the inputs or from an attribute, if the schema says so. Any other output keeps its
    type, for example the mean that LayerNormalization returns.
    """
    operator_constraints = known_constraints(domain, operator, since_version)
    if operator_constraints is None:
        return None
    text = type_text(target)
    changing: set[str] = set()
    staying: set[str] = set()
    # A type variable keeps its type if one of its values may not change.
    for formal, changes in _formals(operator_constraints, inputs, output=False):
        if changes and formal is not None:
            (changing if text in formal.allowed else staying).add(formal.variable)
    # These operators name their output type in an attribute.
    stated = not domain and operator in TYPE_BY_ATTRIBUTE
    # Operators of _ALL_ALIKE compute all outputs in one type, despite their type variables.
    found_outputs = []
    for formal, changes in _formals(operator_constraints, outputs, output=True):
        alike = stated or (operator in _ALL_ALIKE and not domain and bool(changing))
        follows = formal is not None and (formal.variable in changing or (alike and text in formal.allowed))
        found_outputs.append(changes and follows)
    found_inputs = tuple(
        changes
        and formal is not None
        and formal.variable in changing
        and not takes_any(domain, operator, index)
        for index, (formal, changes) in enumerate(_formals(operator_constraints, inputs, output=False))
    )
    is_retyped = any(found_inputs) or any(found_outputs)
    return Retyping(found_inputs, tuple(found_outputs)) if is_retyped else None


def _formals(
    known: Constraints, flags: tuple[bool, ...], *, output: bool
) -> Iterator[tuple[Formal | None, bool]]:
    return ((known.formal(index, output=output), changes) for index, changes in enumerate(flags))


@schema_cache
def known_constraints(domain: str, operator: str, since_version: int) -> Constraints | None:
    """Return the types that an operator supports, by onnx or else by ONNX Runtime; None if neither says."""
    onnx_constraints = constraints(domain, operator, since_version)
    row = None if onnx_constraints is not None else _OTHERS.get(domain, {}).get(operator)
    if row is None:
        return onnx_constraints
    inputs, outputs, bfloat = row

    def formal(letter: str) -> Formal:
        kinds = (
            ["float"] if letter in "f-" else ["float", "float16", *(["bfloat16"] if letter in bfloat else [])]
        )
        return Formal("", letter, frozenset(f"tensor({kind})" for kind in kinds), variadic=False, alike=True)

    return Constraints(tuple(map(formal, inputs)), tuple(map(formal, outputs)))


@schema_cache
def derived_types(
    domain: str, operator: str, since_version: int, inputs: tuple[int, ...], outputs: int
) -> tuple[int, ...]:
    """Return the element types of a node's outputs that follow from those of its inputs; 0 for all others."""
    operator_constraints = known_constraints(domain, operator, since_version)
    if operator_constraints is None:
        return (0,) * outputs
    bound: dict[str, int] = {}
    for index, kind in enumerate(inputs):
        formal = operator_constraints.formal(index, output=False)
        if kind and formal is not None and formal.alike:
            bound.setdefault(formal.variable, kind)
    # The type of an output follows from its type variable, or is the only one that is allowed.
    formals = [operator_constraints.formal(index, output=True) for index in range(outputs)]
    return tuple(
        bound.get(formal.variable) or _only(formal.allowed) if formal is not None and formal.alike else 0
        for formal in formals
    )


def _only(allowed: frozenset[str]) -> int:
    """Return the element type of the one type that is allowed; 0 if there are several, or it is no tensor's."""
    return next((kind for kind in TensorProto.DataType.values() if kind and allowed == {type_text(kind)}), 0)
