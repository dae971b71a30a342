"""The opsets that a migration asks for, by domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from onnx_migrate.core_options import CoreOptions, Opset
from onnx_migrate.engine.steps.step_modules import load_plugins
from onnx_migrate.errors import UsageError
from onnx_migrate.standard.schema import ML, is_onnx, newest_opset

if TYPE_CHECKING:
    from onnx_migrate.standard.targets import Targets

__all__ = ["PREVIEW", "Newer", "beside", "check_opset", "newer", "target_opsets"]

Newer = Literal["refuse", "keep", "lower"]
"""What to do with a model of a newer opset: raise an error, keep its opset, or lower it later."""

PREVIEW = "ai.onnx.preview"
"""Domains of the standard whose operators come and go without versions."""

_DEFAULT = 17
_KEPT = (1, True)
"""Opset 1 or any newer one: every model keeps its own."""


def target_opsets(options: CoreOptions) -> dict[str, tuple[int, bool]]:
    """Return the opset to reach by domain, and whether a newer one of the model's own is kept."""
    targets = options.targets
    if targets is None:
        default = "keep" if options.keeps_opset else f"{_DEFAULT}+"
        return _read_opsets(default if options.opset is None else options.opset)
    named_opsets = {} if options.opset is None else _read_opsets(options.opset)
    if "ai.onnx" in named_opsets:
        _check_opset(named_opsets["ai.onnx"], targets)
        return named_opsets
    # The runtime supports any opset.
    if targets.opset is None:
        main = (targets.oldest or 1, True)
    else:
        tried = options.lower is False and targets.lower == "nearest"
        main = (min(targets.opset, newest_opset()), tried)
    return {"ai.onnx": main, **named_opsets}


def _check_opset(asked: tuple[int, bool], targets: Targets) -> None:
    """Raise UsageError for an opset beside runtimes that they do not all take."""
    opset, at_least = asked
    newest, oldest = targets.refusing, targets.oldest_taker
    if newest is not None and newest.opset is not None and (at_least or opset > newest.opset):
        opset_text = f"{opset}+" if at_least else str(opset)
        raise UsageError(
            f"opset {opset_text} is not for {newest}, which takes models up to opset {newest.opset}",
            hint=f"give one up to {newest.opset}, or leave --opset out: then it is the newest that suits",
        )
    if oldest is not None and oldest.oldest is not None and opset < oldest.oldest:
        raise UsageError(
            f"opset {opset} is not for {oldest}, which takes models from opset {oldest.oldest} on",
            hint=f"give {oldest.oldest} or more, or leave --opset out: then it is the newest that suits",
        )


def _read_opsets(asked: Opset) -> dict[str, tuple[int, bool]]:
    """Return, for each domain of an option, the opset and whether a newer opset of the model stays."""
    by_domain: Mapping[str, int | str]
    if isinstance(asked, Mapping):
        by_domain = asked
    else:
        # A part without a domain is for ai.onnx.
        parts = [part.strip().rpartition("=") for part in str(asked).split(",")]
        by_domain = {domain or "ai.onnx": number for domain, _, number in parts}
    opsets = {
        "ai.onnx" if is_onnx(domain) else domain: _opset(number, domain)
        for domain, number in by_domain.items()
    }
    if not opsets:
        raise UsageError(
            f"{asked!r} names no opset of a domain that can be migrated",
            hint=f"use 17, or ai.onnx=17,{ML}=3; domains of your own are allowed too",
        )
    return opsets


def _opset(given: int | str, domain: str) -> tuple[int, bool]:
    """Return the opset from a text such as "17", "17+", "keep" or "latest", and whether a newer one stays."""
    if not is_onnx(domain) and domain != ML:
        check_opset(domain)
    if given == "latest":
        return newest_opset(domain), False
    if given == "keep":
        return _KEPT
    number = str(given).removesuffix("+")
    try:
        return int(number), number != str(given)
    except ValueError:
        raise UsageError(
            f"{given!r} is not an opset", hint="give a number, 17+ for 17 or newer, keep, or latest"
        ) from None


def beside(options: CoreOptions) -> dict[str, int]:
    """Return the ai.onnx opset for bodies that import none, if the user asks for one; the default if models keep theirs."""
    opsets = target_opsets(options)
    if "ai.onnx" not in opsets:
        return {}
    return {"beside": _DEFAULT if opsets["ai.onnx"] == _KEPT else opsets["ai.onnx"][0]}


def newer(options: CoreOptions, at_least: bool) -> Newer:
    """Return the policy for models that are newer than the opset that the user asks for."""
    return "keep" if at_least else "lower" if options.lower else "refuse"


def check_opset(domain: str, opset: int | None = None) -> None:
    """Raise UsageError for a custom domain that no plug-in has, and for an opset that it does not have."""
    load_plugins()
    newest = newest_opset(domain)
    if not newest or domain.startswith(PREVIEW):
        raise UsageError(
            f"{domain!r} names no opset of a domain that can be migrated: no steps are known for its operators",
            code="unknown-domain",
            hint="install or import the plug-in that has steps for it (docs/library.md); ai.onnx and ai.onnx.ml need none",
        )
    if opset is not None and not 1 <= opset <= newest:
        raise UsageError(
            f"there is no opset {opset} of {domain}",
            code="no-such-opset",
            hint=f"give one from 1 to {newest}, the newest that the plug-in for it knows",
        )
