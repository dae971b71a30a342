"""Collects the facts about a recognised error: from its text, from the text around it, and from tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from onnx_migrate.explanation.operator_facts import (
    attribute_facts,
    contributed_facts,
    operator_facts,
    version_facts,
)
from onnx_migrate.standard.error_texts import ErrorText
from onnx_migrate.standard.ir_versions import minimal_ir_version, newest_opset_of_ir
from onnx_migrate.standard.schema import is_onnx, newest_opset
from onnx_migrate.standard.targets import shipped
from onnx_migrate.standard.targets.releases import key

__all__ = ["Facts", "facts_of", "model_in", "release_in", "target_facts"]

Facts = Mapping[str, str]
"""Values of placeholders by name; a condition holds if its name is there."""

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

_NUMBERS = ("opset", "max_opset", "ir", "max_ir", "version")


def facts_of(entry: ErrorText, captured: Facts, text: str, model: str = "") -> Facts:
    """Return the facts of one error: `captured` from the `text`, and `model` if its path is known."""
    facts: dict[str, str] = {
        **entry.facts,
        **{name: value for name, value in captured.items() if value},
    }
    named = model or model_in(text)
    facts["model"] = named or "model.onnx"
    if named:
        facts["model_named"] = "yes"
    if facts.get("axis") == "0":
        facts["batch_axis"] = "yes"
    if "ops" in facts:
        facts |= _several(facts)
    numbers = {name: int(facts[name]) for name in _NUMBERS if facts.get(name, "").lstrip("-").isdigit()}
    if "op" in facts:
        opset = numbers.get("opset")
        # The opset of another domain says nothing about an operator of ai.onnx.
        facts |= operator_facts(facts["op"], opset if is_onnx(facts.get("domain", "")) else None)
        facts |= contributed_facts(facts["op"])
        since = facts.get("op_since", "")
        if since and "op_known" in facts:
            facts["op_ort"] = _first_ort("opset", int(since))
            facts |= version_facts(facts["op"], numbers.get("version"))
            if int(since) > 7:
                facts["opset_before_op"] = str(int(since) - 1)
        if "attribute" in facts:
            facts |= attribute_facts(facts["op"], facts["attribute"], numbers.get("opset"))
    facts |= _of_numbers(numbers, facts.get("domain", ""))
    if entry.runtime:
        facts |= target_facts(entry.runtime, facts.get("release", ""), text)
    # An empty fact counts as unknown.
    return {name: value for name, value in facts.items() if value}


def _several(facts: Facts) -> dict[str, str]:
    """Return the names of a list of operators, and the first of them."""
    names = [
        re.sub(r"-\d+$", "", name.strip())
        .removeprefix("ONNX::")
        .removeprefix("ai.onnx.")
        .removeprefix("ai.onnx::")
        for name in facts["ops"].replace(";", ",").replace(" ", ",").split(",")
    ]
    names = list(dict.fromkeys(name for name in names if name))
    several = {"several": "yes"} if len(names) > 1 else {}
    return {"ops": ", ".join(names), "op": facts.get("op", names[0] if names else ""), **several}


def _of_numbers(numbers: Mapping[str, int], domain: str) -> dict[str, str]:
    ml = domain == "ai.onnx.ml"
    number_facts = {"standard_domain" if is_onnx(domain) else "ml_domain" if ml else "other_domain": "yes"}
    if "max_ir" in numbers:
        number_facts["max_ir_opset"] = str(newest_opset_of_ir(numbers["max_ir"]))
        number_facts["max_ir_ort"] = _last_ort("ir_version", numbers["max_ir"])
    if "ir" in numbers:
        number_facts["ir_ort"] = _first_ort("ir_version", numbers["ir"])
    if "max_opset" in numbers and not ml:
        number_facts["max_opset_ort"] = _last_ort("opset", numbers["max_opset"])
        number_facts["max_opset_ir"] = str(minimal_ir_version(numbers["max_opset"]))
    if "opset" in numbers and not ml:
        number_facts["opset_ort"] = _first_ort("opset", numbers["opset"])
        if numbers["opset"] > 11:
            number_facts["opset_above_11"] = "yes"
        if numbers["opset"] > newest_opset():
            number_facts["opset_unreleased"] = "yes"
        if "max_opset" in numbers and numbers["opset"] < numbers["max_opset"]:
            number_facts["opset_too_old"] = "yes"
    return number_facts


def _first_ort(what: str, number: int) -> str:
    """Return the first release of ONNX Runtime that supports an opset or IR version, "" if none is known."""
    rows = shipped("onnxruntime").releases
    return next((row.since for row in rows if (getattr(row, what) or 0) >= number), "")


def _last_ort(what: str, number: int) -> str:
    """Return the first release of ONNX Runtime whose newest opset or IR version this is, "" if there is none."""
    return next((row.since for row in shipped("onnxruntime").releases if getattr(row, what) == number), "")


def model_in(text: str) -> str:
    """Return the path of the model that a text names, quoted for a shell; "" if it names none."""
    loaded = _LOADED.search(text)
    if loaded:
        return shlex.quote(loaded[1].strip("\"'` "))
    for path_in_text in _MODEL.finditer(text[:2_000_000]):
        path = re.sub(r"^.*?(?=[A-Za-z]:[\\/])|^.*:(?![\\/])", "", path_in_text[0])
        stem = re.split(r"[\\/@.]", path[: -len(".onnx")])[-1]
        # Names such as torch.onnx are Python modules.
        if stem not in _MODULES and "://" not in path_in_text[0]:
            return shlex.quote(path)
    return ""


def release_in(text: str, runtime: str) -> str:
    """Return the release of a runtime that a text names, as in "TensorRT Version: 8.2.1.8"; "" if it names none."""
    table = shipped(runtime)
    if runtime == "tensorrt" and (short_release := _SHORT_TRT.search(text)):
        digits = short_release[1]
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
    """Return the value of `--for` for a runtime: with the release in the text or `release`, else with VERSION."""
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
