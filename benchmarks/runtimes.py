"""What releases of ONNX Runtime load: the newest opset and IR version of a model of one Identity.

    python benchmarks/runtimes.py 1.15.1 1.31.1                    # with wheels for this Python
    python benchmarks/runtimes.py --python python3.8 1.6.0 1.14.1  # with those for another

Each release is installed into a folder of its own. Rows of `onnx_migrate/model/runtimes.py` are made with it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = """
import sys
import onnxruntime

onnxruntime.set_default_logger_severity(4)


def loads(path):
    try:
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


folder = sys.argv[1]
opset = max(n for n in range(7, 40) if loads(f"{folder}/opset{n}.onnx"))
ir_version = max(n for n in range(3, 20) if loads(f"{folder}/ir{n}.onnx"))
print(f"| {onnxruntime.__version__} | {opset} | {ir_version} |", flush=True)
"""


def models(folder: Path) -> None:
    """Write a model for each opset, at IR version 3, and for each IR version, at opset 13."""
    import onnx.parser

    text = "g (float[2] x) => (float[2] y) { y = Identity (x) }"
    names = {f"opset{opset}": (3, opset) for opset in range(7, 40)}
    names |= {f"ir{version}": (version, 13) for version in range(3, 20)}
    for name, (ir_version, opset) in names.items():
        proto = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {text}')
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())


def main() -> None:
    """Install and probe the releases given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    print("| onnxruntime | opset | IR version |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models(folder)
        (folder / "probe.py").write_text(PROBE, encoding="utf-8")
        for release in given.releases:
            target = folder / release
            # Without its dependencies, of which only NumPy is needed; releases before 1.19 take none from 2 on.
            old = tuple(map(int, release.split(".")[:2])) < (1, 19)
            for what in (["--no-deps", f"onnxruntime=={release}"], ["numpy<2" if old else "numpy"]):
                pip = [given.python, "-m", "pip", "install", "--quiet", "--target", str(target), *what]
                subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
            probe = [given.python, "-E", str(folder / "probe.py"), name]
            code = f"import sys; sys.path.insert(0, {str(target)!r}); sys.argv = {probe[2:]!r}; exec(open(sys.argv[0]).read())"
            subprocess.run([given.python, "-E", "-c", code], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
