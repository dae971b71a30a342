"""The list of hostile models: each a function that writes one file, with the exit codes that are right for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx

__all__ = ["CASES", "Case", "hostile"]

Made = onnx.ModelProto | bytes


@dataclass(frozen=True)
class Case:
    """A model that is small to make and large to handle."""

    name: str
    make: Callable[[], Made]
    exits: tuple[int, ...]
    """What `onnx-migrate MODEL OUTPUT` may end with."""
    code: str
    """The code of the error, or of the note or the unverified verdict where the exit code is 0; "" for any."""
    slow: bool
    """Whether it takes more than a second or two."""

    def data(self) -> bytes:
        """Return the bytes of the file."""
        made = self.make()
        return made if isinstance(made, bytes) else made.SerializeToString()


CASES: list[Case] = []


def hostile(
    *exits: int, code: str = "", slow: bool = False
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Enter the function below as a case; its name is the case's."""

    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        CASES.append(Case(make.__name__, make, exits, code, slow))
        return make

    return enter
