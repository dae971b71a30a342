"""Runs the command line for `python -m onnx_migrate`."""

from __future__ import annotations

from onnx_migrate.cli import main

if __name__ == "__main__":
    main()
