"""What can be read from a pasted text beside the error itself: the model's path, and the release of a runtime."""

from __future__ import annotations

import re
import shlex

from onnx_migrate.standard.targets import shipped
from onnx_migrate.standard.targets.releases import key

__all__ = ["model_in", "release_in", "target_facts"]

_LOADED = re.compile(r"load model from (.{1,400}?\.onnx)\b(?: failed|[\"'`:,\s])", re.I)
_MODEL = re.compile(r"[^\s'\"`(){}<>,;=|\[\]]{0,400}[\w)-]\.onnx\b(?![.\w/\\@]|:[:\w])")
_MODULES = {
    "ai",
    "torch",
    "paddle",
    "mindspore",
    "import",
    "tensorflow",
    "mxnet",
    "caffe2",
    "mx",
    "skl",
    "chainer",
}
"""Words before .onnx that are domains and Python modules."""

_SHORT_TRT = re.compile(r"TensorRT[ -]v(\d{4,6})\b")


def model_in(text: str) -> str:
    """Return the path of the model that a text names, quoted for a shell; "" if it names none."""
    loaded = _LOADED.search(text)
    if loaded:
        return shlex.quote(loaded[1].strip("\"'` "))
    for found in _MODEL.finditer(text[:2_000_000]):
        path = re.sub(r"^.*?(?=[A-Za-z]:[\\/])|^.*:(?![\\/])", "", found[0])
        stem = re.split(r"[\\/@.]", path[: -len(".onnx")])[-1]
        if stem not in _MODULES and "://" not in found[0]:
            return shlex.quote(path)
    return ""


def release_in(text: str, runtime: str) -> str:
    """Return the release of a runtime that a text names, as in "TensorRT Version: 8.2.1.8"; "" if it names none."""
    table = shipped(runtime)
    if runtime == "tensorrt" and (found := _SHORT_TRT.search(text)):
        digits = found[1]
        cut = (1, 2) if len(digits) == 4 else (2, 4) if len(digits) == 6 else (1, 3)
        return f"{int(digits[: cut[0]])}.{int(digits[cut[0] : cut[1]])}"
    names = "|".join(
        re.escape(name)
        for name in sorted({table.title, table.name, *table.packages, *table.aliases}, key=len)
    )
    pattern = re.compile(
        rf"(?<![a-z])(?:{names})(?:[ _-]?(?:gpu|python|headless|toolkit2?|lite2?))?[\"'`]?[\s:=*_@(-]{{0,6}}"
        rf"(?:(?:version|release|v)[\s:=*._`-]{{0,6}})?v?(\d{{1,8}}(?:\.\d{{1,5}}){{1,3}})(?![\w-])",
        re.I,
    )
    match = pattern.search(text[:1_000_000])
    return ".".join(match[1].split(".")[:2]) if match else ""


def target_facts(runtime: str, release: str, text: str) -> dict[str, str]:
    """Return what `--for` takes of a runtime: with the release that the text names or `release`, or with VERSION in its place."""
    table = shipped(runtime)
    first, last = table.releases[0], table.releases[-1]
    facts = {"runtime": table.title}
    named = release_in(text, runtime) or release
    if named:
        facts["release"] = named
    if not first.since:
        return {**facts, "target": table.name, "target_named": "yes"}
    if named and key(named) >= key(first.since):
        return {**facts, "target": f"{table.name}=={named}", "target_named": "yes"}
    if table.default:
        return {**facts, "target": table.name, "target_named": "yes"}
    example = table.newest or last.since
    return {**facts, "target": f"{table.name}=={example}", "target_example": f"{table.name}=={example}"}
