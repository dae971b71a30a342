"""The pass that makes constants of inputs whose values are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from onnx import numpy_helper

from onnx_migrate.engine.helping_passes import PartPass
from onnx_migrate.engine.obligations import Behind, Obligation, PassResult
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.messages import listed
from onnx_migrate.model.fixed_values import FixedValues, arrays_of
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.prover import Prover

from .fixed_dims import loaded_like

__all__ = ["Fed", "FixValues"]


@dataclass(frozen=True)
class Fed(Obligation):
    """The model before the pass, fed these `values`, computes bit for bit what the model after it does.

    In `with_defaults` the values are defaults of inputs that are still there.
    """

    changes_interface = True
    values: Mapping[str, np.ndarray[Any, Any]]
    with_defaults: Model

    def baseline(self, earlier: Model, after: Model) -> Model:
        """Return the model with defaults."""
        return self.with_defaults

    def feeds_after(self, feeds: Feeds, before: Model, after: Model) -> Feeds:
        """Return the inputs without the fixed ones. Raises UsageError where these have other values."""
        return feeds.of_part(before.proto, self.with_defaults.proto, self.values)

    def prove(self, prover: Prover, before: Model, after: Model, behind: Behind) -> Verdict:
        """Run the model before the pass with the values, and return the verdict with this proof."""
        from onnx_migrate.verify.parts import from_stand_in, prove_parts

        verdict, settings = loaded_like(prover, before, behind), prover.settings
        if settings.feeds is not None:
            settings = replace(settings, input_data=self.feeds_after(settings.feeds, before, after))
        start = prove_parts(prover, before, [self.with_defaults], settings, after, self.values)
        names = listed(map(repr, self.values))
        stand_in = f"constants stood in for the values of {names}"
        doubt = "the original was not run with the values that are fixed"
        return from_stand_in(verdict, start, f"the original with {names} fixed", stand_in, doubt)


@register_pass
@dataclass(frozen=True)
class FixValues(PartPass):
    """Make initializers of inputs, with the values given, and take them out of the list of inputs.

    The nodes are not changed. Raises UsageError as `arrays_of`.
    """

    name: ClassVar[str] = "fix_values"
    title: ClassVar[str] = "fixing values of inputs"
    values: FixedValues = field(default_factory=dict)

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Edit `model` in place."""
        values = arrays_of(self.values, model.proto)
        graph = model.proto.graph
        for port in Interface.of(model.proto).inputs:
            if port.name in values:
                array = values[port.name]
                text = np.array2string(array, threshold=8, separator=", ").replace("\n", "")
                log.note(self.name, "fixed-values", f"input {port} is the constant {text}", subject=port.name)
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
        with_defaults = model.copy()
        # From the end, because each deletion moves the inputs behind it.
        for index in reversed(range(len(graph.input))):
            if graph.input[index].name in values:
                del graph.input[index]
        return PassResult(model, Fed(values, with_defaults))
