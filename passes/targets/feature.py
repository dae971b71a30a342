"""The runtimes that the result is for: the form that their importers read, and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx_migrate.core_options import REACH, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase, Placed

if TYPE_CHECKING:
    from onnx_migrate.standard.targets import Targets

__all__ = ["FEATURE", "TargetOptions"]


@dataclass(frozen=True, kw_only=True)
class TargetOptions(CoreOptions):
    """The options of this feature."""

    # fmt: off
    runtime: str | Sequence[str] | Targets | None = option(
        None, "--for", changes_graph=True, panel=REACH, multiple=True, metavar="RUNTIME==VERSION", shell_complete="runtimes",
        help="Make a model that this release of a runtime can run: onnxruntime==1.14, tensorrt==8.6, opencv==4.8. Without "
        "==VERSION the installed release counts. Repeat it for several at once. You can also name a file of your own, such as "
        "./mychip.toml. See docs/runtimes.md.",
        text="""the runtimes that must run the result, such as "tensorrt==8.6" or "onnxruntime" for the installed release. The
        path of a file of your own ("./mychip.toml") and several of these work too. The opset is the newest that all of them
        support, unless `opset` names another. onnx-migrate also adapts IR version, forms and operators (docs/runtimes.md).""",
    )
    # fmt: on


def build(options: TargetOptions) -> Iterator[Placed]:
    """Yield the passes that make the model fit its runtimes, and check their limits."""
    targets, best_effort = options.targets, options.best_effort
    if not targets:
        return
    from .fit_forms import FitForms
    from .fit_operators import FitOperators
    from .runtime_limits import RuntimeLimits

    yield Phase.FIT, FitOperators(targets=targets, best_effort=best_effort)
    yield Phase.FIT, FitForms(targets=targets, best_effort=best_effort)
    yield Phase.LIMITS, RuntimeLimits(targets=targets, best_effort=best_effort)


FEATURE = Feature(
    "targets",
    build,
    phases=(
        Phase.FIT,
        Phase.LIMITS,
    ),
    options=TargetOptions,
    modules=("fit_forms", "fit_operators", "runtime_limits"),
    advises="onnx_migrate.remedies:with_remedies",
)
