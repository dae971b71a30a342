from __future__ import annotations

import dataclasses
import inspect

from onnx_migrate import default_pipeline, migrate
from onnx_migrate.engine.pipeline_options import PipelineOptions
from onnx_migrate.isolate import Limits


def test_options_and_their_defaults_are_those_of_the_library_calls() -> None:
    options = PipelineOptions()
    public = {name: item.default for name, item in inspect.signature(default_pipeline).parameters.items()}

    assert {item.name for item in dataclasses.fields(options)} == set(public)
    for name, default in public.items():
        value = getattr(options, name)
        assert value == (Limits() if name == "limits" else frozenset() if name == "keep" else default), name
        if name not in ("limits", "targets"):  # of `migrate` they are timeout and memory_limit, and runtime
            assert inspect.signature(migrate).parameters[name].default == default, name
