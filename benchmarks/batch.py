"""A folder of small models by `onnx-migrate batch`, by a shell loop over the single command, and over onnxsim.

    python benchmarks/batch.py            # 200 models, two at a time
    python benchmarks/batch.py --memory   # 1,000 models: memory of the workers on the way

The models are the smaller fixtures, over and over under other names.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXTURES = ("unet_opset9", "classifier_opset11", "espcn_opset9", "crnn_opset9", "resize_bilinear_opset9")
COMMAND = f"{sys.executable} -m onnx_migrate"
SIMPLIFY = (
    f'{sys.executable} -c "import sys, onnx, onnxsim; from onnx.version_converter import convert_version as c; '
    'onnx.save(onnxsim.simplify(c(onnx.load(sys.argv[1]), 17))[0], sys.argv[2])"'
)


def models(folder: Path, count: int) -> Path:
    """Copy fixtures to a folder."""
    source = folder / "in"
    source.mkdir()
    for index in range(count):
        name = FIXTURES[index % len(FIXTURES)]
        shutil.copy(ROOT / "fixtures" / f"{name}.onnx", source / f"{index:04}_{name}.onnx")
    return source


def timed(command: str, folder: Path) -> float:
    """Return the seconds that a shell command takes."""
    start = time.perf_counter()
    subprocess.run(["sh", "-c", command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def loop(command: str, out: str) -> str:
    """Return a shell loop over the models; `{}` is for more arguments."""
    return f"mkdir {out}; for model in in/*.onnx; do {command} $model {out}/$(basename $model){{}}; done"


def speed(count: int, jobs: int) -> None:
    """Compare the three ways."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models(folder, count)
        rows = {
            f"onnx-migrate batch --jobs {jobs}": f"{COMMAND} batch in --out-dir batch --jobs {jobs} -q",
            "shell loop over onnx-migrate": loop(COMMAND, "loop").replace("{}", " -q"),
            "shell loop over onnx's converter and onnxsim, unverified": loop(SIMPLIFY, "sim").replace(
                "{}", ""
            ),
        }
        print(f"| {count} small models | seconds | models a second |\n|---|---|---|")
        for label, command in rows.items():
            seconds = timed(command, folder)
            print(f"| {label} | {seconds:.1f} | {count / seconds:.2f} |", flush=True)
        same = all(
            path.read_bytes() == (folder / "loop" / path.name).read_bytes()
            for path in (folder / "batch").glob("*.onnx")
        )
        print(f"\nresults of batch and loop are {'the same, byte for byte' if same else 'NOT THE SAME'}")


def memory(count: int, jobs: int) -> None:
    """Sample the resident memory of the command and its workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models(folder, count)
        child = subprocess.Popen(
            [*COMMAND.split(), "batch", "in", "--out-dir", "out", "--jobs", str(jobs), "-q"], cwd=folder
        )
        samples: list[tuple[int, int, int]] = []

        def sample() -> None:
            while child.poll() is None:
                done = len(list((folder / "out").glob("*.onnx"))) if (folder / "out").exists() else 0
                workers = [resident(pid) for pid in children(child.pid)]
                samples.append((done, resident(child.pid), max(workers, default=0)))
                time.sleep(0.5)

        thread = threading.Thread(target=sample)
        thread.start()
        child.wait()
        thread.join()
        print("| models done | parent, MB | largest worker, MB |\n|---|---|---|")
        for mark in range(0, count + 1, count // 10):
            near = min(samples, key=lambda item: abs(item[0] - mark))
            print(f"| {near[0]} | {near[1] / 1e6:.0f} | {near[2] / 1e6:.0f} |")


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(text) for text in task.read_text().split()]
    return found


def resident(pid: int) -> int:
    """Return a process's memory in bytes, 0 when it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    (memory if given.memory else speed)(given.models or (1000 if given.memory else 200), given.jobs)
