"""The library call that changes the opset of a model and nothing else, for converters and exporters."""

from __future__ import annotations

import os
from importlib.util import find_spec
from operator import index
from typing import TYPE_CHECKING, Literal, cast, overload

import onnx

from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.validity import IrLimit
from onnx_migrate.errors import CannotMigrate, IllegalModel, UsageError
from onnx_migrate.files import GivenModel as M
from onnx_migrate.model.model import Model
from onnx_migrate.process import stoppable
from onnx_migrate.rewrite.annotations import drop_unused_imports, unused_imports
from onnx_migrate.rewrite.change_log import ChangeLog

if TYPE_CHECKING:
    from onnx_migrate.report import Report

__all__ = ["convert_version"]

Path = str | os.PathLike[str]
IrPolicy = Literal["fit", "keep"]


@overload
def convert_version(
    model: M | Path,
    target_version: int,
    *,
    ir_version: IrPolicy = "fit",
    in_place: bool = False,
    report: Literal[False] = False,
    timeout: float = 600.0,
) -> M: ...


@overload
def convert_version(
    model: M | Path,
    target_version: int,
    *,
    ir_version: IrPolicy = "fit",
    in_place: bool = False,
    report: Literal[True],
    timeout: float = 600.0,
) -> tuple[M, Report]: ...


def convert_version(
    model: files.IrModel | Path,
    target_version: int,
    *,
    ir_version: IrPolicy = "fit",
    in_place: bool = False,
    report: bool = False,
    timeout: float = 600.0,
) -> object:
    """Return `model` at an ai.onnx opset; a drop-in for `onnx.version_converter.convert_version`, up or down.

    A ModelProto or a path gives a ModelProto. An onnx_ir.Model gives an onnx_ir.Model with the same tensor objects. Tensors are
    evaluated only if an adapter needs their values. The argument stays unchanged, unless `in_place` is true: then it becomes
    the result, and is returned.

    Only the opset and the IR version change: `convert_version` neither simplifies nor verifies. On an upgrade, the IR version
    becomes that of the opset's release, if it is lower. On a downgrade, it becomes the oldest version with all features that
    the model needs. "keep" leaves it unchanged. If the last node of a custom domain goes, its import goes too. References to
    external data that was not loaded stay.

    With `report` the call returns a pair: the result, and the `Report` with each changed node and each assumption.

    `timeout` is how many seconds the conversion may take (docs/library.md, "What a timeout covers").

    Raises:
        UsageError: an argument has another type, or there is no such opset.
        LoadError: an adapter needs a value that was not loaded.
        CannotMigrate: a node has no equivalent at the target, or the result needs a newer IR version than "keep" allows.
        MigrateError: the time is over, code `timed-out`; `model` is unchanged.
    """
    opset = _checked(model, target_version, ir_version, in_place=in_place)
    with stoppable(None, timeout):
        source, log = files.load(model, allow_missing_data=True), ChangeLog()
        result = _converted(source, opset, log, keep=ir_version == "keep")
        given_back = _given_back(model, source, result, in_place=in_place)
        return (given_back, _report(source, result, log)) if report else given_back


def _checked(model: object, target_version: object, ir_version: str, *, in_place: bool) -> int:
    """Return the opset. Raises UsageError for invalid arguments."""
    # A bool has `__index__`, and is no opset all the same.
    if isinstance(target_version, bool) or not hasattr(target_version, "__index__"):
        raise UsageError(
            f"target_version is {target_version!r}, which is no opset", hint="give a whole number, as in 17"
        )
    if ir_version not in ("fit", "keep"):
        raise UsageError(f"ir_version={ir_version!r} is not known", hint='it is "fit" or "keep"')
    if in_place and not (isinstance(model, onnx.ModelProto) or files.returned_kind(model)):
        raise UsageError(
            f"a {type(model).__name__} cannot be converted in place",
            hint="give a ModelProto or an onnx_ir.Model, or leave in_place out",
        )
    return index(target_version)


def _converted(source: Model, opset: int, log: ChangeLog, *, keep: bool) -> Model:
    """Return a model at an opset. Raises CannotMigrate, with the advice that was tried."""
    unused = unused_imports(source.proto)
    if keep:
        log.record_fact("", "", IrLimit(source.proto.ir_version, opset, kept=True))
    try:
        result = _pipeline(opset, keep=keep).run(source, log).model
    except CannotMigrate as error:
        if find_spec("onnx_migrate.tried_advice"):  # the wheel of the core has no other passes to try
            from onnx_migrate.options import Options
            from onnx_migrate.tried_advice import tried_advice

            error.advise(tried_advice(error, source, Options(opset=opset, keep_ir=keep)))
        raise
    except IllegalModel as error:
        if not keep:
            raise
        hint = 'ir_version="fit" gives it the one it needs'
        raise CannotMigrate(f"the result: {error.reason}", code="no-such-ir", hint=hint) from error
    drop_unused_imports(result.proto, keep=unused)
    return result


def _pipeline(opset: int, *, keep: bool) -> Pipeline:
    return Pipeline(
        (
            make_pass("migrate_opset", opset=opset, unlist=False, newer="lower", keep_ir=keep),
            make_pass("lower_opset", opset=opset, keep_ir=keep),
        )
    )


def _given_back(model: object, source: Model, result: Model, *, in_place: bool) -> object:
    """Return the result in the form of the argument; with `in_place`, return the argument itself."""
    kind = files.returned_kind(source.source_object)
    if kind:
        converted = kind.given_back(result, model)
        if not in_place:
            return cast("object", converted)
        kind.replace_content(model, converted)
        return model
    whole = files.inline(result)
    if not in_place:
        return whole
    proto = cast("onnx.ModelProto", model)
    # The caller holds the object, so that its content must change.
    proto.CopyFrom(whole)
    return proto


def _report(source: Model, result: Model, log: ChangeLog) -> Report:
    from onnx_migrate.report import (  # callers that ask for no report need none of its modules
        ModelSummary,
        Report,
    )

    return Report(
        model=source.name,
        before=ModelSummary.of(source.proto),
        after=ModelSummary.of(result.proto),
        passes=("migrate_opset", "lower_opset"),
        changes=tuple(log.changes),
        notes=tuple(log.notes),
        same=not log.changes and files.equal(source, result),
    )
