"""The features of a migration: each is a folder with its options, passes and parts of the report, and the core names none.

A feature is a folder of `onnx_migrate.passes` whose module `feature` has a `FEATURE`. An installed package has one too, if an
entry point of the group `onnx_migrate.features` leads to its `FEATURE`. This module imports neither onnx nor a pass: options are
declared before any model is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from onnx_migrate.installed import load_installed, not_loadable
from onnx_migrate.safe_open.paths import submodules

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass

__all__ = ["PASSES", "Feature", "Phase", "Placed", "features", "functions_of", "passes_in"]

PASSES = "onnx_migrate.passes"
"""The package that holds the passes and the features of this distribution."""

GROUP = "onnx_migrate.features"
"""Entry points of features of other distributions."""


class Phase(Enum):
    """When a pass runs, in this order. Within a phase, passes of the core run first, then features by their names."""

    PART = "a part of the model is extracted"
    FIX = "inputs and dims get fixed values"
    BRANCHES = "branches with known conditions replace their Ifs"
    RAISE = "ai.onnx is raised to the opset"
    RAISE_DOMAINS = "other domains are raised to theirs"
    FORM = "each Resize gets its form"
    DECLARE = "declared shapes are corrected"
    DIMS = "dims become dynamic"
    LATE_BRANCHES = "branches whose conditions follow from dynamic dims replace their Ifs"
    WIDEN = "the type becomes float32, before operators that lack narrow types"
    LOWER_DOMAINS = "other domains are lowered"
    LOWER = "ai.onnx is lowered to the opset"
    REWRITE = "operators are written as others"
    IR_VERSION = "the model gets an IR version"
    CLEAN = "dead parts are removed"
    USER = "passes of installed packages run"
    UNROLL = "control flow is replaced"
    STATIC = "shapes become fixed"
    FIT = "nodes get the form of the target runtime"
    NARROW = "the type becomes narrower"
    INTEGERS = "integers become int32"
    PORTS = "inputs and outputs become int32"
    LIMITS = "the limits of the target runtime are checked"
    SIMPLIFY = "the model is simplified"


Placed = tuple[Phase, "Pass"]


@dataclass(frozen=True)
class Feature:
    """A feature: its options, and the passes that they ask for.

    `options` is a frozen dataclass whose fields are declared with `onnx_migrate.declared.option`. `build` gets the options of a
    migration and returns passes with their phases, all of them in `phases`. It raises UsageError for options that contradict.
    `modules` are the modules that register passes, relative to the package of the feature. `report` is the module that declares
    what a report says on the feature: its `REPORT` is a frozen dataclass whose fields are declared with
    `onnx_migrate.reported.reported`. "" is a feature without values of its own in the report.

    `completes` and `advises` name functions as "module:function"; they are called if an option of the feature differs from its
    default. `completes` gets the options and a function that loads the model. It returns options to which it adds what follows
    from the model. `advises` gets an error of the passes, the model and the options. It returns the advice that the error shall
    have.
    """

    name: str
    build: Callable[[Any], Iterable[Placed]]
    phases: Collection[Phase]
    options: type | None = None
    modules: tuple[str, ...] = ()
    report: str = ""
    completes: str = ""
    advises: str = ""

    @property
    def package(self) -> str:
        """The package of the folder."""
        return self.build.__module__.rpartition(".")[0]

    def is_asked(self, options: Any) -> bool:
        """Return whether an option of the feature differs from its default."""
        own = vars(self.options).get("__annotations__", {}) if self.options else {}
        return any(map(options.differs, own))

    @property
    def reported(self) -> type | None:
        """The class with the values that the feature adds to a report, None if it adds none.

        Raises UsageError, code `plugin-failed`, if the module of an installed package cannot be imported.
        """
        if not self.report:
            return None
        # An installed feature may be one module without a package.
        name = ".".join(filter(None, (self.package, self.report)))
        try:
            reported: type = importlib.import_module(name).REPORT
        except Exception as error:  # a module may raise anything as it is imported
            raise not_loadable("feature", self.name, name, error) from error
        return reported


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this distribution by name, then the installed ones by name."""
    names = filter(_has_feature, submodules(importlib.import_module(PASSES)))
    own = [importlib.import_module(f"{PASSES}.{name}.feature").FEATURE for name in names]
    return (*sorted(own, key=lambda feature: feature.name), *load_installed(GROUP, "feature").values())


def _has_feature(name: str) -> bool:
    """Return whether a module of the passes is a folder with a feature."""
    spec = find_spec(f"{PASSES}.{name}")
    is_folder = spec is not None and spec.submodule_search_locations is not None
    return is_folder and find_spec(f"{PASSES}.{name}.feature") is not None


def functions_of(kind: Literal["completes", "advises"], options: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a kind of the features that options ask for."""
    for feature in features():
        name = getattr(feature, kind)
        if name and feature.is_asked(options):
            module, _, function = name.partition(":")
            yield getattr(importlib.import_module(module), function)


def passes_in(options: Any, phases: Collection[Phase]) -> list[Placed]:
    """Return the passes of features that these options ask for in some phases, in the order in which they run.

    Raises UsageError for options that contradict.
    """
    placed = [
        item
        for feature in features()
        if not set(phases).isdisjoint(feature.phases)
        for item in feature.build(options)
        if item[0] in phases
    ]
    order = list(Phase)
    return sorted(placed, key=lambda item: order.index(item[0]))
