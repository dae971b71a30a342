"""The passes for custom domains, which have nothing to do where no plug-in is; tests/test_plugins.py has what they do."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.domains.domain_opsets import CustomOpset, LowerDomains, MigrateDomains
from onnx_migrate.passes.target_opsets import check_opset

from onnx_migrate import default_pipeline, files
from onnx_migrate.errors import UsageError
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model


@pytest.mark.parametrize("domain", ["com.example", "ai.onnx.preview", "ai.onnx.preview.training"])
def test_a_domain_without_steps_has_no_opset(domain: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_opset(domain)
    assert caught.value.code == "unknown-domain"
    with pytest.raises(UsageError):
        default_pipeline(opset={domain: 1})


def test_only_an_opset_that_is_asked_for_brings_the_passes() -> None:
    assert not {"migrate_domains", "lower_domains"} & set(default_pipeline(opset="17,ai.onnx.ml=3").names)


@pytest.mark.parametrize("passing", [MigrateDomains, LowerDomains])
def test_nothing_asked_changes_nothing(passing: type[MigrateDomains | LowerDomains]) -> None:
    source = files.load(model("13 (float[2] x) => (float[2] y) { y = Relu (x) }"))
    assert passing().run(source.copy(), ChangeLog()).proto == source.proto
    assert CustomOpset(2).newer == "refuse"
    assert MigrateDomains().beside == LowerDomains().beside, (
        "a body without ai.onnx gets one opset on both ways"
    )
