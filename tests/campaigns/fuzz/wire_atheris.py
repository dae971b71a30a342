"""Coverage-guided fuzzing of the wire reader: `python -m tests.campaigns.fuzz.wire_atheris [FOLDER] [-max_total_time=600]`.

Needs `pip install atheris` (Linux, CPython 3.11 to 3.13). Arguments are those of libFuzzer; FOLDER keeps what finds new code. An
input on which `files.load` and protobuf's parser disagree, or that raises anything but LoadError, is written to crash-….
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["onnx_migrate.files", "onnx_migrate.model"]):
    from onnx_migrate.files import load as _load  # noqa: F401  # instrumented here, used in wire_finds

from tests.campaigns.fuzz.case import case_of
from tests.campaigns.fuzz.wire_mutations import mutate_bytes
from tests.campaigns.fuzz.wire_oracle import wire_finds


def test_one_input(data: bytes) -> None:
    """Compare the two readers."""
    finds = wire_finds(data)
    if finds:
        raise RuntimeError(finds[0])


def mutate(data: bytes, size: int, seed: int) -> bytes:
    """Change fields as the generator does, or bytes as libFuzzer does."""
    if seed % 2:
        return bytes(atheris.Mutate(data, size))
    return mutate_bytes(Random(seed), data)[:size]


def main() -> None:
    """Start from the bytes of some cases."""
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    with tempfile.TemporaryDirectory() as start:
        for seed in range(60):
            data = case_of(seed).data
            if len(data) < 20_000:
                Path(folders[0] if folders else start, f"seed-{seed}").write_bytes(data)
        corpus = [] if folders else [start]
        atheris.Setup([*sys.argv, *corpus, "-max_len=20000"], test_one_input, custom_mutator=mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
