"""The differences that the user allows: in every output, or in some by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import did_you_mean, first_of
from onnx_migrate.verify.kernel import Tolerance

__all__ = ["OutputLimits", "OutputTolerances", "limit_of", "require_outputs", "tolerance_for", "tolerance_of"]

OutputLimits = float | str | Mapping[str, float] | Sequence[float | str] | None
"""A limit for every output, {"logits": 1e-3} for some, a text like "logits:1e-3", or several such texts and numbers."""

_LISTED = 10
"""Outputs that an error lists."""


@dataclass(frozen=True)
class OutputTolerances(Tolerance):
    """A tolerance with limits of their own for some outputs, by name: `rtols` and `atols`. They replace the general ones."""

    rtols: tuple[tuple[str, float], ...] = ()
    atols: tuple[tuple[str, float], ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether the user gave a limit for any output."""
        return super().is_given or bool(self.rtols or self.atols)

    def of(self, output: str) -> Tolerance:
        """Return the tolerance for one output."""
        general = {
            tolerance_field.name: getattr(self, tolerance_field.name) for tolerance_field in fields(Tolerance)
        }
        # A limit for one output replaces the general one.
        rtol, atol = dict(self.rtols).get(output, self.rtol), dict(self.atols).get(output, self.atol)
        return Tolerance(**{**general, "rtol": rtol, "atol": atol})


def tolerance_for(tolerance: Tolerance, output: str) -> Tolerance:
    """Return the part of a tolerance that is for one output."""
    return tolerance.of(output) if isinstance(tolerance, OutputTolerances) else tolerance


def tolerance_of(rtol: OutputLimits, atol: OutputLimits) -> Tolerance:
    """Return the tolerance for limits as users write them. Raises UsageError for a limit that is no number."""
    (every_rtol, rtols), (every_atol, atols) = _limits("rtol", rtol), _limits("atol", atol)
    if not (rtols or atols):
        return Tolerance(every_rtol, every_atol)
    return OutputTolerances(every_rtol, every_atol, rtols=tuple(rtols.items()), atols=tuple(atols.items()))


def _limits(option: str, given: OutputLimits) -> tuple[float | None, dict[str, float]]:
    """Return the limit for every output, None without one, and those for some by name."""
    every, outputs = None, dict[str, float]()
    for name, limit in _named(given):
        number = limit_of(option, limit)
        if name:
            outputs[name] = number
        else:
            every = number
    return every, outputs


def _named(given: OutputLimits) -> Iterator[tuple[str, float | str]]:
    if isinstance(given, Mapping):
        yield from given.items()
        return
    for entry in [given] if isinstance(given, (str, float, int)) else given or ():
        # The names of TensorFlow contain colons: "logits:0".
        name, _, number = entry.rpartition(":") if isinstance(entry, str) else ("", "", entry)
        yield name, number


def limit_of(option: str, value: float | str) -> float:
    """Return a limit as a number. Raises UsageError unless it is finite and not below 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(
            f"{option}: {value!r} is not a finite number of at least 0",
            hint=f"write a number, or OUTPUT:NUMBER as in logits:1e-3, for --{option}",
        )
    return number


def require_outputs(tolerance: Tolerance, outputs: Iterable[str]) -> None:
    """Raise UsageError if a limit is for a name that is no output."""
    names = list(outputs)
    # Limits without a name are for all outputs.
    limits = [*tolerance.rtols, *tolerance.atols] if isinstance(tolerance, OutputTolerances) else []
    for name, limit in limits:
        if name not in names:
            meant = did_you_mean(name, names)
            raise UsageError(
                f"the model has no output {name!r}, for which you allow {limit:g}",
                code="no-such-input",
                hint=f"{meant} the outputs are {first_of(names, _LISTED)}".strip(),
            )
