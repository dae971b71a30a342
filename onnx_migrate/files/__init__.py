"""Reading and writing models: the structure goes through memory, the weights from file to file."""

from __future__ import annotations

from onnx_migrate.files.destination import check_target, check_unread
from onnx_migrate.files.equality import same
from onnx_migrate.files.load import Source, load
from onnx_migrate.files.remote.download import at_hand
from onnx_migrate.files.save import save
from onnx_migrate.files.to_proto import inline

__all__ = ["Source", "at_hand", "check_target", "check_unread", "inline", "load", "same", "save"]
