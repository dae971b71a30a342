"""Calls `convert_version` on a file, as a program does: python -m tests.campaigns.hostile.convert MODEL OPSET."""

from __future__ import annotations

import sys

import onnx
from google.protobuf.message import DecodeError

from onnx_migrate import InvalidModel, MigrateError, convert_version

if __name__ == "__main__":
    try:
        convert_version(onnx.load(sys.argv[1]), int(sys.argv[2]))
    except DecodeError:
        sys.exit("onnx-migrate: not-a-model: no protobuf")
    except MigrateError as error:
        print(f"onnx-migrate: {error.code}: {error}", file=sys.stderr)
        sys.exit(4 if isinstance(error, InvalidModel) else 1)
