"""Records what the command line does with models, so that a refactoring can show that it changed nothing.

    python tests/support/unchanged.py record OUT [--cases up,down,...] [--part 1/2] [MODEL ...]
    python tests/support/unchanged.py compare OLD NEW [--names]

`record` runs every case of `CASES` on every model (all fixtures by default), in forks of one process that has imported
the onnx_migrate of its Python, and writes result.onnx and report.txt of each. Times, versions and paths are left out
of the reports; nothing else is. Record one commit with its own Python and another with its own, then `compare`: byte
for byte, or with --names up to the names of the values and nodes that the migration wrote.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx

ROOT = Path(__file__).resolve().parent.parent.parent

UNPROVED = ["--no-simplify", "--no-verify", "--json"]
CASES = {
    "up": ["--opset=21", *UNPROVED],
    "newest": ["--opset=26", "--keep-initializers-as-inputs", *UNPROVED],
    "to13": ["--opset=13", *UNPROVED],
    "down": ["--opset=9", *UNPROVED],
    "dynamic": ["--dynamic-batch", *UNPROVED],
    "sizes": ["--resize-form=sizes", *UNPROVED],
    "intent": ["--resize-intent", *UNPROVED],
    "opencv": ["--for=opencv==4.8", *UNPROVED],
    "tensorrt": ["--for=tensorrt==8.5", *UNPROVED],
    "fixed": ["--fix-shape=batch=2", *UNPROVED],
    "inspect": ["inspect", "--json"],
    "inspect_text": ["inspect"],
    "inspect_for": ["inspect", "--for=all"],
    "proved": ["--opset=17", "--json"],
    "proved_down": ["--opset=11", "--no-simplify", "--json"],
    "proved_text": ["--opset=21", "--no-simplify", "--verbose"],
    "proved_dynamic": ["--dynamic-batch", "--no-simplify", "--json"],
    "proved_check": ["--opset=17", "--check", "--diff"],
    "proved_intent": ["--opset=17", "--resize-intent", "--json"],
    "proved_half": ["--precision=fp16", "--json"],
    "proved_fixed": ["--fix-shape=batch=2", "--json"],
}
"""Arguments for a model; those that begin with "proved" run it."""
QUICK = [name for name in CASES if not name.startswith("proved")]

FREE = re.compile(
    r'"(?:seconds|version|onnx)": (?:"[^"]*"|[\d.e-]+)|[\d.]+ (?:s|ms|GB|MB)\b|onnxruntime \d[\d.]*', re.ASCII
)
"""Text that differs between two runs of one tool."""


def record(out: Path, models: list[tuple[str, Path]], names: list[str]) -> None:
    """Run the cases of these names on every model, each in a fork."""
    import onnx_migrate  # noqa: F401  (imported before the forks)
    from onnx_migrate.cli import app  # noqa: F401

    for label, model in models:
        for name in names:
            folder = out / label / name
            folder.mkdir(parents=True, exist_ok=True)
            _run(folder, model, CASES[name])


def _run(folder: Path, model: Path, options: list[str]) -> None:
    """Run the command line in a fork and record its exit code, its output and its result."""
    result = folder / "result.onnx"
    result.unlink(missing_ok=True)
    if options[0] == "inspect":
        arguments = ["inspect", str(model), *options[1:]]
    else:
        arguments = [str(model), *([] if "--check" in options else [str(result)]), *options]
    child = os.fork()
    if not child:
        _become_command(folder, arguments)
    _, status = os.waitpid(child, 0)
    printed, complained = (folder / name for name in ("stdout", "stderr"))
    text = f"exit {os.waitstatus_to_exitcode(status)}\n{_without_seconds(printed.read_text())}\n{complained.read_text()}"
    printed.unlink()
    complained.unlink()
    text = FREE.sub("…", text.replace(str(result), "RESULT").replace(str(model), "MODEL"))
    (folder / "report.txt").write_text(text, encoding="utf-8")


def _become_command(folder: Path, arguments: list[str]) -> None:
    """Be `onnx-migrate ARGUMENTS` with its output in files; never returns."""
    code = 70
    try:
        os.chdir(folder)
        for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.environ["COLUMNS"] = "200"
        sys.argv = ["onnx-migrate", *arguments]
        from onnx_migrate.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            os.write(2, end.code.encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _without_seconds(text: str) -> str:
    """Return a JSON report without its times, and other text as it is."""
    try:
        report = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_pruned(report), indent=1, sort_keys=True)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if key != "seconds"}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def compare(old: Path, new: Path, models: dict[str, Path] | None) -> list[str]:
    """Return the cases that differ, each with what differs; up to the names of new values where `models` are given."""
    found = []
    for report in sorted(new.glob("**/report.txt")):
        case = report.parent.relative_to(new)
        was, now = old / case, new / case
        if not (was / "report.txt").exists():
            found.append(f"{case}: not recorded in {old}")
            continue
        source = (
            names_of(models[case.parts[-2] if len(case.parts) == 2 else str(case.parent)]) if models else None
        )
        differs = []
        if (was / "result.onnx").exists() != (now / "result.onnx").exists():
            differs.append("one alone has a result")
        elif (now / "result.onnx").exists():
            before, after = ((folder / "result.onnx").read_bytes() for folder in (was, now))
            if before != after and (source is None or canonical(before, source) != canonical(after, source)):
                differs.append("results")
        before_text, after_text = ((folder / "report.txt").read_text("utf-8") for folder in (was, now))
        if before_text != after_text and (
            source is None or renamed(before_text, source) != renamed(after_text, source)
        ):
            differs.append("reports")
        if differs:
            found.append(f"{case}: {', '.join(differs)}")
    return found


# Equality up to the names of what the migration wrote


def names_of(path: Path) -> frozenset[str]:
    """Return the names of all values and nodes of a model file; none if it cannot be read."""
    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception:
        return frozenset()
    found: set[str] = set()
    stack: list[Any] = [proto.graph, *proto.functions]
    while stack:
        body = stack.pop()
        if isinstance(body, onnx.GraphProto):
            found.update(value.name for value in (*body.input, *body.output, *body.initializer))
        else:
            found.update((*body.input, *body.output))
        for node in body.node:
            found.update((node.name, *node.input, *node.output))
            stack += [
                sub
                for item in node.attribute
                for sub in (*([item.g] if item.HasField("g") else []), *item.graphs)
            ]
    return frozenset(found)


def canonical(content: bytes, source: frozenset[str]) -> Any:
    """Return what a model is but for the order and the names of its nodes, and the values that are not in `source`."""
    proto = onnx.ModelProto.FromString(content)
    bodies = (_body(proto.graph, {}, source), *(_body(item, {}, source) for item in proto.functions))
    head = onnx.ModelProto()
    head.CopyFrom(proto)
    head.ClearField("graph")
    head.ClearField("functions")
    return head.SerializeToString(deterministic=True), bodies


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _body(body: Any, outer: dict[str, str], source: frozenset[str]) -> str:
    """Return a digest of a graph or function, in which a new value is what computes it."""
    values = dict(outer)
    graph = isinstance(body, onnx.GraphProto)
    if graph:
        for tensor in body.initializer:
            if tensor.name not in source:
                plain = onnx.TensorProto()
                plain.CopyFrom(tensor)
                plain.ClearField("name")
                values[tensor.name] = _digest(plain.SerializeToString(deterministic=True))
        for value in body.input:
            values.setdefault(value.name, value.name if value.name in source else f"input {len(values)}")
    nodes: Counter[str] = Counter()
    for node in body.node:
        attributes = []
        for item in sorted(node.attribute, key=lambda item: item.name):
            plain_attribute = onnx.AttributeProto()
            plain_attribute.CopyFrom(item)
            graphs = [
                _body(sub, values, source)
                for sub in (*([item.g] if item.HasField("g") else []), *item.graphs)
            ]
            plain_attribute.ClearField("g")
            plain_attribute.ClearField("graphs")
            plain_attribute.t.ClearField("name") if item.HasField("t") else None
            attributes.append((plain_attribute.SerializeToString(deterministic=True), graphs))
        own = _digest(
            node.op_type, node.domain, [values.get(name, name) for name in node.input], attributes,
            [name in source and name for name in node.output],
        )  # fmt: skip
        nodes[own] += 1
        for index, name in enumerate(node.output):
            values[name] = name if name in source else f"{own}.{index}"
    if not graph:
        return _digest(
            body.name, body.domain, sorted(nodes.items()), [values.get(name, name) for name in body.output]
        )
    kept = sorted(
        (tensor.name, _digest(tensor.SerializeToString(deterministic=True)))
        for tensor in body.initializer if tensor.name in source
    )  # fmt: skip
    known = sorted(
        (values.get(item.name, item.name), item.type.SerializeToString(deterministic=True))
        for item in body.value_info
    )
    ends = [
        (values.get(item.name, item.name), item.type.SerializeToString(deterministic=True))
        for item in body.output
    ]
    starts = [(values[item.name], item.type.SerializeToString(deterministic=True)) for item in body.input]
    return _digest(body.name, body.doc_string, sorted(nodes.items()), kept, known, starts, ends)


def renamed(text: str, source: frozenset[str]) -> str:
    """Return a report with new names numbered in the order in which they appear, without sizes of files and new nodes.

    The nodes stand in the result. Which of them has the name of the node that it replaces is a matter of form.
    """
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        name = found[2]
        if name in source or not _written(name, source):
            return found[0]
        return f"{found[1]}~{numbers.setdefault(name, str(len(numbers)))}{found[3]}"

    text = _without_nodes(text)
    text = re.sub(
        r'"file_bytes": \{[^}]*\}|file [\d,]+ B → [\d,]+ B|"(?:weight_bytes|bytes)": \d+|weights [\d,.]+ \w+(?: → [\d,.]+ \w+)?',
        "",
        text,
    )
    return re.sub(r"""(["'/ (])([^"'\s(),]+)(["' ,)\n])""", number, text)


def _without_nodes(text: str) -> str:
    """Leave the nodes of changes out of a JSON report."""
    start, end = text.find("{\n"), text.rfind("}") + 1
    try:
        report = json.loads(text[start:end].replace("…", '"": 0'))
    except ValueError:
        return text
    for change in report.get("changes", ()):
        for key in ("after", "helper_nodes", "helpers"):
            change.pop(key, None)
    return text[:start] + json.dumps(report, indent=1, sort_keys=True) + text[end:]


def _written(name: str, source: frozenset[str]) -> bool:
    """Tell whether a name is one of the model's followed by an underscore and more."""
    return any(name[:place] in source for place in range(1, len(name)) if name[place] == "_")


def labelled(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Give each model a name for its folder: its own, or with its parent's where it is called model."""
    for path in sorted({path.resolve() for path in paths}):
        yield (path.stem if path.stem != "model" else path.parent.name), path


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "rest", type=Path, nargs="*", help="models to record, or the folder to compare with and models"
    )
    parser.add_argument("--cases", default="quick", help="names of CASES, 'quick' (no model is run) or 'all'")
    parser.add_argument(
        "--part", default="1/1", help="which of so many parts of the models: 2/2 is the second half"
    )
    parser.add_argument("--names", action="store_true", help="equal up to the names of new values")
    given = parser.parse_intermixed_args()
    models = given.rest[given.verb == "compare" :] or [ROOT / "fixtures"]
    found = list(
        labelled(file for path in models for file in (path.rglob("*.onnx") if path.is_dir() else [path]))
    )
    if given.verb == "record":
        part, parts = map(int, given.part.split("/"))
        names = {"quick": QUICK, "all": list(CASES)}.get(given.cases) or given.cases.split(",")
        record(given.folder.resolve(), found[part - 1 :: parts], names)
    else:
        differs = compare(given.folder, given.rest[0], dict(found) if given.names else None)
        print("\n".join(differs) or "equal")
        sys.exit(bool(differs))


if __name__ == "__main__":
    main()
