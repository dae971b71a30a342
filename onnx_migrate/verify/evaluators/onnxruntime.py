"""ONNX Runtime on the CPU, without graph optimisation and with all of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import onnx

from onnx_migrate.errors import LoadError, UsageError
from onnx_migrate.messages import shortened
from onnx_migrate.verify.evaluators.configurations import OPTIMIZED, UNOPTIMIZED
from onnx_migrate.verify.evaluators.external_data import open_external_data
from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    Runnable,
    one_line,
    raise_if_out_of_memory,
)
from onnx_migrate.verify.evaluators.ort_values import from_ort_value, is_foreign, to_ort_value
from onnx_migrate.verify.evaluators.quirks import without_quirks

__all__ = ["LOADERS", "OnnxRuntime", "without_source_locations"]

_TO_UNSIGNED = "QDQS8ToU8Transformer"
"""The optimisation that writes int8 inputs of DequantizeLinear as uint8.

For exact sums it also changes constants, which do not need it. In ONNX Runtime 1.32 it fails if two constants beyond 64 have one
zero point.
"""

_NODE = re.compile(
    r"(?:while running|Node:?) ?(?P<op>\w*) node\. Name:'(?P<name>[^']*)'|Node \((?P<other>[^)]+)\)"
)
_SOURCE_LOCATION = re.compile(  # the status code, and file, line and function in ONNX Runtime's source
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : |\S*/onnxruntime/\S+:\d+ (?:[^()]*?\((?:[^()]|\([^()]*\))*\) )?"
)
_STATUS = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:('[^']*') Status Message: "
)
_NEWEST = re.compile(r"only \*guarantees\* .* for domain ai\.onnx is till opset (\d+)", re.DOTALL)
_LIMIT = re.compile(
    r"only \*guarantees\* support for models stamped with official"
    r"|Unsupported model IR version"
    r"|Could not find an implementation for "
    r"|No Op registered for (?P<op>\w+) with domain_version of (?P<opset>\d+)"
)

_LONGEST = 20_000
"""Characters of a message that patterns search: it may hold names of any length, and patterns take quadratic time."""


class OnnxRuntime(Evaluator):
    """ONNX Runtime's CPU provider, with deterministic kernels and at most four threads, or OMP_NUM_THREADS."""

    def __init__(self, runnable: Runnable, *, optimize: bool = False) -> None:
        import onnxruntime

        self.name = f"onnxruntime {onnxruntime.__version__}"
        rewritten = without_quirks(runnable, optimize=optimize)
        runnable, self.notes = rewritten.runnable, rewritten.notes
        try:
            with open_external_data(runnable) as (source, folder):

                def session(entries: Mapping[str, str], *disabled: str) -> Any:
                    options = _options(runnable, folder, entries, optimize=optimize)
                    providers = ["CPUExecutionProvider"]
                    return onnxruntime.InferenceSession(
                        source, options, providers=providers, disabled_optimizers=[*disabled]
                    )

                try:
                    self._session = session(rewritten.entries)
                except Exception:
                    if not rewritten.entries:
                        raise
                    session({})  # which is what users load
                    self._session = session(rewritten.entries, _TO_UNSIGNED)
        except (LoadError, UsageError):  # of a file or library, which says nothing of the model
            raise
        except Exception as error:  # pybind raises a dozen unrelated kinds
            raise _evaluation_error(error, loading=True) from error
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._kinds = {value.name: value.type for value in self._session.get_inputs()}
        interface = (*self._session.get_inputs(), *self._session.get_outputs())
        self._foreign = any(is_foreign(value.type) for value in interface)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError with the node that ONNX Runtime's message names, if any."""
        try:
            values = self._run(inputs)
        except Exception as error:
            raise _evaluation_error(error, loading=False) from error
        return dict(zip(self._outputs, values, strict=True))

    def _run(self, inputs: Mapping[str, Any]) -> list[Any]:
        if not self._foreign:
            return list(self._session.run(self._outputs, dict(inputs)))
        feed = {name: to_ort_value(array, self._kinds[name]) for name, array in inputs.items()}
        return [from_ort_value(value) for value in self._session.run_with_ort_values(self._outputs, feed)]


def _options(runnable: Runnable, folder: str | None, entries: Mapping[str, str], *, optimize: bool) -> Any:
    """Return the options of a session whose external data lies in a folder, with further entries of its configuration.

    Raises UsageError for a library of custom operators that ONNX Runtime cannot load.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = _threads()
    options.inter_op_num_threads = 1
    # Threads that wait in a loop take a core from other work, and gain little.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.use_deterministic_compute = True
    options.log_severity_level = 2
    # A value that is kept would keep the arena that it is in, with all that its session allocated.
    options.enable_cpu_mem_arena = False
    if not optimize:
        # Weights stay in their file: packing them for faster multiplication would copy them.
        options.add_session_config_entry("session.disable_prepacking", "1")
    else:  # products with weights of few bits, which the optimiser fuses, stay products of floats
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    for library in runnable.libraries:
        try:
            options.register_custom_ops_library(library)
        except Exception as error:  # noqa: PERF203 - as above
            raise UsageError(
                f"{library}: ONNX Runtime {onnxruntime.__version__} cannot load it as a library of custom operators:"
                f" {without_source_locations(str(error))}",
                code="ort-library",
                hint="it must export RegisterCustomOps, and be made for this release or an older one",
            ) from error
    return options


def _threads() -> int:
    """Return how many threads a model runs on: four, or as many as there are cores, or as OMP_NUM_THREADS allows."""
    omp_threads = os.environ.get("OMP_NUM_THREADS", "")
    return min(4, int(omp_threads) if omp_threads.isdigit() and int(omp_threads) else os.cpu_count() or 1)


def _evaluation_error(error: Exception, *, loading: bool) -> EvaluationError:
    text = shortened(str(error))[:_LONGEST]
    # Lack of memory is no fault of the model.
    raise_if_out_of_memory(error, without_source_locations(text))
    node_in_text = _NODE.search(text)
    node = (node_in_text["name"] or node_in_text["other"] or "") if node_in_text else ""
    return EvaluationError(
        without_source_locations(text), node, loading=loading, limit=loading and _is_limit_of_runtime(text)
    )


def _is_limit_of_runtime(text: str) -> bool:
    """Whether a message says that this release lacks an opset, IR version or kernel that the standard has."""
    limit_in_text = _LIMIT.search(text)
    if limit_in_text is None or limit_in_text["op"] is None:
        return limit_in_text is not None
    try:  # no schema at this opset: the model is at fault
        onnx.defs.get_schema(limit_in_text["op"], int(limit_in_text["opset"]))
    except onnx.defs.SchemaError:
        return False
    return True


def without_source_locations(text: str) -> str:
    """Return a message on one line, without status codes and positions in ONNX Runtime's source."""
    text = shortened(text)[:_LONGEST]
    if (newest_in_text := _NEWEST.search(text)) is not None:
        return f"its newest opset is {newest_in_text[1]}"
    return one_line(_STATUS.sub(r"\1 \2: ", " ".join(_SOURCE_LOCATION.sub("", text).split())))


LOADERS = {UNOPTIMIZED: OnnxRuntime, OPTIMIZED: partial(OnnxRuntime, optimize=True)}
