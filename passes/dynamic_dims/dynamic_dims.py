"""Names the dims of inputs that are to be dynamic and re-infers the outputs' dims from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.analysis.shapes import Dims, dims_of, dims_text, drop_value_info, set_dims
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.dim_requests import DynamicAxes, batch_axes, batch_symbols, named_axes, one_name
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .output_dims import symbolic_outputs
from .repair import repair

__all__ = ["DynamicDims"]


@register_pass
@dataclass(frozen=True)
class DynamicDims(Pass):
    """Set `dim_param` on the axes named, forget shapes that were noted for the old sizes, and infer the outputs'.

    What a frozen constant inside the model makes of other sizes shows when it is run at them, which
    verification does. Raises CannotMigrate, code `frozen-output`, where a dim the user named stays a number.
    """

    name: ClassVar[str] = "dynamic_dims"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    ensures: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.DYNAMIC_DIMS})
    dynamic: DynamicAxes = field(default_factory=dict)

    batch: str = ""
    """The symbol that the batch of every input is to be, "" if that is not asked for."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the model with dims named and its constants mended."""
        interface = Interface.of(model.proto)
        named = named_axes(self.dynamic, interface)
        if not self.batch:
            return self._as_one(model, named, log)
        first: CannotMigrate | None = None
        for axes in batch_axes(interface, self.batch):
            result = self._attempt(model, axes | named, log)
            if isinstance(result, Model):
                return result
            first = first or result  # the axes come most likely first
        if first is not None:
            raise first
        log.note(self.name, "open-dims", "the batch is open already")
        return self._run(model, named, log) if named else model

    def _as_one(self, model: Model, wish: Mapping[str, Mapping[int, str]], log: ChangeLog) -> Model:
        """Do it; where it fails for two names of what must be one size, use one of them if the names are made."""
        merged, others = one_name(wish, Interface.of(model.proto))
        if not others:
            return self._run(model, wish, log)
        result = self._attempt(model, wish, log)
        if isinstance(result, Model):
            return result
        with log.trial():
            with_one_name = self._attempt(model, merged, log)
            if not isinstance(with_one_name, Model):
                raise result
            for name, other in others.items():
                if not _is_made(name, wish):
                    raise UsageError(
                        f"{name!r} and {other!r} must be equal: {result}",
                        code="two-names",
                        hint="give both the same name",
                    ) from result
                log.note(self.name, "one-name", f"{name} must equal {other}, and has its name", subject=name)
        return with_one_name

    def _attempt(
        self, model: Model, wish: Mapping[str, Mapping[int, str]], log: ChangeLog
    ) -> Model | CannotMigrate:
        """Run on a copy of the model; return the error where that fails, which leaves no trace in the log."""
        try:
            with log.trial():
                return self._run(model.copy(), wish, log)
        except CannotMigrate as error:
            return error

    def _run(self, model: Model, wish: Mapping[str, Mapping[int, str]], log: ChangeLog) -> Model:
        graph = model.proto.graph
        interface = Interface.of(model.proto)
        inputs = {port.name for port in interface.inputs}
        outputs = {port.name for port in interface.outputs}
        frozen = _frozen_sizes(interface, wish)
        for value in graph.input:
            if value.name in inputs and value.name in wish:
                self._name(value, wish[value.name], "input", log)
        dropped = drop_value_info(graph)
        if dropped:
            log.note(self.name, "value-info", f"dropped {dropped} shapes that were noted for the old sizes")
        batch = batch_symbols({name: wish[name] for name in inputs & wish.keys()})
        batch_axes: dict[str, dict[int, str]] = {}
        symbol_use: dict[str, tuple[int, int]] = {}
        if frozen:
            repaired = repair(model, frozen, batch, log, self.name)
            model, batch_axes, symbol_use = repaired.model, repaired.batch_axes, repaired.symbol_use
            graph = model.proto.graph
        inferred = symbolic_outputs(model.proto, frozen, batch)
        for value in graph.output:
            axes = wish.get(value.name, {}) if value.name in outputs else {}
            found = _with_batch(inferred.get(value.name), batch_axes.get(value.name, {}))
            dims = self._outputs_dims(value, found, axes)
            if dims is not None and dims != dims_of(value):
                before = dims_text(dims_of(value))
                set_dims(value, dims)
                log.note(
                    self.name,
                    "output-dims",
                    f"output {value.name}: {before} → {dims_text(dims)}",
                    subject=value.name,
                )
        for symbol, (through, nodes) in symbol_use.items():
            found_in, found_out = _axes_of(symbol, graph.input), _axes_of(symbol, graph.output)
            log.note(
                self.name,
                "flow",
                f"{symbol}: {found_in} → {found_out or 'no output'}, as it is an axis of what {through} of {nodes} nodes give",
                subject=symbol,
            )
        return model

    def _name(self, value: onnx.ValueInfoProto, axes: Mapping[int, str], what: str, log: ChangeLog) -> None:
        before = dims_of(value)
        if before is None:
            raise CannotMigrate(
                f"{what} {value.name!r} declares no rank, so its axes cannot be named", code="needs-rank"
            )
        for axis, symbol in axes.items():
            value.type.tensor_type.shape.dim[axis].dim_param = symbol
        after = dims_of(value)
        if after != before:
            log.note(
                self.name,
                "input-dims",
                f"{what} {value.name}: {dims_text(before)} → {dims_text(after)}",
                subject=value.name,
            )

    def _outputs_dims(
        self, value: onnx.ValueInfoProto, inferred: Dims | None, wish: Mapping[int, str]
    ) -> Dims | None:
        """Return the dims to declare: what follows from the inputs, the user's name, or a name of the axis's own."""
        declared = dims_of(value)
        if inferred is None:
            # Nothing follows, so nothing but the rank, which cannot depend on a size, is declared.
            if declared is None:
                return None
            inferred = (None,) * len(declared)
        result: list[int | str | None] = []
        for axis, size in enumerate(inferred):
            name = wish.get(axis)
            if name and isinstance(size, int):
                raise CannotMigrate(
                    f"axis {axis} of output {value.name!r} is to be {name!r}, and stays {size} whatever the inputs are",
                    code="frozen-output",
                    hint="a constant inside the model freezes it",
                )
            made = f"{value.name}_dim_{axis}"
            if name and isinstance(size, str) and name not in (size, made):
                raise UsageError(
                    f"axis {axis} of output {value.name!r} is to be {name!r}, and always equals {size!r}",
                    code="two-names",
                    hint="give both the same name, or leave the output's out: it follows from the inputs",
                )
            result.append((name or made) if size is None else size)
        return tuple(result)


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> str:
    return ", ".join(
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    )


def _is_made(symbol: str, wish: Mapping[str, Mapping[int, str]]) -> bool:
    return any(symbol == f"{name}_dim_{axis}" for name, axes in wish.items() for axis in axes)


def _with_batch(dims: Dims | None, batch: Mapping[int, str]) -> Dims | None:
    """Name the batch where onnx's inference of the whole does not know an axis and that of the nodes does."""
    return (
        None
        if dims is None
        else tuple(batch.get(axis) if dim is None else dim for axis, dim in enumerate(dims))
    )


def _frozen_sizes(interface: Interface, wish: Mapping[str, Mapping[int, str]]) -> dict[str, int]:
    """Return the number that each name of an input's dim takes the place of; refuse one name for two numbers."""
    sizes: dict[str, tuple[int, str]] = {}
    for port in interface.inputs:
        for axis, symbol in wish.get(port.name, {}).items():
            size = port.shape[axis] if port.shape is not None else None
            if not isinstance(size, int) or size <= 0:
                continue
            known, where = sizes.setdefault(symbol, (size, f"axis {axis} of {port.name!r}"))
            if known != size:
                raise UsageError(
                    f"{symbol!r} is to be {where}, which is {known}, and axis {axis} of {port.name!r}, which is {size}",
                    code="other-size",
                    hint="give them two names",
                )
    return {symbol: size for symbol, (size, _) in sizes.items()}
