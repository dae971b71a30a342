"""What onnx-migrate promises of any model or bytes, asked of one case with onnx, NumPy and ONNX Runtime alone."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import onnx
from onnx import numpy_helper

from onnx_migrate import migrate
from onnx_migrate.errors import InvalidModel, MigrateError, UsageError, VerificationFailed
from onnx_migrate.inspection import inspect
from onnx_migrate.json_form import json_of
from onnx_migrate.migration import Migration
from onnx_migrate.report.codes import CODES
from onnx_migrate.report.failure import Failure
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.mutations import messages
from tests.campaigns.fuzz.running import loads, other_numbers
from tests.campaigns.fuzz.wire_oracle import wire_finds

__all__ = ["Outcome", "check"]

_LONGEST = 4096
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")

_OVERFLOW = re.compile("(NaN|infinities) at different positions")
"""How values differ that are beyond what their type holds, which is not defined."""


_OWN_ERROR = re.compile(
    r"^(the original[^:]*: )?(Type|Attribute|Name|Key|Index|Value|Assertion|Unbound|ZeroDivision)\w*Error: .*in the step"
)
"""The reason of a verdict that an exception of the product's own code ended."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: verified, unverified, not compared, or the code of the error; and which promises were broken."""

    result: str
    finds: tuple[str, ...]
    digest: str = ""


def check(case: Case, *, isolated: bool = False) -> Outcome:
    """Migrate a case and ask what is promised of the result, or of the error."""
    finds: list[str] = []
    if case.kind == "bytes" or case.passed_as == "proto":
        finds += _guarded(wire_finds, case.data)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        source = _source(case, Path(folder))
        if source is None:
            return Outcome("not a proto", tuple(finds))
        options = {**case.options, "isolated": isolated, "timeout": 60.0}
        try:
            migration = migrate(source, **options)
        except MigrateError as error:
            undefined = error.code == "numbers-differ" and (
                _has_mask(case.data) or _is_fault_of_optimiser(case, source, options)
            )
            finds += _guarded(_error_finds, error, undefined)
            if case.seed % 3 == 0:
                finds += _guarded(_inspection_finds, case, source, error)
            return Outcome(error.code, tuple(finds), _digest(str(error).replace(folder, "").encode()))
        except Exception as error:
            return Outcome("exception", (*finds, _told(error)))
        data = migration.model.SerializeToString(deterministic=True)
        finds += _guarded(_result_finds, case, migration, Path(folder))
        if case.seed % 3 == 0:
            finds += _guarded(_inspection_finds, case, source, None)
        if case.seed % 7 == 0:
            again = migrate(source, **options).model.SerializeToString(deterministic=True)
            if again != data:
                finds.append("a second run has other bytes")
    verdict = migration.report.verification
    return Outcome(verdict.kind.value if verdict else "not compared", tuple(finds), _digest(data))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _guarded(question: Any, *arguments: Any) -> list[str]:
    """Return what a question finds; an exception of it is one."""
    try:
        return list(question(*arguments))
    except Exception as error:
        return [_told(error)]


def _told(error: Exception) -> str:
    """Return an exception with the innermost frames of onnx_migrate."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "tests/campaigns/fuzz" not in frame.filename
    ]
    places = " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[::-1][:6]
    )
    return f"exception: {type(error).__name__}: {str(error)[:300]} [{places}]"


def _source(case: Case, folder: Path) -> Any:
    if case.passed_as == "bytes":
        return case.data
    if case.passed_as == "path":
        path = folder / "model.onnx"
        path.write_bytes(case.data)
        return str(path)
    try:
        return onnx.ModelProto.FromString(case.data)
    except Exception:
        return None


def _error_finds(error: MigrateError, undefined: bool = False) -> list[str]:
    """Ask for one printable line with a code that `explain` knows, and a report that JSON can hold.

    `undefined` is whether numbers may differ without a fault of the product.
    """
    finds, text = [], str(error)
    if error.code not in CODES:
        finds.append(f"error: the code {error.code!r} is not explained")
    if _UNPRINTABLE.search(text):
        finds.append(f"error: control characters in {text!r}")
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST:
        finds.append(f"error: a message of {len(text)} characters: {text[:200]}")
    if not text.strip() or not error.reason.strip():
        finds.append("error: an empty message")
    if error.code in ("adapter-failed", "pass-failed", "illegal-result", "failed"):
        finds.append(f"error: {error.code}, a fault of the product: {text[:600]}")
    if error.code == "numbers-differ" and not undefined and not _OVERFLOW.search(text):
        finds.append(f"error: the result computes other numbers: {text[:600]}")
    json.dumps(json_of(Failure.of("model", error)))
    return finds


def _is_fault_of_optimiser(case: Case, source: Any, options: dict[str, Any]) -> bool:
    """Return whether the result that was refused is right, and ONNX Runtime's optimisation alone computes other numbers.

    It merges Pad and MaxPool wrongly below opset 11.
    """
    try:
        after = migrate(source, **{**options, "verify": "off"}).model
    except MigrateError:
        return False
    before = onnx.ModelProto.FromString(case.data)
    plain, merged = (other_numbers(Random(case.seed), before, after, optimised=how) for how in (False, True))
    return plain == [] and bool(merged)


def _has_mask(data: bytes) -> bool:
    """Return whether the model uses the mask of a Dropout that drops nothing, which runtimes fill as they like."""
    model = onnx.ModelProto.FromString(data)
    return any(
        isinstance(node, onnx.NodeProto) and node.op_type == "Dropout" and len(node.output) > 1
        for node in messages(model)
    )


def _result_finds(case: Case, migration: Migration, folder: Path) -> list[str]:
    finds = []
    before, after = onnx.ModelProto.FromString(case.data), migration.model
    finds += _target(case, after)
    finds += _interface(before, after, dims="dynamic_batch" not in case.options)
    noted = {note.code for note in migration.report.notes}
    # The inference of a case that never runs may know less of its operators than of those that they are written with.
    runs = loads(before) and other_numbers(Random(case.seed), before, before) is not None
    worse = _checked(after, full=runs)
    if worse and not _checked(before, full=runs) and "tolerated" not in noted:
        finds.append(f"result: onnx.checker refuses it: {worse}")
    verdict = migration.report.verification
    compared = verdict is not None and verdict.kind.value == "verified"
    if verdict is not None and verdict.kind.value == "differs":
        finds.append("result: returned although it differs")
    if verdict is not None and _OWN_ERROR.search(verdict.reason):
        finds.append(f"result: the verification failed by a fault of the product: {verdict.reason[:300]}")
    limit = verdict is not None and verdict.load is not None and verdict.load.limit
    if verdict is not None and not limit and loads(before) and not loads(after):
        finds.append("result: ONNX Runtime loads the original and not the result")
    elif verdict is not None and verdict.compared_with:
        pass  # a pass changed the numbers on purpose, as for a runtime that computes a Resize in its own way
    elif compared or verdict is None:
        random_part = any("random" in note for note in (verdict.notes if verdict else ()))
        if not random_part:
            finds += other_numbers(Random(case.seed), before, after) or []
    _show(migration)
    if case.seed % 5 == 0:
        path = folder / "result.onnx"
        migration.save(path, external=case.seed % 2 == 0)
        if _raw(onnx.load(path)) != _raw(after):
            finds.append("result: the file is another model than the result")
    overridable = (
        "overridable" in noted
    )  # which says that some initializers are listed, and cleanup may leave only these
    if not case.options.get("simplify") and "dynamic_batch" not in case.options and not overridable:
        finds += _again(case, after)
    return finds


def _raw(model: onnx.ModelProto) -> bytes:
    """Return a model with the data of its tensors in raw_data, where external data is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in messages(copy):
        if isinstance(tensor, onnx.TensorProto) and tensor.data_type not in (0, onnx.TensorProto.STRING):
            try:
                raw = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
            except ValueError:
                continue  # in a message of quantization annotations or the like, no tensor of a node
            for name in (
                "float_data",
                "double_data",
                "int32_data",
                "int64_data",
                "uint64_data",
                "data_location",
                "external_data",
            ):
                tensor.ClearField(name)
            tensor.raw_data = raw
    return bytes(copy.SerializeToString(deterministic=True))


def _again(case: Case, after: onnx.ModelProto) -> list[str]:
    options = {**case.options, "verify": "off", "isolated": False}
    try:
        second = migrate(after.SerializeToString(), **options)
    except MigrateError as error:
        return [f"again: the result is refused: {error.code}: {error}"]
    same = second.model.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True)
    # Of the older operators that a node was written with, inference may know a shape that it did not know of the node.
    corrected = any(note.code == "output-dims" for note in second.report.notes)
    if not same and not corrected:
        return ["again: a second migration changes the result"]
    return []


def _target(case: Case, after: onnx.ModelProto) -> list[str]:
    asked = case.options.get("opset")
    if isinstance(asked, str):
        asked = asked.partition(",")[0]
        asked = (
            int(asked) if asked.isdigit() else onnx.defs.onnx_opset_version() if asked == "latest" else None
        )
    found = [item.version for item in after.opset_import if item.domain in ("", "ai.onnx")]
    if (
        asked is not None
        and "runtime" not in case.options
        and "ir_version" not in case.options
        and found not in ([asked], [])
    ):
        return [f"result: at opset {found}, and {asked} was asked for"]
    wanted = case.options.get("ir_version")
    if wanted is not None and after.ir_version != wanted:
        return [f"result: IR version {after.ir_version}, and {wanted} was asked for"]
    return []


def _interface(before: onnx.ModelProto, after: onnx.ModelProto, *, dims: bool) -> list[str]:
    """Ask for the same inputs (but for those that are initializers) and outputs, in order, and their types."""
    stored = {item.name for item in before.graph.initializer} | {
        item.values.name for item in before.graph.sparse_initializer
    }

    def described(values: Any, skip: set[str]) -> list[tuple[str, bytes]]:
        return [(value.name, _type(value.type, dims)) for value in values if value.name not in skip]

    if described(before.graph.input, stored) != described(after.graph.input, stored):
        return ["result: other inputs"]
    names = [value.name for value in before.graph.output], [value.name for value in after.graph.output]
    return [] if names[0] == names[1] else ["result: other outputs"]


def _type(kind: onnx.TypeProto, dims: bool) -> bytes:
    copy = onnx.TypeProto()
    copy.CopyFrom(kind)
    copy.ClearField("denotation")
    if not dims and copy.WhichOneof("value") == "tensor_type":
        copy.tensor_type.ClearField("shape")
    for dim in copy.tensor_type.shape.dim if copy.tensor_type.HasField("shape") else ():
        if dim.dim_value <= 0:
            dim.Clear()  # stands for a length that is not known, and is written so
    return copy.SerializeToString(deterministic=True)


def _checked(model: onnx.ModelProto, *, full: bool) -> str:
    """Return what onnx.checker says, with its inference if `full`; "" where it is content.

    What outputs are declared to be may have been wrong before, and is compared with what they are in `other_numbers`.
    """
    standard = {schema.name for schema in onnx.defs.get_all_schemas()}
    if any(function.domain in ("", "ai.onnx") and function.name in standard for function in model.functions):
        return ""  # it takes calls of such a function for the operator
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.output if full else ():
        for dim in value.type.tensor_type.shape.dim if value.type.tensor_type.HasField("shape") else ():
            dim.Clear()
    try:
        onnx.checker.check_model(copy, full_check=full)
    except Exception as error:  # the native code raises many kinds
        return "" if "existing shape differ in rank" in str(error) else str(error)[:300]
    return ""


def _show(migration: Migration) -> None:
    """Make every form of the report; a form that raises is a find."""
    from rich.console import Console

    from onnx_migrate.report.html.render import model_page
    from onnx_migrate.report.text import print_report

    json.dumps(migration.report.as_dict())
    model_page(migration.report)
    print_report(migration.report, Console(file=io.StringIO(), width=1000), everything=True)


def _inspection_finds(case: Case, source: Any, error: MigrateError | None) -> list[str]:
    """Ask that `inspect` foresees what `migrate` does."""
    from rich.console import Console

    from onnx_migrate.cli.output.inspection_view import print_inspection

    options = case.options
    asked = {
        name: options[name]
        for name in ("opset", "runtime")
        if name in options and "," not in str(options[name])
    }
    try:
        found = inspect(source, **asked)
    except MigrateError as refused:
        told = _error_finds(refused)
        if error is None or (error.code != refused.code and not isinstance(error, UsageError)):
            told.append(
                f"inspect: refused with {refused.code}, and migrate ends with {error.code if error else 'a result'}"
            )
        return told
    json.dumps(json_of(found))
    print_inspection(found, Console(file=io.StringIO(), width=1000), everything=True)
    plain = set(options) <= {"opset", "runtime", "verify", "simplify"} and len(asked) == len(options) - 2
    if not plain or isinstance(error, (VerificationFailed, UsageError)):
        return []
    if error is not None and error.code in ("bad-external-data", "missing-data"):
        return []  # inspect reads no data
    foreseen = found.refusal.code if found.refusal else None
    if foreseen != (error.code if error else None) and not (
        isinstance(error, InvalidModel) and isinstance(found.refusal, InvalidModel)
    ):
        return [f"inspect: foresees {foreseen}, and migrate ends with {error.code if error else 'a result'}"]
    return []
