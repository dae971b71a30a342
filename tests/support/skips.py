"""Why tests skip on Linux, and where each of them runs. A run in which one skips for another reason fails."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["WHERE", "unknown"]

WHERE: dict[str, tuple[str, ...]] = {
    "with the newest releases, by `.ci/run`": (
        r"onnx (\d|before \d|is older$|inferred in float32 until)",
        r"(what )?an older onnx ",
        r"this (onnx|release of onnx) ",
        r"the installed onnx knows opsets up to",
        r"the text of a model is beyond onnx",
        r"the pages? (is|are) written with the newest onnx",
        r"(a dependency of onnx from 1\.19 on|could not import 'ml_dtypes')",
        r"before onnx 1\.17 a registered schema infers no types",
        r"onnx\.reference of older releases",
        r"needs targets above 18|the counts are of all targets",
        r"types are checked with the newest releases",
        r"ONNX Runtime (1\.\d|before 1\.27 does not load|before 1\.32 convolves|has no kernel of GlobalLpPool-22)",
        r"this ONNX Runtime divides by what hangs over the padding too",
    ),
    "with ONNX Runtime 1.31, by `.ci/run`": (
        r"ONNX Runtime before 1\.32 merges pad_maxpool_opset9 wrongly",
        r"the fault is that of one release's optimiser",
        r"onnx is older, or ONNX Runtime is as new",
        r"this ONNX Runtime loads all IR versions that this onnx writes",
    ),
    "with what `.ci/run` installs": (
        r"Chromium is not installed",
        r"(groff|make|ninja|bash|cmake or its generator's tool|ncnn|openvino|opencv|tract|mnn) is not installed",
        r"click asks bash for its version",
        r"there is no C compiler|faults are injected by a library that a C compiler makes",
        r"ONNX_MIGRATE_TEST_NODE names no folder",
        r"could not import '(aiohttp|distributed|jinja2|jsonschema|onnx_ir|onnxruntime_extensions|parameterized)'",
    ),
    "as root, who may mount folders": (r"needs root to become somebody else", r"may not mount"),
    "where PyPI and pyenv have what is asked for": (r".* cannot be (fetched: |installed for )",),
    "by hand: `.venv/bin/pip install torch onnxscript && .venv/bin/pytest tests/examples -k torch`": (
        r"could not import '(torch|onnxscript)'",
    ),
    "by hand: `.venv/bin/pip install torch onnxscript 'nvidia-modelopt[onnx]' iree-base-compiler olive-ai && .venv/bin/pytest"
    " tests/examples/test_adopters.py`": (r"could not import '(modelopt|iree\.compiler|olive)'",),
    "by hand: `ONNX_MIGRATE_TEST_RKNN=PYTHON .venv/bin/pytest tests/verify/evaluators/drivers/test_rknn.py`": (
        r"could not import 'rknn'",
    ),
    "nowhere: there is nothing that could run": (
        r"onnx\.reference sums x\^p without absolute values",
        r"ONNX Runtime has cubic for two axes",
        r"an int64 Constant, which opset 8 has as an initializer alone",
        r"Python leaves it to the system until there is a handler",
    ),
}
"""Where a test runs that skips elsewhere, with the beginnings of its reasons, as regular expressions."""


def unknown(reasons: Iterable[str]) -> list[str]:
    """Return the reasons that are in no row of the table."""
    known = re.compile("|".join(pattern for patterns in WHERE.values() for pattern in patterns))
    return sorted({reason for reason in reasons if not known.match(reason)})
