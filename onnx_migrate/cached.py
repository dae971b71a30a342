"""Attributes that are computed once: `functools.cached_property`, without the lock that it has before Python 3.12.

All instances of a class share that lock. A thread holds it while it computes one attribute. A process that is forked
meanwhile waits for the lock for ever.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - the name of the class that it replaces
        """An attribute that the first access computes, which two threads may do at the same time."""

        def __init__(self, function):
            self.func, self.name = function, function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = self.func(instance)
            return instance.__dict__.setdefault(self.name, value)
