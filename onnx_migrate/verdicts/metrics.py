"""The figures that people quote for how close two models are: cosine similarity, SNR, PSNR and top-1 agreement."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.messages import count_of

__all__ = ["OutputMetrics"]


@dataclass(frozen=True)
class OutputMetrics:
    """How close one output of the result is to the original's, over all elements of all inputs.

    `elements` are those that are finite in both models; `equal` is the share of all elements that are equal. `cosine` is the
    cosine of the angle between both outputs, and `lowest_cosine` the lowest of a single input. `snr` and `psnr` are in decibels,
    and infinite for equal outputs. They compare the mean square error with the mean square, and with the largest square.
    `largest_relative` divides each error by the original's element, without elements that are 0.

    `top1` is the share of `rows` with the same largest element. It is None for an output that is not shaped like scores. The
    other figures are None for an output without numbers.
    """

    output: str
    inputs: int
    elements: int
    equal: float
    cosine: float | None = None
    lowest_cosine: float | None = None
    snr: float | None = None
    psnr: float | None = None
    largest_absolute: float | None = None
    largest_relative: float | None = None
    top1: float | None = None
    rows: int = 0

    @property
    def short(self) -> str:
        """The figures on one line, without the name of the output."""
        top1 = self.top1_text
        if self.cosine is None or self.snr is None or self.psnr is None:
            return f"{_share(self.equal)} of the elements are equal{top1}"
        return f"cosine {self.cosine:.6f}, SNR {_decibels(self.snr)}, PSNR {_decibels(self.psnr)}{top1}"

    @property
    def top1_text(self) -> str:
        """The top-1 agreement as the end of a list, "" if the output has none."""
        if self.top1 is None:
            return ""
        return f", top-1 agrees in {round(self.top1 * self.rows):,} of {count_of(self.rows, 'row')}"

    @property
    def more(self) -> str:
        """The figures that a short report leaves out, on one line; "" for an output without numbers."""
        if self.lowest_cosine is None or self.largest_absolute is None or self.largest_relative is None:
            return ""
        errors = (
            f"largest error {self.largest_absolute:.3g}, relative to its element {self.largest_relative:.3g}"
        )
        lowest = f"lowest cosine of one input {self.lowest_cosine:.6f}"
        return f"{lowest}, {errors}, {_share(self.equal)} of {count_of(self.elements, 'element')} are equal"


def _decibels(value: float) -> str:
    return f"{value:.1f} dB"


def _share(share: float) -> str:
    """Return a share in percent; 100 % only if all are equal."""
    percent = min(100 * share, 99.99) if share < 1 else 100
    return f"{percent:.4g} %"
