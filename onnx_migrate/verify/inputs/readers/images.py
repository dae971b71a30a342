"""Reads images as inputs: resized to the model's size, in its channels and layout.

A float input gets (pixel / 255 - mean) / std, and a uint8 input the pixels themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate.errors import UsageError, require_package
from onnx_migrate.messages import count_and_verb, count_of
from onnx_migrate.safe_open import open_regular
from onnx_migrate.verify.inputs.image_form import MODES, ImageForm, fits_images
from onnx_migrate.verify.inputs.input_files import reason_of
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import Values, spaced
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["read_file", "read_folder"]

_EIGHT_BITS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
"""Pillow's modes with 8 bits in each channel; the conversion of others would cut values off."""


def read_file(source: Source) -> Part:
    """Return the feed of one image."""
    return _part(source, [source.path])


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return a feed for each image, or for each batch of images if the model has a fixed one."""
    return _part(source, files)


def _part(source: Source, files: Sequence[Path]) -> Part:
    require_package(
        "PIL",
        f"{source.path}: reading images",
        "pip install 'onnx-migrate[images]'",
        "or give arrays as .npy files",
    )
    form = ImageForm.of(source.input(fits_images), source.images)
    chosen = spaced(files, source.most * form.batch)
    # A file that is no image must be an error before the first run, and not after half of them.
    for path in chosen:
        with _opened(path):
            pass
    repeated = -len(chosen) % form.batch
    filled = [*chosen, *(chosen[index % len(chosen)] for index in range(repeated))]
    starts = range(0, len(filled), form.batch)
    feeds = [_feed(tuple(filled[start : start + form.batch]), form) for start in starts]
    return Part(
        feeds, tuple(_notes(source, form, len(files), len(chosen), repeated)), checked=True, form=form
    )


def _feed(paths: tuple[Path, ...], form: ImageForm) -> Any:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return column(form.input.name, f"{paths[0].name}{more}", partial(_values, paths, form))


def _notes(source: Source, form: ImageForm, files: int, used: int, repeated: int) -> list[str]:
    """Return sentences on how files became arrays."""
    kind = {1: "grey", 3: "RGB", 4: "RGBA"}[form.channels]
    notes = [
        f"{count_and_verb(used, 'image', 'are')} input {form.input.name!r}: {kind}, layout {form.axes}, {form.size}",
        f"each number of input {form.input.name!r} is {form.formula}",
    ]
    notes += notes_on(used, files, "image")
    if repeated:
        notes.append(f"{count_of(repeated, 'image')} came twice, to fill the last batch of {form.batch}")
    return notes


def _values(paths: tuple[Path, ...], form: ImageForm) -> Values:
    """Read a batch of images as the value of an input. Images without a size of the model have that of the first."""
    first = _pixels(paths[0], form, None)
    others = (_pixels(path, form, (first.shape[0], first.shape[1])) for path in paths[1:])
    return {form.input.name: form.array([first, *others])}


def _pixels(path: Path, form: ImageForm, size: tuple[int, int] | None) -> Array:
    """Return the pixels of an image, as an array of height, width and channels. Raises UsageError."""
    from PIL import Image

    with _opened(path) as image:
        converted = image.convert(MODES[form.channels])
        height, width = size or form.size_of(image.height, image.width)
        if (converted.height, converted.width) != (height, width):
            converted = converted.resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(converted, np.uint8).reshape(height, width, form.channels)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Provide an image, whose header was read. Raises UsageError, also if the block cannot read the pixels."""
    from PIL import Image

    try:
        with open(open_regular(path), "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file) as image:
                if image.mode not in _EIGHT_BITS:
                    raise ValueError(
                        f"its pixels are of Pillow's mode {image.mode}, and have more than 8 bits"
                    )
                yield image
    except Exception as error:  # Pillow's decoders raise many kinds
        raise UsageError(
            f"{path}: cannot be read as an image: {reason_of(error)}",
            code="input-data",
            hint="convert it to a PNG or JPEG with 8 bits a channel, or move it out of the folder",
        ) from error
