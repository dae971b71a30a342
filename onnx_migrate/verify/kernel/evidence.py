"""The evidence that the kernel judges: values of two models, and how far rounding alone moves the original's."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx_migrate.verify.kernel.arrays import Array


@dataclass(frozen=True)
class Tolerance:
    """The differences that are allowed.

    A user's `rtol` or `atol` allow `|after - before| <= atol + rtol * |before|`, per element.

    Otherwise the kernel's own limits hold. In another runtime or at another size, three fields replace those of limits.py. These
    are `floor` (units in the last place), `factor` (times the measured noise), and `eps`, the least eps. With `quantum` a few
    int8 and uint8 elements may differ by one step, as in a model that quantises.
    """

    rtol: float | None = None
    atol: float | None = None
    floor: float | None = None
    factor: float | None = None
    quantum: bool = False
    eps: float = 0.0

    @property
    def is_given(self) -> bool:
        """Whether the user gave a limit."""
        return self.rtol is not None or self.atol is not None


@dataclass(frozen=True)
class Explanation:
    """A difference of one output on one feed that is shown to be rounding of single nodes.

    From the original's own inner values, the result's nodes compute the original's output again, within the rounding of one
    node each. `largest` is the largest absolute difference of the output (1 step or more for integers), `elements` how
    many elements differ.
    """

    largest: float
    elements: int


@dataclass(frozen=True, eq=False)
class Measurement:
    """How far rounding alone moves one output of the original on one feed: measured on the original, never on the result.

    `largest` is the largest absolute difference between runs of the original, infinite if its discrete elements change. Those
    runs move inputs by one unit in the last place, or switch optimisation. `typical` is the root mean square of that difference,
    infinite if it is not measured. `scale` is the largest finite magnitude over all feeds. `unstable` marks the elements that no
    run decides: discrete ones that change, and floats that are finite in one run only. `undefined` marks elements that the
    standard leaves undefined.
    """

    largest: float = 0.0
    typical: float = float("inf")
    scale: float = 0.0
    unstable: Array | None = None
    undefined: Array | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """One tensor of an output. Both models computed it from the same inputs in the same runtime and configuration.

    `original` and `result` are arrays, None for an absent optional.
    """

    output: str
    original: Array | None
    result: Array | None
    tolerance: Tolerance = field(default_factory=Tolerance)
    measurement: Measurement = field(default_factory=Measurement)
