"""Makes ONNX Runtime read the files of external data that were checked, and no others.

ONNX Runtime opens files by path, and a path may lead to another file by then. On Linux it gets paths of descriptors,
/proc/self/fd/N (proc(5)). They lead to the open files, whatever happens to their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from onnx import GraphProto, ModelProto, TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.model.graphs import nested_bodies
from onnx_migrate.model.payloads import FilePayload
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import Weights, mark_external
from onnx_migrate.verify.evaluators.interface import Runnable

__all__ = ["can_read_in_place", "open_external_data"]

_DESCRIPTORS = "proc/self/fd"

_RESERVE = 256
"""Descriptors that remain for everything else."""


@contextmanager
def open_external_data(runnable: Runnable) -> Iterator[tuple[str | bytes, str | None]]:
    """Yield the path or bytes that ONNX Runtime is to load, and the folder that locations in it are relative to, if any.

    The files are open as long as the block runs, in which the model must be loaded. Some locations stay unchanged: if there are
    no paths of descriptors, not enough descriptors, or weights in a sub-graph. The function then checks before and after the
    block that the files are still the checked ones. Raises LoadError if they are not.
    """
    if runnable.path is not None:
        yield str(runnable.path), None
        return
    structure = runnable.given or runnable.structure or b""
    # Most models have no external data, and parsing takes longer than this search.
    if b"location" not in structure:  # the key of an entry of external_data
        yield structure, None
        return
    proto = ModelProto.FromString(structure)
    external_tensors = [
        (tensor, runnable.external_data.payload(tensor))
        for tensor in tensors(proto)
        if tensor.data_location == TensorProto.EXTERNAL
    ]
    files = {payload.path: payload for _, payload in external_tensors if isinstance(payload, FilePayload)}
    if _any_in_subgraphs(proto) or not _can_hold(len(files)):
        for each in files.values():
            # Opening checks that the file is still the one that was loaded.
            each.open().close()
        yield structure, str(runnable.external_data.folder)
        for each in files.values():
            each.open().close()
        return
    with ExitStack() as stack:
        opened = {path: stack.enter_context(each.open()).fileno() for path, each in files.items()}
        for tensor, payload in external_tensors:
            if isinstance(payload, FilePayload):
                # The new location replaces the old entries.
                del tensor.external_data[:]
                location = f"{_DESCRIPTORS}/{opened[payload.path]}"
                mark_external(tensor, location, payload.offset, payload.length)
        try:
            yield proto.SerializeToString(), "/"
        except Exception as error:  # pybind raises a dozen unrelated kinds
            if _DESCRIPTORS in str(error) and "No such file" in str(
                error
            ):  # newer releases ask for the name of a file
                raise LoadError(
                    "a file with weights was replaced while it was read",
                    code="source-changed",
                    hint=Advice("load the model again"),
                ) from error
            raise


def can_read_in_place(proto: ModelProto, weights: Weights) -> bool:
    """Return whether ONNX Runtime can read the data that `weights` keeps for a model in place, in files without a location."""
    # Data in memory has no file that could be read in place.
    data_files = {payload.path if isinstance(payload, FilePayload) else None for payload in weights.memory}
    return None not in data_files and not _any_in_subgraphs(proto) and _can_hold(len(data_files) + 1)


def _any_in_subgraphs(proto: ModelProto) -> bool:
    """Return whether a sub-graph has external data: ONNX Runtime runs onnx's checker on it, which refuses symbolic links."""
    return any(
        tensor.data_location == TensorProto.EXTERNAL
        for key, body in nested_bodies(proto.graph)
        if key and isinstance(body, GraphProto)
        for tensor in (
            *body.initializer,
            *(attribute.t for node in body.node for attribute in node.attribute),
        )
    )


def _can_hold(count: int) -> bool:
    """Return whether a number of files can be open at once and have paths; raises the soft limit if possible."""
    if not os.path.isdir(f"/{_DESCRIPTORS}"):
        return False
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The files that the process already has open count against the limit.
    needed = len(os.listdir(f"/{_DESCRIPTORS}")) + count + _RESERVE
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return True
    if hard != resource.RLIM_INFINITY and needed > hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return True
