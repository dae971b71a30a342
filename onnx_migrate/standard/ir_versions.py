"""IR versions: the IR version that was released together with an opset, and the one that introduced a feature of models.

Source: onnx/docs/Versioning.md, "Released Versions", and the comments of `enum Version` in onnx/onnx.in.proto. If a
field has no comment there, the source is the first release whose onnx.in.proto has the field. `onnx.checker` and
runtimes enforce hardly any of this: docs/ir-versions.md describes their behaviour.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

import onnx
from onnx import helper

__all__ = [
    "DTYPE_FEATURES",
    "NEWEST_IR",
    "OLDEST_IR",
    "IrFeature",
    "minimal_ir_version",
    "newest_opset_of_ir",
]

OLDEST_IR = 3
"""The first IR version with opset imports, without which a model says no opset."""

NEWEST_IR = int(onnx.IR_VERSION)
"""The newest IR version that the installed onnx knows."""


class IrFeature(Enum):
    """A feature that models can have from an IR version on: that version, and words that complete "the model has …".

    An *annotation* is information for tools. No number that the model computes depends on it, and programs that do not
    know it ignore it.
    """

    OPSET = ("opset", 0, "an opset", False)
    """An import; its IR version comes from `minimal_ir_version`."""
    UNLISTED = ("unlisted-initializers", 4, "initializers that are not listed as inputs", False)
    BFLOAT16 = ("bfloat16", 4, "values of type bfloat16", False)
    QUANTIZATION = ("quantization-annotation", 5, "quantization annotations", True)
    SPARSE = ("sparse-tensors", 6, "sparse tensors", False)
    TRAINING = ("training-info", 7, "training information", False)
    FUNCTIONS = ("functions", 8, "local functions", False)
    OPTIONAL = ("optional-types", 8, "values of an optional type", False)
    SPARSE_TYPE = ("sparse-types", 8, "values of a sparse type", False)
    TYPE_ATTRIBUTE = ("type-attributes", 8, "attributes whose value is a type", False)
    ATTRIBUTE_DEFAULTS = ("attribute-defaults", 9, "functions with default values of attributes", False)
    FLOAT8 = ("float8", 9, "values of an 8-bit float type", False)
    OVERLOADS = ("overloads", 10, "functions with overloads", False)
    FUNCTION_VALUE_INFO = ("function-value-info", 10, "functions that declare types of inner values", True)
    METADATA = ("metadata", 10, "metadata of nodes, values, tensors, graphs or functions", True)
    INT4 = ("int4", 10, "values of a 4-bit integer type", False)
    FLOAT4 = ("float4", 11, "values of type float4e2m1", False)
    DEVICES = ("device-configurations", 11, "device configurations", True)
    FLOAT8E8M0 = ("float8e8m0", 12, "values of type float8e8m0", False)
    INT2 = ("int2", 13, "values of a 2-bit integer type", False)
    FLOAT6 = ("float6", 14, "values of a 6-bit float type", False)
    OPAQUE = ("opaque-types", 14, "values of an opaque type", False)
    """Builds of onnx for machine learning (ONNX_ML, as all published ones) have had them since IR version 4."""

    def __init__(self, slug: str, since: int, text: str, annotation: bool) -> None:
        self.slug = slug
        self.since = since
        self.text = text
        self.annotation = annotation


DTYPE_FEATURES: dict[int, IrFeature] = {
    16: IrFeature.BFLOAT16,
    17: IrFeature.FLOAT8,
    18: IrFeature.FLOAT8,
    19: IrFeature.FLOAT8,
    20: IrFeature.FLOAT8,
    21: IrFeature.INT4,
    22: IrFeature.INT4,
    23: IrFeature.FLOAT4,
    24: IrFeature.FLOAT8E8M0,
    25: IrFeature.INT2,
    26: IrFeature.INT2,
    27: IrFeature.FLOAT6,
    28: IrFeature.FLOAT6,
}
"""The element types that are newer than IR version 3, by TensorProto.DataType: the installed onnx need not know them."""


@cache
def _ir_of_opset() -> dict[tuple[str, int], int]:
    return dict(helper.OP_SET_ID_VERSION_MAP)


def minimal_ir_version(opset: int, domain: str = "ai.onnx") -> int:
    """Return the IR version of the first release with an opset of ai.onnx ("ai.onnx" or "") or ai.onnx.ml.

    No release has opsets 2 to 4 of ai.onnx or unknown opsets: they get IR version 3, like opset 5. Opsets of other
    domains get it too.
    """
    return _ir_of_opset().get((domain or "ai.onnx", opset), OLDEST_IR)


def newest_opset_of_ir(ir_version: int, domain: str = "ai.onnx") -> int:
    """Return the newest opset of a domain that was released with an IR version or an older one; 1 if there is none."""
    released_opsets = (
        opset
        for (name, opset), ir in _ir_of_opset().items()
        # onnx's table names the domain ai.onnx in full.
        if name == (domain or "ai.onnx") and ir <= ir_version
    )
    return max(released_opsets, default=1)
