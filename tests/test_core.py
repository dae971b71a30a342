"""The core knows no feature: whom it imports, and how much a conversion loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onnx_migrate.engine.pass_infra import Pass
from tests.support.paths import ROOT
from tests.test_architecture import files_imported

FEATURES = {
    "batch": ("batching", "cli/output/batch_progress", "cli/output/batch_summary", "cli/output/running_models"),
    "ci outputs": ("cli/output/ci", "cli/output/depfile", "cli/output/preview"),
    "diff": (
        "difference", "report/diff", "report/diff_nodes", "report/diff_values", "report/diff_marks", "report/diff_view",
    ),
    "explain": ("explanation", "standard/error_texts", "cli/output/explanation_view"),
    "html": ("report/html", "report/result_view", "cli/output/html"),
    "inspect": ("inspection", "cli/output/inspection_view"),
    "other models": ("files/kinds/onnx_ir_models", "files/kinds/exported_programs", "files/kinds/graphsurgeon_graphs"),
    "other runtimes": (
        "verify/other_runtimes", "verify/evaluators/drivers", "verify/evaluators/driver_facts", "verify/evaluators/foreign",
        "verification/in_runtimes",
    ),
    "reduce": ("reduction",),
    "remote": ("files/places/urls", "files/places/url_download", "files/places/url_upload"),
    "runtime quirks": (
        "verify/evaluators/quirks/integer_sums", "verify/evaluators/quirks/kernel_meanings",
        "verify/evaluators/quirks/quantized_meanings", "verify/evaluators/quirks/transforms",
    ),
    "two models": ("comparison", "verify/divergence", "cli/output/values_table"),
    # Each folder of passes with a `feature.py` is one too; these have files elsewhere.
    "domains": ("passes/steps/contrib",),
    "dynamic_dims": ("passes/input_dims",),
    "fixed": ("model/fixed_values",),
    "parts": ("rewrite/part", "splitting", "verify/parts"),
    "precision": (
        "verify/precision", "verdicts/ranges", "verdicts/precision_change", "verify/evaluators/strict",
        "verify/evaluators/switched",
    ),
    "simplify": ("passes/onnxsim_child",),
    "targets": ("compatibility", "remedies", "facts/node_form"),
}  # fmt: skip
"""The files and folders of each feature. Everything else is core.

What runs in every migration is core, and so is what several features build on:

- `standard/targets`, the tables of the runtimes: the opset, the IR version and the report of a migration follow from them.
- `model/dims` and `verify/dynamic`: a pass of the user's may make dims dynamic too, and the proof runs every such result at
  other sizes.
- `model/mending`, which repairs what ONNX Runtime loads, before the first pass of a migration and of a conversion.
- The values of verdicts, and the estimate of what a run costs, without which the proof runs nothing.
"""

ROOTS = ("__init__", "passes/default_pipeline", "passes/opset_passes", "cli/commands", "session")
"""The places that may know all features: the names of the library and of a session, the order of the passes, the commands."""

CONVERSION_LINES, MIGRATION_LINES = 32_000, 46_800
"""How many lines the two calls load at most. If a change lowers one, lower its number here."""

KNOWN = {
    "cli/options/arguments -> verify/other_runtimes/places": "the command line refuses a wrong --run-in before it loads anything",
    "cli/options/model_options -> explanation/__init__": "the shell completes the names that explain takes",
    "cli/options/model_options -> verify/evaluators/driver_facts": "the shell completes the names that --run-in takes",
    "migration -> verification/in_runtimes": "run_in is an option of the core, since every migration can be proved elsewhere",
    "migration_result -> report/diff": "Migration.differences is a method of the library",
    "report/data -> report/result_view": "a report carries what a page draws to the process that writes it",
    "report/report -> report/html/render": "Report.html is a method of the library",
    "report/request -> facts/node_form": "the report says whether the runtimes' tables measured the forms of the result's nodes",
    "verify/prover -> verify/precision/rounded_runs": "a model of float16 is compared with every value rounded, too",
}
"""The imports from the core to features, with the reason for each. The list may only become shorter."""


def feature_of(path: tuple[str, ...]) -> str:
    """Return the feature that a file belongs to, "" for the core."""
    text = "/".join(path)
    if path[0] == "passes" and (ROOT / "passes" / path[1] / "feature.py").is_file():
        return path[1]
    owners = [
        name
        for name, parts in FEATURES.items()
        for part in parts
        if text == part or text.startswith(f"{part}/")
    ]
    return owners[0] if owners else ""


def core_imports() -> list[str]:
    """Return the imports from the core to features, each as "file -> file"."""
    found = set()
    for own, other in files_imported():
        text = "/".join(own)
        if feature_of(other) and not feature_of(own) and not text.startswith(ROOTS):
            found.add(f"{text} -> {'/'.join(other)}")
    return sorted(found)


def loaded_lines(call: str) -> int:
    """Return the lines but comments that a call loads in a process of its own; the call may use `path`, a model's.

    The declarations of features do not count, so that a new feature needs no larger number.
    """
    code = (
        "import sys, onnx_migrate\n"
        "path = 'fixtures/conv_relu_upsample_opset9.onnx'\n"
        f"{call}\n"
        "own = [name for name in sys.modules if name.startswith('onnx_migrate') and not name.endswith(('.feature', '.report'))]\n"
        "files = [sys.modules[name].__file__ for name in own]\n"
        "lines = [line.strip() for file in files if file for line in open(file, encoding='utf-8')]\n"
        "print(sum(not line.startswith('#') for line in lines))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_the_core_imports_no_further_feature() -> None:
    imports = set(core_imports())

    assert sorted(imports - KNOWN.keys()) == [], (
        "let the feature register itself, or list it as one of `ROOTS`"
    )
    assert sorted(KNOWN.keys() - imports) == [], "these are gone: remove them from the list"


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("onnx_migrate.convert_version(path, 17)", CONVERSION_LINES),
        ("onnx_migrate.migrate(path)", MIGRATION_LINES),
    ],
    ids=["convert_version", "migrate"],
)
def test_a_call_loads_no_more_lines(call: str, most: int) -> None:
    assert loaded_lines(call) <= most


def test_a_pass_has_few_members() -> None:
    """Passes that do more are of other kinds: with an obligation, for runtimes, or to help when a proof fails."""
    members = {name for name in (*vars(Pass), *Pass.__annotations__) if not name.startswith("_")}

    assert members == {"name", "title", "requires", "ensures", "optional", "run", "is_wanted"}
