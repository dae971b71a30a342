"""Images as inputs: their size, channels and layout come from the model, and each pixel becomes a number by one formula."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.inputs.user_inputs import Feeds
from tests.support.skips import Elsewhere, import_or_skip
from tests.verify.harness import net

Image = import_or_skip("PIL.Image", Elsewhere.INSTALLED)

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (4, 6, 3), np.uint8)


def feeds(path: Any, graph: str, **options: Any) -> Feeds:
    return GivenInputs(path, **options).bind(net(graph))


def relu(shape: str, kind: str = "float") -> str:
    """Return a model that takes images of a shape."""
    operator = "Relu" if kind.startswith("float") else "Identity"
    return f"({kind}{shape} x) => ({kind}{shape} y) {{ y = {operator}(x) }}"


def saved(folder: Path, *names: str, pixels: Any = PIXELS, mode: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        Image.fromarray(pixels, mode).save(folder / name) if mode is None else Image.new(mode, (6, 4)).save(
            folder / name
        )
    return folder


@pytest.mark.parametrize(
    ("shape", "axes", "layout"),
    [
        ("[1,3,4,6]", (0, 3, 1, 2), None),
        ("[1,4,6,3]", (0, 1, 2, 3), None),
        ("[N,3,4,6]", (0, 3, 1, 2), None),
        ("[N,C,4,6]", (0, 3, 1, 2), "nchw"),
        ("[N,4,6,C]", (0, 1, 2, 3), "nhwc"),
        ("[]", (0, 1, 2, 3), "nhwc"),
    ],
)
def test_a_float_input_gets_pixels_from_0_to_1_in_its_layout(
    tmp_path: Path, shape: str, axes: Any, layout: Any
) -> None:
    found = feeds(saved(tmp_path, "a.png"), relu(shape), layout=layout)
    expected = (PIXELS[None] / 255).astype(np.float32).transpose(axes)
    assert np.array_equal(found.sets[0].inputs["x"], expected)
    assert "each number of input 'x' is pixel / 255" in found.notes


def test_mean_and_std_are_subtracted_and_divided_by_channel(tmp_path: Path) -> None:
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    found = feeds(
        saved(tmp_path, "a.png"), relu("[1,3,4,6]"), mean="0.485,0.456, 0.406", std=(0.229, 0.224, 0.225)
    )
    expected = ((PIXELS / 255 - mean) / std).astype(np.float32).transpose(2, 0, 1)[None]
    assert np.array_equal(found.sets[0].inputs["x"], expected)
    formula = "(pixel / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)"
    assert f"each number of input 'x' is {formula}" in found.notes
    (feed,) = feeds(tmp_path, relu("[1,3,4,6]", "float16"), std="1/255").sets
    assert np.array_equal(feed.inputs["x"], PIXELS.transpose(2, 0, 1)[None].astype(np.float16))


def test_a_uint8_input_gets_the_pixels_unchanged(tmp_path: Path) -> None:
    found = feeds(saved(tmp_path, "a.png"), relu("[1,4,6,3]", "uint8"))
    assert np.array_equal(found.sets[0].inputs["x"], PIXELS[None])
    assert "each number of input 'x' is a pixel from 0 to 255, unchanged" in found.notes
    with pytest.raises(UsageError, match="is uint8 and gets the pixels unchanged, so --mean has no use"):
        feeds(tmp_path, relu("[1,4,6,3]", "uint8"), mean=0.5)


@pytest.mark.parametrize(
    ("shape", "mode", "result"),
    [
        ("[1,1,4,6]", "L", (1, 1, 4, 6)),
        ("[4,6]", "L", (4, 6)),
        ("[1,4,6]", "L", (1, 4, 6)),
        ("[N,4,6]", "L", (1, 4, 6)),
        ("[3,4,6]", "RGB", (3, 4, 6)),
        ("[4,6,3]", "RGB", (4, 6, 3)),
        ("[1,4,4,6]", "RGBA", (1, 4, 4, 6)),
        ("[N,1,H,W]", "L", (1, 1, 4, 6)),
    ],
)
def test_channels_and_rank_come_from_the_input(tmp_path: Path, shape: str, mode: str, result: Any) -> None:
    image = Image.fromarray(PIXELS).convert(mode)
    (feed,) = feeds(saved(tmp_path, "a.png"), relu(shape, "uint8")).sets
    assert feed.inputs["x"].shape == result
    channels = np.asarray(image).reshape(4, 6, -1)
    expected = channels if shape == "[4,6,3]" else channels.transpose(2, 0, 1)
    assert np.array_equal(feed.inputs["x"].reshape(-1), expected.reshape(-1))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_every_mode_with_8_bits_becomes_rgb(tmp_path: Path, mode: str) -> None:
    (feed,) = feeds(saved(tmp_path, "a.tif", mode=mode), relu("[1,3,4,6]")).sets
    assert feed.inputs["x"].shape == (1, 3, 4, 6)


def test_an_image_of_another_size_is_resized_and_the_notes_say_so(tmp_path: Path) -> None:
    found = feeds(saved(tmp_path, "a.png"), relu("[1,3,8,5]", "uint8"))
    resized = Image.fromarray(PIXELS).resize((5, 8), Image.Resampling.BILINEAR)
    assert np.array_equal(found.sets[0].inputs["x"][0].transpose(1, 2, 0), np.asarray(resized))
    assert "1 image is input 'x': RGB, layout nchw, resized to height 8 and width 5 (bilinear)" in found.notes


def test_open_dims_have_the_size_of_each_image(tmp_path: Path) -> None:
    saved(tmp_path, "a.png")
    saved(tmp_path, "b.png", pixels=np.zeros((5, 7, 3), np.uint8))
    given = GivenInputs(tmp_path)
    found = given.bind(net(relu("[N,3,H,W]")))
    assert [feed.inputs["x"].shape for feed in found.sets] == [(1, 3, 4, 6), (1, 3, 5, 7)]
    assert given.has_own_sizes
    rounded = given.round_sizes(4)
    assert [feed.inputs["x"].shape for feed in rounded.sets] == [(1, 3, 4, 8), (1, 3, 4, 8)]
    assert any("each in its own size, rounded to multiples of 4" in note for note in rounded.notes)


def test_images_fill_the_batch_of_the_model(tmp_path: Path) -> None:
    for at in range(3):
        saved(tmp_path, f"{at}.png", pixels=np.full((4, 6, 3), at, np.uint8))
    found = feeds(tmp_path, relu("[2,3,4,6]", "uint8"))
    assert [feed.inputs["x"][:, 0, 0, 0].tolist() for feed in found.sets] == [[0, 1], [2, 0]]
    assert [feed.name for feed in found.sets] == ["0.png and 1 more", "2.png and 1 more"]
    assert "1 image came twice, to fill the last batch of 2" in found.notes


def test_folders_of_classes_are_read_and_other_files_are_counted(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        saved(tmp_path / name, "1.jpg", "2.jpg")
    found = feeds(tmp_path, relu("[1,3,4,6]"), most=2)
    assert [feed.name for feed in found.sets] == ["1.jpg", "1.jpg"]
    assert "2 of 4 images were used, evenly spaced by name; --max-inputs takes more" in found.notes
    (tmp_path / "cat" / "labels.txt").write_text("cat")
    assert "cat has 1 other file, which was not read" in feeds(tmp_path / "cat", relu("[1,3,4,6]")).notes
    assert len(feeds(tmp_path / "cat" / "1.jpg", relu("[1,3,4,6]")).sets) == 1


def test_images_are_for_the_only_input_that_they_fit(tmp_path: Path) -> None:
    graph = "(int64[2] size, float[1,3,4,6] x) => (float[1,3,4,6] y, int64[2] z) { y = Relu(x) z = Identity(size) }"
    saved(tmp_path / "photos", "a.png", "b.png")
    np.save(tmp_path / "size.npy", np.array([4, 6]))
    found = feeds([str(tmp_path / "photos"), f"size={tmp_path / 'size.npy'}"], graph)
    assert len(found.sets) == 2
    assert found.sets[1].inputs["size"].tolist() == [4, 6]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (relu("[1,16,4,6]"), {}, "has no axis of 1, 3 or 4 channels"),
        (relu("[N,C,4,6]"), {}, "give --layout nchw or nhwc"),
        (relu("[1,4,6,3]"), {"layout": "nchw"}, None),
        (relu("[1,5,4,6]"), {"layout": "nchw"}, "it has 5 channels in layout nchw"),
        (relu("[1,3,4,6]", "int64"), {}, "images are for inputs of floats or uint8"),
        (relu("[1,3,4,6]"), {"mean": "123.675,116.28,103.53"}, "write --mean 0.485,0.456,0.406"),
        (relu("[1,3,4,6]"), {"mean": "a"}, "--mean a is no number"),
        (relu("[1,3,4,6]"), {"mean": (0.5, 0.5)}, "--mean has 2 numbers, and input 'x' has 3 channels"),
        (relu("[1,3,4,6]"), {"std": 0}, "--std 0 is not above 0"),
        (relu("[1,3,4,6]"), {"layout": "chw"}, "layout='chw' is not known.*nchw or nhwc"),
    ],
)
def test_wrong_options_and_inputs_say_what_helps(
    tmp_path: Path, graph: str, options: Any, message: str | None
) -> None:
    saved(tmp_path, "a.png")
    if message is None:  # the height of the model is then 6, and its width 3
        assert feeds(tmp_path, graph, **options).sets[0].inputs["x"].shape == (1, 4, 6, 3)
        return
    with pytest.raises(UsageError) as caught:
        feeds(tmp_path, graph, **options)
    assert re.search(message, caught.value.with_hint)


def test_options_for_images_are_misuse_without_images() -> None:
    with pytest.raises(
        UsageError, match="--mean, --std and --layout are for images, and the input data has none"
    ):
        feeds({"x": np.zeros((2, 3), np.float32)}, relu("[2,3]"), mean=0.5)


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    saved(tmp_path, "a.png")
    cut = (tmp_path / "a.png").read_bytes()[:60]
    for name, content, message in (
        ("b.png", b"<html>", r"b.png: cannot be read as an image"),
        ("b.png", cut, r"b.png: cannot be read as an image"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=message) as caught:
            [dict(feed.inputs) for feed in feeds(tmp_path, relu("[1,3,4,6]")).sets]
        assert caught.value.code == "input-data"
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(tmp_path / "b.png")
    with pytest.raises(UsageError, match=r"mode I(;16)?, and have more than 8 bits"):
        feeds(tmp_path, relu("[1,3,4,6]"))


def test_without_pillow_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, "a.png")
    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("onnx_migrate.errors.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="reading images needs PIL, which is not installed") as caught:
        feeds(tmp_path, relu("[1,3,4,6]"))
    assert "pip install 'onnx-migrate[images]'" in caught.value.hint
