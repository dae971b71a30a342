"""How many wrong results the verifier catches, and whether it ever cries wolf.

Every model is held against mutants of itself, for which bit-identity is claimed as a lift claims it ("as
is"), or nothing is, as by `onnx-migrate verify` ("no claim"), and of what onnxsim makes of it, where the
rounding of folded BatchNormalizations is there to hide behind and the claim is made for the model before it,
which is right. A mutant has one change of one kind:

* one weight: one random element of a Conv, Gemm or MatMul weight moved by three standard deviations of its
tensor;
* one table row: one filter of a Conv, or one row of a Gemm or MatMul matrix or of a Gather table, negated;
* the other kinds say what they do. Attributes are moved as stated in `KINDS`.

Left out by construction: Relu changes behind operators that give no negative number, coordinate modes of
nearest Resizes by
whole factors, one-sided swaps of inputs of commutative operators, and the light_* models as they are: all
their weights are one constant, so their softmax is uniform whatever stands before it. They get seeded random
weights
here; as they are they serve as cases against false alarms.

    python benchmarks/verifier_strength.py /work/models/x [--per-kind 2] [--few-runs] [--json out.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from recent_nets import recent_nets

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from onnx_migrate import files
from onnx_migrate.model.model import Segment
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify import Settings
from onnx_migrate.verify.equivalence import feed_search
from onnx_migrate.verify.prover import Prover

Mutation = Callable[[], None]
SEEN = 1e-6
"""The change of an output, over its scale, from which on a user can tell the mutant from another rounding."""
LIGHT = ("squeezenet", "shufflenet", "inception_v2", "resnet50", "densenet121", "inception_v1")


def randomised(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Replace the constant weights of a light_* model by random ones of the usual scales."""
    rng = np.random.default_rng(seed)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    used = {name: (node, index) for node in model.graph.node for index, name in enumerate(node.input)}
    for node in model.graph.node:
        if node.op_type == "Unsqueeze":
            used[node.input[0]] = used[node.output[0]]
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(int(n) for n in shapes[node.input[0]])
        user, index = used[node.output[0]]
        if user.op_type in ("Conv", "Gemm") and index == 1:
            values = rng.standard_normal(shape) * np.sqrt(2 / max(1, np.prod(shape[1:])))
        elif (user.op_type == "BatchNormalization" and index in (1, 4)) or user.op_type == "Mul":
            values = rng.uniform(0.5, 1.5, shape)
        else:
            values = rng.standard_normal(shape) * 0.1
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    reads = {name for node in kept for name in node.input}
    held = [t for t in model.graph.initializer if t.name in reads]
    inputs = [v for v in model.graph.input if v.name not in shapes]
    for field, values in ((model.graph.initializer, held), (model.graph.input, inputs)):
        copies = [type(v).FromString(v.SerializeToString()) for v in values]
        del field[:]
        field.extend(copies)
    model.ir_version = max(model.ir_version, 4)
    tame(model)
    return model


def tame(model: onnx.ModelProto) -> None:
    """Scale the last weights so that the logits spread by 1: a saturated Softmax shows nothing."""
    import onnxruntime

    makers = {name: node for node in model.graph.node for name in node.output}
    softmax = next((node for node in model.graph.node if node.op_type == "Softmax"), None)
    if softmax is None:
        return
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.add().name = softmax.input[0]
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    spread = session.run([softmax.input[0]], {session.get_inputs()[0].name: feed})[0].std()
    last = makers[softmax.input[0]]
    while last.op_type not in ("Gemm", "Conv"):
        last = makers[last.input[0]]
    for tensor in model.graph.initializer:
        if tensor.name in last.input[1:]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) / spread, tensor.name))


def small_nets() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield nets for what the real ones lack: a table, LeakyRelu, linear Resize, LayerNormalization."""
    rng = np.random.default_rng(5)

    def tensor(name: str, *shape: int) -> str:
        values = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        return (
            f"float[{','.join(map(str, shape))}] {name} = {{{','.join(map(repr, values.ravel().tolist()))}}}"
        )

    for mode, coordinates in (("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "asymmetric")):
        yield (
            f"upsample-{mode}-{coordinates}",
            onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
            g (float[1,3,16,20] x) => (float[1,4,36,45] y) <{tensor("w", 4, 3, 3, 3)}, {tensor("b", 4)},
            {tensor("w2", 4, 4, 3, 3)}, float[4] s = {{1.0, 1.0, 2.25, 2.25}}> {{
            a = Conv <pads = [1,1,1,1]> (x, w, b)
            c = LeakyRelu <alpha = 0.1> (a)
            d = Resize <mode = "{mode}", coordinate_transformation_mode = "{coordinates}"> (c, , s)
            y = Conv <pads = [1,1,1,1]> (d, w2) }}"""),
        )
    yield (
        "embedding",
        onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (int64[N,T] ids) => (float[N,T,8] y) <{tensor("table", 20, 8)}, {tensor("w", 8, 8)}, {
            tensor("b", 8)
        },
        {tensor("gain", 8)}> {{
        e = Gather (table, ids)
        n = LayerNormalization <epsilon = 0.001> (e, gain, b)
        q = MatMul (n, w)
        k = Transpose <perm = [0,2,1]> (q)
        s = MatMul (q, k)
        p = Softmax <axis = 2> (s)
        o = MatMul (p, e)
        y = Tanh (o) }}"""),
    )


_NOT_NEGATIVE = {"Relu", "Sigmoid", "Softmax", "HardSigmoid", "Abs", "Exp", "Sqrt", "Shape", "ReduceL2"}
_KEEP_SIGN = {
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "Concat",
    "Reshape",
    "Transpose",
    "Identity",
    "Flatten",
    "Dropout",
}


class Site:
    """One model under mutation; every method lists the changes of one kind that can be made to it."""

    def __init__(self, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        self.makers = {name: node for node in model.graph.node for name in node.output}
        self.tensors = {t.name: t for t in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.tensors[node.output[0]] = node.attribute[0].t
        self.reads = Counter(name for node in model.graph.node for name in node.input)

    def nodes(self, *operators: str) -> list[onnx.NodeProto]:
        """Return the nodes of these operators."""
        return [node for node in self.model.graph.node if node.op_type in operators]

    def negative(self, name: str, depth: int = 0) -> bool:
        """Whether a value may be negative, as far as the operators before it tell."""
        maker = self.makers.get(name)
        if maker is None or depth > 20:
            return name not in self.tensors or bool((numpy_helper.to_array(self.tensors[name]) < 0).any())
        if maker.op_type in _NOT_NEGATIVE:
            return False
        if maker.op_type in _KEEP_SIGN or (maker.op_type in ("Add", "Sum", "Mul")):
            return any(self.negative(i, depth + 1) for i in maker.input)
        return True

    def swap(self, old: str, new: str, **attributes: float) -> list[Mutation]:
        """Turn one operator into another, where its input may be negative."""

        def change(node: onnx.NodeProto) -> Mutation:
            def do() -> None:
                node.op_type = new
                del node.attribute[:]
                node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())

            return do

        return [change(node) for node in self.nodes(old) if self.negative(node.input[0])]

    def attribute(
        self, operator: str, name: str, default: object, move: Callable[[object], object]
    ) -> list[Mutation]:
        """Move an attribute."""

        def change(node: onnx.NodeProto) -> Mutation | None:
            found = next((a for a in node.attribute if a.name == name), None)
            old = helper.get_attribute_value(found) if found is not None else default
            new = move(old)
            if new == old or new is None:
                return None

            def do() -> None:
                if found is not None:
                    node.attribute.remove(found)
                node.attribute.append(helper.make_attribute(name, new))

            return do

        return [m for m in map(change, self.nodes(operator)) if m]

    def weight(self, edit: Callable[[np.ndarray], None], *operators: str, index: int = 1) -> list[Mutation]:
        """Edit a weight in place."""

        def change(tensor: onnx.TensorProto) -> Mutation:
            def do() -> None:
                values = numpy_helper.to_array(tensor).copy()
                edit(values)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

            return do

        names = [n.input[index] for n in self.nodes(*operators) if len(n.input) > index]
        floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        return [
            change(self.tensors[n])
            for n in names
            if n in self.tensors and self.tensors[n].data_type in floats
        ]

    def one_element(self, values: np.ndarray) -> None:
        """Move one random element by three standard deviations."""
        values.flat[self.rng.integers(values.size)] += 3 * (values.std() or abs(values.flat[0]) or 1.0)

    def one_row(self, values: np.ndarray) -> None:
        """Negate one random row."""
        values[self.rng.integers(len(values))] *= -1

    def tenth(self, values: np.ndarray) -> None:
        """Add a tenth."""
        values *= 1.1

    def softmax_axis(self) -> list[Mutation]:
        """Not with a single row of logits, for which every axis is the same up to opset 12."""
        if self.model.opset_import[0].version < 10:
            return []
        return self.attribute("Softmax", "axis", -1, lambda a: 1 if a in (-1, 2, 3) else 0)

    def coordinates(self) -> list[Mutation]:
        """Give a Resize that interpolates other coordinates."""
        out = []
        for node in self.nodes("Resize"):
            got = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if got.get("mode", b"nearest") != b"nearest":
                now = got.get("coordinate_transformation_mode", b"half_pixel")

                def do(node: onnx.NodeProto = node, now: bytes = now) -> None:
                    for a in [a for a in node.attribute if a.name == "coordinate_transformation_mode"]:
                        node.attribute.remove(a)
                    other = "half_pixel" if now == b"asymmetric" else "asymmetric"
                    node.attribute.append(helper.make_attribute("coordinate_transformation_mode", other))

                out.append(do)
        return out

    def nearest_to_linear(self) -> list[Mutation]:
        """Let a nearest Resize interpolate."""
        return self.attribute("Resize", "mode", b"nearest", lambda m: "linear" if m == b"nearest" else None)

    def concat_order(self) -> list[Mutation]:
        """Reverse the inputs of a Concat."""

        def change(node: onnx.NodeProto) -> Mutation:
            def do() -> None:
                names = list(node.input)[::-1]
                del node.input[:]
                node.input.extend(names)

            return do

        return [
            change(n)
            for n in self.nodes("Concat")
            if len(set(n.input)) > 1 and not set(n.input) & set(self.tensors)
        ]

    def replaced(self, old: str, new: str) -> list[Mutation]:
        """Turn one operator into another of the same inputs."""

        def change(node: onnx.NodeProto) -> Mutation:
            def do() -> None:
                node.op_type = new

            return do

        return [change(n) for n in self.nodes(old)]


def swapped(perm: object) -> list[int] | None:
    """Exchange the last two entries."""
    perm = list(perm)  # type: ignore[call-overload]
    return [*perm[:-2], perm[-1], perm[-2]] if len(perm) > 2 else None


def shifted(pads: object) -> list[int] | None:
    """Move padding from begin to end, which keeps the shape."""
    pads = list(pads)  # type: ignore[call-overload]
    half = len(pads) // 2
    moved = [p - 1 for p in pads[:half]] + [p + 1 for p in pads[half:]]
    return moved if all(p > 0 for p in pads[:half]) and half else None


KINDS: dict[str, Callable[[Site], list[Mutation]]] = {
    "drop Relu": lambda s: s.swap("Relu", "Identity"),
    "Relu to Abs": lambda s: s.swap("Relu", "Abs"),
    "Relu to LeakyRelu 0.01": lambda s: s.swap("Relu", "LeakyRelu", alpha=0.01),
    "Sigmoid to HardSigmoid": lambda s: s.swap("Sigmoid", "HardSigmoid"),
    "one weight +3 std": lambda s: s.weight(s.one_element, "Conv", "Gemm", "MatMul", "ConvTranspose"),
    "one filter or row negated": lambda s: s.weight(s.one_row, "Conv", "Gemm", "MatMul"),
    "one table row negated": lambda s: s.weight(s.one_row, "Gather", index=0),
    "one bias +3 std": lambda s: s.weight(s.one_element, "Conv", "Gemm", index=2),
    "BN variance x 1.1": lambda s: s.weight(s.tenth, "BatchNormalization", index=4),
    "BN epsilon x 10": lambda s: s.attribute("BatchNormalization", "epsilon", 1e-5, lambda e: e * 10),  # type: ignore[operator]
    "LN epsilon x 10": lambda s: s.attribute("LayerNormalization", "epsilon", 1e-5, lambda e: e * 10),  # type: ignore[operator]
    "LeakyRelu alpha + 0.01": lambda s: s.attribute("LeakyRelu", "alpha", 0.01, lambda a: a + 0.01),  # type: ignore[operator]
    "HardSigmoid alpha x 1.05": lambda s: s.attribute("HardSigmoid", "alpha", 0.2, lambda a: a * 1.05),  # type: ignore[operator]
    "LRN alpha x 2": lambda s: s.attribute("LRN", "alpha", 1e-4, lambda a: a * 2),  # type: ignore[operator]
    "Softmax axis": Site.softmax_axis,
    "Clip upper x 0.9": lambda s: s.weight(lambda v: np.multiply(v, 0.9, out=v), "Clip", index=2),
    "coordinate mode": Site.coordinates,
    "nearest to linear": Site.nearest_to_linear,
    "pads shifted": lambda s: s.attribute("Conv", "pads", [], shifted),
    "perm swapped": lambda s: s.attribute("Transpose", "perm", [], swapped),
    "Concat reversed": Site.concat_order,
    "Add to Sub": lambda s: s.replaced("Add", "Sub"),
    "Add to Mul": lambda s: s.replaced("Add", "Mul"),
    "one LSTM weight +3 std": lambda s: s.weight(s.one_element, "LSTM"),
    "one recurrent weight +3 std": lambda s: s.weight(s.one_element, "LSTM", index=2),
    "InstanceNormalization epsilon x 10": lambda s: s.attribute(
        "InstanceNormalization",
        "epsilon",
        1e-5,
        lambda e: e * 10,  # type: ignore[operator]
    ),
    "quantisation scale x 1.1": lambda s: s.weight(s.tenth, "QuantizeLinear"),
    "ReduceMax to ReduceMean": lambda s: s.replaced("ReduceMax", "ReduceMean"),
}


def simplified(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return what onnxsim makes of a model; None where it fails."""
    import onnxsim

    result, _ = onnxsim.simplify(model, check_n=0)
    return result


def loads(path: Path) -> bool:
    """Whether ONNX Runtime loads a file: onnxsim breaks some models, which is no one's false alarm."""
    import onnxruntime

    try:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def subjects(root: Path) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the models to mutate: PP-OCR as it is, light_* with random weights, small nets and recent ones."""
    for path in sorted(root.glob("rapid*/rapidocr_onnxruntime/models/*.onnx")):
        if not ("1.4.4" in str(path) and "cls" in path.name):
            yield path.stem, onnx.load(path)
    for name in LIGHT:
        path = next(root.glob(f"*/onnx/backend/test/data/light/light_{name}.onnx"))
        yield f"light_{name}, random weights", randomised(onnx.load(path))
    yield from small_nets()
    yield from recent_nets()


BASES = ("as is", "no claim", "onnxsim")
"""What is mutated, and how it is compared: with a claim, as `onnx-migrate verify` does, or simplified."""


def verdict_of(source: Path, target: Path, base: str, *, isolated: bool) -> Verdict:
    """Compare a result of this base with its original, as a migration or `onnx-migrate verify` does."""
    original, result = files.load(source), files.load(target)
    with Prover(Settings(isolated=isolated)) as prover:
        if base == "no claim":
            return prover.verify(Segment(original, result, result), by_value=True)
        unsimplified = result if base == "as is" else original
        return prover.verify(Segment(original, result, unsimplified, exact=True))


def visible(source: Path, target: Path, shapes: dict[str, tuple[int, ...]]) -> float:
    """Return by how much of its scale an output changes at most, unoptimised, on five inputs of other seeds."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    sessions = [
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        for path in (source, target)
    ]
    most = 0.0
    for seed in range(1, 6):
        rng, feed = np.random.default_rng(seed), {}
        for value in sessions[0].get_inputs():
            shape = shapes[value.name]
            if "float" in value.type or "double" in value.type:
                values = rng.standard_normal(shape) * seed
            else:
                values = rng.integers(0, 2, shape)
            kind = {"float": "float32", "double": "float64"}.get(value.type[7:-1], value.type[7:-1])
            feed[value.name] = values.astype(kind)
        for one, other in zip(*(session.run(None, feed) for session in sessions), strict=True):
            if one.shape != other.shape:
                return 1.0
            one, other = one.astype(np.float64), other.astype(np.float64)
            most = max(most, float(np.abs(one - other).max(initial=0) / (np.abs(one).max(initial=0) + 1e-30)))
    return most


def score(counts: Counter[str]) -> str:
    """Return caught of mutants, for each base and all."""
    columns = []
    for base in (*BASES, ""):
        mine = {key: n for key, n in counts.items() if key.startswith(base)}
        caught = sum(n for key, n in mine.items() if key.endswith(", differs"))
        columns.append(f"{caught} of {sum(mine.values())}")
    return "".join(f"{column:>12}" for column in columns)


def main() -> int:
    """Run it all; exit code 1 if the bar (99 of 100, no false alarm) is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("--recent", action="store_true", help="only the nets of recent_nets.py")
    parser.add_argument("--only", default="", metavar="TEXT", help="only models whose name contains this")
    parser.add_argument(
        "--per-kind", type=int, default=1, help="mutants of each kind for each model and base"
    )
    parser.add_argument("--seed", type=int, default=0, help="which places are mutated")
    parser.add_argument(
        "--few-runs", action="store_true", help="as models are verified of which one run takes over 0.1 s"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.few_runs:  # as if every run took long; in this process, as a child would measure the time
        feed_search.EXPENSIVE = -1.0
    caught: dict[str, Counter[str]] = defaultdict(Counter)
    alarms, peace = [], 0
    missed, unseen = [], 0
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        light = sorted(options.models.glob("*/onnx/backend/test/data/light/*.onnx"))
        light = [] if options.recent or options.only else light
        for path in light:
            peace += 1
            verdict = verdict_of(path, path, "as is", isolated=not options.few_runs)
            if verdict.kind is not Kind.VERIFIED:
                alarms.append((path.name, verdict.reason))
        for title, model in recent_nets() if options.recent else subjects(options.models):
            if options.only not in title:
                continue
            source = folder / "original.onnx"
            onnx.save(model, source)
            for base_name, base in zip(BASES, (model, model, simplified(model)), strict=True):
                if base is None:
                    continue
                target = folder / "result.onnx"
                onnx.save(base, target)
                if not loads(target):
                    print(f"{title}, {base_name}: left out, ONNX Runtime does not load it")
                    continue
                verdict = verdict_of(source, target, base_name, isolated=not options.few_runs)
                peace += 1
                figures = max(((c.largest_absolute, c.allowed) for c in verdict.comparisons), default=(0, 0))
                if verdict.kind is not Kind.VERIFIED:
                    alarms.append((f"{title}, {base_name}", verdict.reason))
                print(
                    f"{title}, {base_name}: {verdict.kind.value}, difference {figures[0]:.3g} of {figures[1]:.3g}"
                    f" allowed, {verdict.seconds:.1f} s",
                    flush=True,
                )
                for kind, lister in KINDS.items():
                    rng = np.random.default_rng([options.seed, len(title), *kind.encode()])
                    count = len(lister(Site(base, rng)))
                    for pick in rng.permutation(count)[: options.per_kind]:
                        mutant = onnx.ModelProto()
                        mutant.CopyFrom(base)
                        lister(Site(mutant, rng))[pick]()
                        onnx.save(mutant, target)
                        verdict = verdict_of(source, target, base_name, isolated=not options.few_runs)
                        caught[kind][f"{base_name}, {verdict.kind.value}"] += 1
                        if verdict.kind is not Kind.DIFFERS:
                            figures = max(
                                ((c.largest_absolute, c.allowed) for c in verdict.comparisons), default=(0, 0)
                            )
                            shown = visible(source, target, dict(verdict.feeds[0].shapes))
                            unseen += shown < SEEN
                            figures = (*map(float, figures), shown)
                            missed.append((title, base_name, kind, verdict.kind.value, *figures))
                            print("  missed:", *missed[-1], verdict.reason, flush=True)
    total = Counter()
    print(f"\n{'kind':28}{''.join(f'{base:>12}' for base in (*BASES, 'all'))}   caught of mutants")
    for kind, counts in caught.items():
        total += counts
        print(f"{kind:28}{score(counts)}")
    print(f"{'all':28}{score(total)}")
    share = sum(n for key, n in total.items() if key.endswith(", differs")) / max(1, total.total())
    print(
        f"{share:.1%} caught; of those missed, {unseen} of {len(missed)} change no output by {SEEN:g} of its scale"
    )
    print(f"false alarms: {len(alarms)} of {peace}", *alarms, sep="\n  ")
    print(f"{time.perf_counter() - start:.0f} s")
    if options.json:
        figures = {
            "kinds": {k: dict(v) for k, v in caught.items()},
            "missed": missed,
            "false_alarms": alarms,
            "equal_pairs": peace,
        }
        options.json.write_text(json.dumps(figures, indent=1))
    return 0 if share >= 0.99 and not alarms else 1


if __name__ == "__main__":
    sys.exit(main())
