"""Runs inside another Python, with one release of a runtime and NumPy and nothing else: Python 3.6 and on.

`probe.py RUNTIME FOLDER`, the names of models on stdin: each is loaded and run on what FOLDER/io has for it, and a line
of JSON says that it begins, and how it ended: "right", "wrong" or "fails". The last line says what the release is.
"""

import json
import os
import re
import sys

import numpy as np

OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what native code prints must not come between


def onnxruntime():
    import onnxruntime as ort

    if hasattr(ort, "set_default_logger_severity"):
        ort.set_default_logger_severity(4)

    def run(path, feeds):
        try:
            session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        except TypeError:  # before 1.3
            session = ort.InferenceSession(path)
        return session.run(None, feeds)

    return run, {"version": ort.__version__}


def openvino():
    try:
        from openvino import Core
    except ImportError:  # 2023.0
        from openvino.runtime import Core
    import openvino

    core = Core()

    def run(path, feeds):
        model = core.read_model(path)
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = compiled.create_infer_request().infer(feeds)
        return [found[output] for output in compiled.outputs]

    opsets = [0]
    for folder, _, names in os.walk(os.path.dirname(openvino.__file__)):
        for name in names:
            if "onnx_frontend" in name:
                with open(os.path.join(folder, name), "rb") as file:
                    opsets += map(int, re.findall(rb"OpSet_Onnx_ver(\d+)", file.read()))
    return run, {"onnx_opset": max(opsets)}


def opencv():
    import cv2

    def run(path, feeds):
        net = cv2.dnn.readNetFromONNX(path)
        for name, value in feeds.items():
            net.setInput(value, name)
        return net.forward(net.getUnconnectedOutLayersNames())

    found = re.search(r"Timestamp:\s*(\d+-\d+-\d+)", cv2.getBuildInformation())
    return run, {"version": cv2.__version__, "built": found.group(1) if found else ""}


def same(expected, given):
    """Tell whether a result is right. OpenCV has no scalars and no vectors, so its shapes are not looked at."""
    given = np.asarray(given)
    if given.size != expected.size or (given.shape != expected.shape and sys.argv[1] != "opencv"):
        return False
    given = given.reshape(expected.shape)
    if expected.dtype.kind == "f":
        return np.allclose(given.astype(float), expected.astype(float), rtol=2e-3, atol=2e-4, equal_nan=True)
    return np.array_equal(given.astype(float), expected.astype(float))


def judge(run, name):
    folder, stem = os.path.split(name)
    with np.load(os.path.join(sys.argv[2], "io", stem + ".npz")) as file:
        feeds = {key[2:]: file[key] for key in file.files if key.startswith("i:")}
        expected = [file[key] for key in sorted(file.files) if key.startswith("o:")]
    try:
        found = list(run(os.path.join(sys.argv[2], folder, stem + ".onnx"), feeds))
    except Exception as error:
        return {"ended": "fails", "why": " ".join(str(error).split())[:300]}
    if sys.argv[1] == "opencv":  # gives them in an order of its own
        right = all(any(same(value, other) for other in found) for value in expected)
    else:
        right = len(found) == len(expected) and all(map(same, expected, found))
    return {"ended": "right" if right else "wrong"}


def main():
    run, release = {"onnxruntime": onnxruntime, "openvino": openvino, "opencv": opencv}[sys.argv[1]]()
    for line in sys.stdin:
        name = line.strip()
        print(json.dumps({"begins": name}), file=OUT, flush=True)
        print(json.dumps(judge(run, name)), file=OUT, flush=True)
    print(json.dumps({"release": release}), file=OUT, flush=True)


main()
