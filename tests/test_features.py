"""Features are folders: without one of them, and those that need it, everything else works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import onnx
import pytest

import onnx_migrate
from onnx_migrate.core_options import CoreOptions
from onnx_migrate.declared import declared
from onnx_migrate.engine.features import Feature, Phase, features, passes_in
from onnx_migrate.options import Options
from onnx_migrate.pipelines import default_pipeline
from onnx_migrate.report.data import ReportData
from tests.harness import model as model_of
from tests.support.paths import ROOT
from tests.test_architecture import ALLOWED
from tools.pages.option_types import OPTIONS, VALUES, option_text, value_text

OWN: Mapping[str, Feature] = {feature.name: feature for feature in features()}

WORKS = """
import sys
import onnx_migrate
from onnx_migrate.engine.features import features
gone = set(sys.argv[1].split())
assert gone.isdisjoint(feature.name for feature in features()), gone
path = sys.argv[2]
migration = onnx_migrate.migrate(path)
assert migration.report.after.opset == 17 and migration.report.verified
assert onnx_migrate.convert_version(path, 13).opset_import[0].version == 13
assert onnx_migrate.inspect(path).summary.inputs
"""

COMMANDS = {
    "--help": 0, "MODEL OUT.onnx": 0, "MODEL OUT.onnx --json --html PAGE.html": 0, "MODEL OUT.onnx -v": 0, "MODEL --check": 1,
    "batch MODEL --out-dir FOLDER": 0, "inspect MODEL": 0, "explain Resize": 0, "passes": 0,
    "diff MODEL MODEL": 0, "verify MODEL MODEL": 0,
    "MODEL OUT.onnx --opset 6": 2, "QUANTIZED OUT.onnx --for ncnn": 1,
}  # fmt: skip
"""Commands with the codes that they exit with; the last ones are refused."""


QUANTIZED = """17 (uint8[1,4] x) => (uint8[1,4] y) {
    s = Constant <value = float {0.5}> ()
    z = Constant <value = uint8 {0}> ()
    w = Constant <value = uint8[4,4] {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}> ()
    y = QLinearMatMul (x, s, z, w, s, z, s, z)
}"""
"""A model that ncnn does not support."""


def with_dependants(name: str) -> set[str]:
    """Return a feature and those that import its code, at any distance."""
    gone = {name}
    while True:
        more = {other for other in OWN if not gone.isdisjoint(ALLOWED.get(f"passes/{other}", ()))} - gone
        if not more:
            return gone
        gone |= more


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OWN))
def test_without_a_feature_the_rest_works(name: str, tmp_path: Path) -> None:
    gone = with_dependants(name)
    for folder in ("onnx_migrate", "passes"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for other in gone:
        shutil.rmtree(tmp_path / "passes" / other)
    model = ROOT / "fixtures/conv_relu_upsample_opset9.onnx"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("-c", WORKS, " ".join(gone), str(model))
    assert done.returncode == 0, done.stderr
    shown = ""
    onnx.save(model_of(QUANTIZED), tmp_path / "quantized.onnx")
    paths = {"MODEL": str(model), "QUANTIZED": "quantized.onnx"}
    for command, code in COMMANDS.items():
        words = [paths.get(word, word) for word in command.split()]
        ended = run("-m", "onnx_migrate", *words)
        assert "Traceback" not in ended.stderr, f"{command}: {ended.stderr}"
        assert "Warning" not in ended.stderr, f"{command}: {ended.stderr}"
        # Without a feature, some flags are unknown.
        assert ended.returncode in (code, 2) if "--for" in words else ended.returncode == code, (
            f"{command}: {ended}"
        )
        shown = shown or ended.stdout
    options = OWN[name].options
    flags = (
        [item.flags[0] for item in declared(options) if item.flags and item.name in vars(options)]
        if options
        else []
    )
    rows = [line.strip(" │") for line in shown.splitlines()]
    assert not [flag for flag in flags if any(row.startswith(f"{flag} ") for row in rows)]


@pytest.mark.parametrize("feature", OWN.values(), ids=OWN)
def test_a_feature_declares_the_phases_of_its_passes(feature: Feature) -> None:
    asked = Options(
        opset="ai.onnx.ml=2", runtime="tensorrt==8.6", extract_outputs="y", quantized_form="float", dynamic_batch=True,
        fix_values={"s": 1}, fix_shape={"N": 1}, precision="fp16", int32="io", to_onnx_ops=True, resize_intent=True,
        control_flow=False, unroll_rnn=True, ir_version=8, static=True,
    )  # fmt: skip
    # What no option above asks for, a flag does.
    flags = {
        item.name: True for item in declared(feature.options or CoreOptions) if item.click.get("is_flag")
    }
    placed = list(feature.build(asked)) or list(feature.build(replace(asked, **flags)))

    assert placed
    assert {phase for phase, _ in placed} <= set(feature.phases)


def test_passes_run_in_the_order_of_their_phases() -> None:
    options = Options(dynamic_batch=True, precision="fp16", to_onnx_ops=True)
    order = [phase for phase, _ in passes_in(options, tuple(Phase))]

    assert order == sorted(order, key=list(Phase).index)
    names = default_pipeline(dynamic_batch=True, precision="fp16", to_onnx_ops=True).names
    assert [name for name in names if name in ("dynamic_dims", "standard", "precision", "simplify")] == [
        "dynamic_dims", "standard", "precision", "simplify",
    ]  # fmt: skip


def test_an_installed_package_brings_a_feature(tmp_path: Path) -> None:
    """Its option is a keyword and a flag, its pass runs in its phase, and its value is in all forms of the report."""
    code = (
        "import onnx_migrate\nfrom onnx_migrate import files\n"
        "path = 'fixtures/conv_relu_upsample_opset9.onnx'\n"
        "assert 'shout' not in onnx_migrate.default_pipeline().names\n"
        "report = onnx_migrate.migrate(path, shout=True, verify=False).report\n"
        "assert 'shout' in report.passes and '--shout' in report.command, report.command\n"
        "assert report.volume.decibels == 90 and report.as_dict()['volume'] == {'decibels': 90}\n"
        "assert 'shouting: at 90 dB' in report.text(), report.text()\n"
        "assert 'shouting\\n  [90] decibels' in report.text(verbose=True), report.text(verbose=True)\n"
        "page = report.viewed(files.load(path)).html()\n"
        "assert '<h2>Shouting</h2>' in page and 'This node shouts.' in page\n"
        "assert onnx_migrate.migrate(path, verify=False).report.as_dict()['volume'] is None\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=with_shout(tmp_path), check=True)


BROKEN = "raise KeyError('volume')\n"


@pytest.mark.cold  # features are loaded at the start of a process
@pytest.mark.parametrize(
    ("modules", "place"),
    [
        ({"feature": BROKEN}, "shout:FEATURE"),
        ({"report": BROKEN}, "shout_report"),
    ],
    ids=["feature", "report"],
)
def test_an_installed_feature_that_cannot_be_imported_is_named_in_one_line(
    modules: Mapping[str, str], place: str, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "onnx_migrate",
        "fixtures/conv_relu_upsample_opset9.onnx",
        str(tmp_path / "o.onnx"),
    ]
    ended = subprocess.run(
        command, cwd=ROOT, env=with_shout(tmp_path, **modules), capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert ended.stderr == (
        f"onnx-migrate: plugin-failed: the feature 'shout' ({place}), which is installed, cannot be loaded:"
        " KeyError: 'volume' (fix it, or uninstall the package)\n"
    )
    assert not (tmp_path / "o.onnx").exists()


SHOUT = '''
"""A feature: upper-case doc strings."""
from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.core_options import REWRITING, CoreOptions
from onnx_migrate.declared import option
from onnx_migrate.engine.features import Feature, Phase


@dataclass(frozen=True, kw_only=True)
class ShoutOptions(CoreOptions):
    shout: bool = option(False, "--shout", panel=REWRITING, is_flag=True, help="Shout.", text="shout.")


def build(options):
    if options.shout:
        from onnx_migrate import Pass

        @dataclass(frozen=True)
        class Shout(Pass):
            name: ClassVar[str] = "shout"

            def run(self, model, log):
                from shout_report import Volume

                model.proto.doc_string = "SHOUT"
                log.record_fact("", "", Volume(90))
                return model

        yield Phase.REWRITE, Shout()


FEATURE = Feature("shout", build, phases=(Phase.REWRITE,), options=ShoutOptions, report="shout_report")
'''

SHOUT_REPORT = '''
"""What a report says on it."""
from dataclasses import dataclass

from onnx_migrate.reported import Outline, reported


@dataclass(frozen=True)
class Volume:
    decibels: int


@dataclass(frozen=True, kw_only=True)
class ShoutReport:
    volume: Volume | None = reported(
        Volume, None, "shouting", summary=lambda volume: f"at {volume.decibels} dB",
        details=lambda volume: [f"[{volume.decibels}] decibels"] * 2,
        outline=lambda volume: Outline(frozenset({"/relu/Relu"}), "This node shouts.", "loud"),
    )


REPORT = ShoutReport
'''


def test_the_core_and_each_feature_share_no_option() -> None:
    names = [item.name for item in declared(Options)]

    assert len(names) == len(set(names))
    assert all(f"{name}: " in str(onnx_migrate.migrate.__doc__) for name in names)


def with_shout(folder: Path, feature: str = SHOUT, report: str = SHOUT_REPORT) -> dict[str, str]:
    """Return an environment in which a package of this folder brings the feature of its module `shout`."""
    (folder / "shout.py").write_text(feature)
    info = folder / "shout-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n")
    (folder / "shout_report.py").write_text(report)
    (info / "entry_points.txt").write_text("[onnx_migrate.features]\nshout = shout:FEATURE\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def test_the_stubs_for_type_checkers_are_up_to_date() -> None:
    assert OPTIONS.read_text(encoding="utf-8") == option_text(), "run python -m tools.pages.option_types"
    assert VALUES.read_text(encoding="utf-8") == value_text(), "run python -m tools.pages.option_types"


def test_the_core_and_each_feature_share_no_value_of_the_report() -> None:
    own = [field.name for feature in OWN.values() if feature.reported for field in fields(feature.reported)]

    assert len(own) == len(set(own))
    assert not {*own} & set(vars(ReportData).get("__annotations__", ()))
