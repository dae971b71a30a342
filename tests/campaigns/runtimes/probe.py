"""Runs inside another Python, with one release of a runtime and NumPy and nothing else: Python 3.6 and on.

`probe.py RUNTIME FOLDER DRIVERS...`, the names of models on stdin: each is loaded and run on what FOLDER/io has for it, and a
line of JSON says that it begins, and how it ended: "right", "wrong" or "fails". The last line says what the release is.

DRIVERS are folders of drivers, as onnx_migrate.verify.evaluators.drivers. Converters crash and hang, so a model in one of
ISOLATED has a process of its own, and may also end in "crashes" or "times out"; in the others such a model ends the
process, which releases.py sees and starts another for the rest.
"""

import contextlib
import importlib.util
import json
import os
import re
import signal
import sys

import numpy as np

OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what native code prints must not come between
ISOLATED = ("tract", "mnn", "ncnn", "rknn", "opencv", "tvm", "onnxruntime-web")
SECONDS = 30
ANY_SHAPE = ("opencv", "ncnn")  # OpenCV has neither scalars nor vectors, and ncnn no batch


def onnxruntime(path, feeds, outputs):
    import onnxruntime as ort

    if hasattr(ort, "set_default_logger_severity"):
        ort.set_default_logger_severity(4)
    try:
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    except TypeError:  # before 1.3
        session = ort.InferenceSession(path)
    return lambda feeds: session.run(None, feeds)


def driver(runtime):
    """Return what loads a model, and what the release says of itself."""
    if runtime == "onnxruntime":  # the product's evaluator is for its own process, and so for newer ones
        import onnxruntime as ort

        return onnxruntime, {"version": ort.__version__}
    paths = [os.path.join(folder, runtime.replace("-", "_") + ".py") for folder in sys.argv[3:]]
    spec = importlib.util.spec_from_file_location(
        "driver", next(path for path in paths if os.path.exists(path))
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load, dict(describe(runtime), version=module.version().split()[-1])


def describe(runtime):
    """Return what tells which ONNX a release can have known."""
    if runtime == "opencv":
        import cv2

        found = re.search(r"Timestamp:\s*(\d+-\d+-\d+)", cv2.getBuildInformation())
        return {"built": found.group(1) if found else ""}
    if runtime != "openvino":
        return {}
    opsets = [0]
    for folder, _, names in os.walk(os.path.dirname(importlib.util.find_spec("openvino").origin)):
        for name in names:
            if "onnx_frontend" in name:
                with open(os.path.join(folder, name), "rb") as file:
                    opsets += map(int, re.findall(rb"OpSet_Onnx_ver(\d+)", file.read()))
    return {"onnx_opset": max(opsets)}


def same(expected, plain, given):
    """Tell whether a result is right: what ONNX Runtime computes with or without optimisation, or between the two."""
    if given.size != expected.size or (given.shape != expected.shape and sys.argv[1] not in ANY_SHAPE):
        return False
    given = given.reshape(expected.shape)
    if expected.dtype.kind == "f":
        if plain.shape == expected.shape:
            between = np.clip(given, np.fmin(expected, plain), np.fmax(expected, plain))
            expected = np.where(np.isnan(given), expected, between).astype(expected.dtype)
        return np.allclose(given.astype(float), expected.astype(float), **tolerance(expected))
    return any(np.array_equal(given.astype(float), value.astype(float)) for value in (expected, plain))


def tolerance(expected):
    if sys.argv[1] != "rknn" and expected.dtype == np.float16:
        return {"rtol": 1e-2, "atol": 2e-3, "equal_nan": True}
    if sys.argv[1] != "rknn":
        return {"rtol": 2e-3, "atol": 2e-4, "equal_nan": True}
    finite = np.abs(expected[np.isfinite(expected)]).astype(float)  # it computes in float16
    return {"rtol": 1e-2, "atol": 1e-2 * (finite.max() if finite.size else 1.0), "equal_nan": True}


def apart(expected, given):
    """Say in a few words how a result differs."""
    if given.size != expected.size or given.shape != expected.shape:
        return f"{given.shape} in place of {expected.shape}"
    if not given.size or given.dtype.kind not in "fiub":
        return ""
    difference = np.abs(given.astype(float) - expected.astype(float))
    return f"{np.max(difference):.2g} of {np.max(np.abs(expected.astype(float))):.2g}"


def judge(load, name):
    folder, stem = os.path.split(name)
    with np.load(os.path.join(sys.argv[2], "io", stem + ".npz")) as file:
        feeds = {key[2:]: file[key] for key in file.files if key.startswith("i:")}
        expected = [file[key] for key in sorted(file.files) if key.startswith("o:")]
        plain = [file[key] for key in sorted(file.files) if key.startswith("p:")]
        names = [str(value) for value in file["names"]]
    try:
        run = load(os.path.join(sys.argv[2], folder, stem + ".onnx"), feeds, names)
        found = [np.asarray(value) for value in run(feeds)]
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        return {"ended": "crashes" if "(exit code -" in why else "fails", "why": why}
    if len(found) == len(expected) and all(map(same, expected, plain or expected, found)):
        return {"ended": "right"}
    return {"ended": "wrong", "why": "; ".join(map(apart, expected, found))}


def isolated(load, name):
    """Judge in a child, which is given up after SECONDS."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a converter that hangs may print without end
        os.write(writer, json.dumps(judge(load, name)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # a converter that it left behind
    if text:
        return json.loads(text.decode())
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    return {"ended": "times out" if late else "crashes"}


def main():
    load, release = driver(sys.argv[1])
    ended = isolated if sys.argv[1] in ISOLATED else judge
    for line in sys.stdin:
        name = line.strip()
        print(json.dumps({"begins": name}), file=OUT, flush=True)
        signal.alarm(0 if ended is isolated else SECONDS)
        print(json.dumps(ended(load, name)), file=OUT, flush=True)
    signal.alarm(0)
    print(json.dumps({"release": release}), file=OUT, flush=True)


main()
