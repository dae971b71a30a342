"""The passes that bring nodes to the opsets that a migration asks for, and those opsets by domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnx_migrate.engine.opset_bounds import OpsetBounds
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.errors import UsageError
from onnx_migrate.options import Opset, Options
from onnx_migrate.standard.schema import ML, is_onnx, newest_opset

from .migrate_opset import MigrateOpset, Newer

if TYPE_CHECKING:
    from onnx_migrate.standard.targets import Targets

    from .domains import CustomOpset

__all__ = ["beside", "lowerings", "migrations"]


_DEFAULT = 17
_KEPT = (1, True)
"""Opset 1 or any newer one: every model keeps its own."""


def migrations(options: Options) -> list[Pass]:
    """Return the passes that bring the nodes to the opsets asked for."""
    opsets, custom = _target_opsets(options), _custom(options)
    passes: list[Pass] = []
    if "ai.onnx" in opsets:
        opset, at_least = opsets["ai.onnx"]
        passes.append(
            MigrateOpset(
                opset=opset,
                newer=_newer(options, at_least),
                unlist=not options.keep_initializers_as_inputs,
                keep=frozenset(options.keep_resize_mode),
                bounds=_bounds(options),
                noted=options.keeps_opset and options.ir_version is None,
            )
        )
    if ML in opsets:
        opset, at_least = opsets[ML]
        from .domains import MigrateMl

        passes.append(MigrateMl(opset=opset, newer=_newer(options, at_least), **beside(options)))
    if custom:
        from .domains import MigrateDomains

        passes.append(MigrateDomains(opsets=custom, **beside(options)))
    return passes


def beside(options: Options) -> dict[str, int]:
    """Return the ai.onnx opset for bodies that import none, if the user asks for one; the default if models keep theirs."""
    opsets = _target_opsets(options)
    if "ai.onnx" not in opsets:
        return {}
    return {"beside": _DEFAULT if opsets["ai.onnx"] == _KEPT else opsets["ai.onnx"][0]}


def _custom(options: Options) -> dict[str, CustomOpset]:
    """Return the opsets of custom domains that the user asks for."""
    asked = {
        domain: value for domain, value in _target_opsets(options).items() if domain not in ("ai.onnx", ML)
    }
    if not asked:
        return {}
    from .domains import CustomOpset

    return {
        domain: CustomOpset(opset, _newer(options, at_least)) for domain, (opset, at_least) in asked.items()
    }


def _newer(options: Options, at_least: bool) -> Newer:
    """Return the policy for models that are newer than the opset that the user asks for."""
    return "keep" if at_least else "lower" if options.lower else "refuse"


def lowerings(options: Options) -> list[Pass]:
    """Return the passes that bring nodes of newer opsets down, which must see the symbols of dims."""
    opsets, custom, bounds = _target_opsets(options), _custom(options), _bounds(options)
    passes: list[Pass] = []
    if not options.lower:
        return passes
    ml = opsets.get(ML, (options.targets.ml if options.targets else None, False))
    if ml[0] is not None and not ml[1]:
        from .domains import LowerMl

        passes.append(LowerMl(opset=ml[0], **beside(options)))
    if any(asked.newer == "lower" for asked in custom.values()):
        from .domains import LowerDomains

        passes.append(LowerDomains(opsets=custom, **beside(options)))
    if "ai.onnx" in opsets and (not opsets["ai.onnx"][1] or bounds):
        opset, at_least = opsets["ai.onnx"]
        lower = options.targets.lower if options.targets and options.lower is True else options.lower
        if options.targets and options.best_effort and lower is True:
            lower = "nearest"
        from .lower_opset import LowerOpset

        passes.append(
            LowerOpset(
                opset=newest_opset() if at_least else opset,
                nearest=lower == "nearest",
                keep_ir=options.keep_ir,
                bounds=bounds,
                write_out=options.targets is not None,
            )
        )
    return passes


def _bounds(options: Options) -> OpsetBounds | None:
    """Return the bounds by runtimes that lack newer or older versions of operators, or compute some versions wrongly."""
    targets = options.targets
    if targets is None:
        return None
    faults = any(fault.opset is not None for _, fault in targets.faults)
    if not (targets.bounds_versions or faults):
        return None
    from .targets.runtime_opsets import RuntimeOpsets

    return RuntimeOpsets(targets)


def _target_opsets(options: Options) -> dict[str, tuple[int, bool]]:
    """Return the opset to reach by domain, and whether a newer one of the model's own is kept."""
    targets = options.targets
    if targets is None:
        default = "keep" if options.keeps_opset else f"{_DEFAULT}+"
        return _read_opsets(default if options.opset is None else options.opset)
    given = {} if options.opset is None else _read_opsets(options.opset)
    if "ai.onnx" in given:
        _check_opset(given["ai.onnx"], targets)
        return given
    if targets.opset is None:
        main = (targets.oldest or 1, True)
    else:
        tried = options.lower is False and targets.lower == "nearest"
        main = (min(targets.opset, newest_opset()), tried)
    return {"ai.onnx": main, **given}


def _check_opset(asked: tuple[int, bool], targets: Targets) -> None:
    """Raise UsageError for an opset beside runtimes that they do not all take."""
    opset, at_least = asked
    newest, oldest = targets.refusing, targets.oldest_taker
    if newest is not None and newest.opset is not None and (at_least or opset > newest.opset):
        what = f"{opset}+" if at_least else str(opset)
        raise UsageError(
            f"opset {what} is not for {newest}, which takes models up to opset {newest.opset}",
            hint=f"give one up to {newest.opset}, or leave --opset out: then it is the newest that suits",
        )
    if oldest is not None and oldest.oldest is not None and opset < oldest.oldest:
        raise UsageError(
            f"opset {opset} is not for {oldest}, which takes models from opset {oldest.oldest} on",
            hint=f"give {oldest.oldest} or more, or leave --opset out: then it is the newest that suits",
        )


def _read_opsets(asked: Opset) -> dict[str, tuple[int, bool]]:
    """Return, for each domain of an option, the opset and whether a newer opset of the model stays."""
    given: Mapping[str, int | str]
    if isinstance(asked, Mapping):
        given = asked
    else:
        parts = [part.strip().rpartition("=") for part in str(asked).split(",")]
        given = {domain or "ai.onnx": number for domain, _, number in parts}
    opsets = {
        "ai.onnx" if is_onnx(domain) else domain: _opset(number, domain) for domain, number in given.items()
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
        from .domains import check_opset

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
