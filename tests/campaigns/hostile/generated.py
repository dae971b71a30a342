"""Three hundred small files that ask for too much: sizes, loops, growth, functions, names, shapes and bytes, from few patterns.

Each is the product of a place where a large number comes from and of what is done with it, so that no kind has one file alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

from tests.campaigns.hostile.case import Case
from tests.campaigns.hostile.generated_files import damaged, dims, names
from tests.campaigns.hostile.generated_loops import loops
from tests.campaigns.hostile.generated_sizes import sizes
from tests.campaigns.hostile.generated_work import growth, work

__all__ = ["GENERATED"]

_ANY = (0, 1, 3, 4)
"""The exit codes of a command that ended by itself: done, refused, not migrated, or not a valid model."""


def _cases() -> Iterator[Case]:
    for name, made in itertools.chain(sizes(), loops(), work(), growth(), names(), dims(), damaged()):
        data = made if isinstance(made, bytes) else made.SerializeToString()
        yield Case("".join(c if c.isalnum() else "_" for c in name), partial(_data, data), _ANY, "", False)


def _data(data: bytes) -> bytes:
    return data


GENERATED: list[Case] = list(_cases())
"""The files; the same ones each time."""
