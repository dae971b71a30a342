"""Finds the runtime and the release in the words of a user, as in "tensorrt==8.6" and "Jetson with TensorRT 8.2"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets.read import find, known_names, spellings
from onnx_migrate.standard.targets.releases import plain
from onnx_migrate.standard.targets.rows import Bundle, Table

__all__ = ["Meant", "understand"]

_GLUE = re.compile(
    r"(.*?[^\s=@:_-])\s*[\s=@:_-]\s*(?:(?:build|release|version|v)\.?\s*)?(\d[\w.]*)|(.*?[a-z])(\d+(?:\.\d+)+)",
    re.I,
)
"""A name and a release, as in "TensorRT 8.2", "tensorrt=8.2", "win10-19041", "windows10 build 19041" and "trt8.2"."""


@dataclass(frozen=True)
class Meant:
    """The meaning of a request: a table, the product if the user named one, and the release; "" if the user named none."""

    table: Table
    product: Bundle | None
    release: str = ""
    among_words: bool = False
    """Whether the request had other words too. If so, onnx-migrate must not add a guess to its reading of the request."""


def understand(text: str) -> Meant:
    """Return the meaning of a request. Raises UsageError for an unknown runtime, and for a sentence that names several."""
    own = text.strip()
    # The release follows the name as in a pip requirement.
    name, equals_sign, release = (part.strip() for part in own.partition("=="))
    if equals_sign and not release:
        raise UsageError(
            f"{text!r} names no release", code="release-needed", hint="write it as in onnxruntime==1.14"
        )
    if equals_sign:
        return _of(name, release) or _raise(text, name)
    # The whole text is tried before its parts.
    return _of(own) or _glued(own) or _in_sentence(text) or _raise(text, own)


def _of(name: str, release: str = "") -> Meant | None:
    match = find(name)
    return Meant(*match, release) if match else None


def _glued(text: str) -> Meant | None:
    """Return the meaning of a name and a release without == between them."""
    glued = _GLUE.fullmatch(text)
    return _of(glued[1] or glued[3], glued[2] or glued[4]) if glued else None


def _in_sentence(text: str) -> Meant | None:
    """Return the meaning of the runtime among other words; of several names of it, that of the one with a release."""
    words = re.findall(r"[^\s,;()]+", text)
    runtimes: list[Meant] = []
    start = 0
    while start < len(words):
        # The longest span comes first, because a name may contain another one.
        for end in range(len(words), start, -1):
            span = " ".join(words[start:end])
            runtime = _of(span) or _glued(span)
            if runtime is not None:
                runtimes.append(runtime)
                start = end
                break
        else:
            if words[start][0].isdigit():
                return (
                    None  # a number that belongs to nothing that is known: better no answer than half of one
                )
            start += 1
    runtimes = [meant for meant in runtimes if meant.release] or runtimes
    if len({meant.table.name for meant in runtimes}) > 1:
        raise UsageError(
            f"{text!r} names {' and '.join(dict.fromkeys(meant.table.title for meant in runtimes))}",
            code="no-such-runtime",
            hint="give each an option of its own: --for onnxruntime==1.14 --for tensorrt==8.6",
        )
    return Meant(runtimes[-1].table, runtimes[-1].product, runtimes[-1].release, True) if runtimes else None


def _raise(text: str, name: str) -> Meant:
    names = spellings()
    words = [plain(name), *(plain(word) for word in re.findall(r"[a-z]{3,}", name, re.I))]
    close = [
        names[close_name] for word in words for close_name in get_close_matches(word, list(names), 3, 0.75)
    ]
    meant = f"did you mean {' or '.join(list(dict.fromkeys(close))[:3])}?"
    raise UsageError(
        f"{text!r} is not a known runtime",
        code="no-such-runtime",
        hint=meant
        if close
        else f"known are {', '.join(known_names())}; with a release, as in onnxruntime==1.14, or the path of a file of your"
        " own, ./mychip.toml",
    )
