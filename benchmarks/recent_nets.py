"""Ten small nets of recent kinds with random weights, for verifier_strength.py: each has what real ones lack.

A transformer with a padding mask, a decoder with a cache, a quantised net, LSTMs over a sequence, a detection head with
TopK and one with NonMaxSuppression, a Loop, a diffusion block, a convolutional net in float16, a classifier of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

__all__ = ["recent_nets"]


class _Net:
    """A graph in onnx's text format, whose weights are made as they are named: `w("name", shape)`."""

    def __init__(self, seed: int, half: bool = False) -> None:
        self._rng = np.random.default_rng(seed)
        self._type = np.float16 if half else np.float32
        self._tensors: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> None:
        """Add a weight of the usual scale for its shape; one of rank 1 is a bias or a gain around 1."""
        values = self._rng.standard_normal(shape)
        fan = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        values = values / np.sqrt(fan) if len(shape) > 1 else values * 0.1 + name.startswith(("gain", "var"))
        self.constant(name, values.astype(self._type))

    def constant(self, name: str, values: object) -> None:
        """Add a constant as it is."""
        self._tensors.append(numpy_helper.from_array(np.asarray(values), name))

    def model(self, text: str, opset: int = 17) -> onnx.ModelProto:
        """Return the model of a graph that reads these weights."""
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
        model.graph.initializer.extend(self._tensors)
        return model


def _attention(x: str, mask: str) -> str:
    return f"""q_ = MatMul({x}, wq) k_ = MatMul({x}, wk) v_ = MatMul({x}, wv)
        q4 = Reshape(q_, heads) k4 = Reshape(k_, heads) v4 = Reshape(v_, heads)
        q = Transpose<perm=[0,2,1,3]>(q4) k = Transpose<perm=[0,2,3,1]>(k4) v = Transpose<perm=[0,2,1,3]>(v4)
        s_ = MatMul(q, k) s = Mul(s_, root) m_ = Add(s, {mask}) p = Softmax<axis=3>(m_)
        o4 = MatMul(p, v) ot = Transpose<perm=[0,2,1,3]>(o4) o_ = Reshape(ot, back) o = MatMul(o_, wo)"""


def _attention_weights(net: _Net, width: int = 32) -> None:
    for name in ("wq", "wk", "wv", "wo"):
        net.weight(name, width, width)
    net.constant("heads", np.array([0, 0, 4, width // 4]))
    net.constant("back", np.array([0, 0, width]))
    net.constant("root", np.float32((width // 4) ** -0.5))


def transformer() -> onnx.ModelProto:
    """Embedding, masked attention, LayerNormalization, feed-forward with Erf."""
    net = _Net(1)
    net.weight("table", 60, 32)
    _attention_weights(net)
    for name, shape in (("gain", (32,)), ("bias", (32,)), ("w1", (32, 64)), ("b1", (64,)), ("w2", (64, 32))):
        net.weight(name, *shape)
    for name, value in (("one", 1.0), ("low", -1e4), ("half", 0.5), ("sqrt2", 2**-0.5)):
        net.constant(name, np.float32(value))
    net.constant("axes", np.array([1, 2]))
    return net.model(f"""(int64[2,12] ids, int64[2,12] attention_mask) => (float[2,12,32] y) {{
        e = Gather(table, ids) f = Cast<to=1>(attention_mask) u = Unsqueeze(f, axes) i = Sub(one, u) mask = Mul(i, low)
        {_attention("e", "mask")}
        r = Add(e, o) n = LayerNormalization<epsilon=0.00001>(r, gain, bias)
        h_ = MatMul(n, w1) h = Add(h_, b1) c = Mul(h, sqrt2) d = Erf(c) g = Add(d, one) j = Mul(h, g) a = Mul(j, half)
        z = MatMul(a, w2) y = Add(n, z) }}""")


def decoder() -> onnx.ModelProto:
    """One step of attention over a cache of keys and values, which it extends."""
    net = _Net(2)
    for name in ("wq", "wk", "wv", "wo"):
        net.weight(name, 16, 16)
    net.weight("gain", 16)
    net.weight("head", 16, 40)
    net.constant("root", np.float32(0.25))
    net.constant("two", np.float32(2))
    net.constant("eps", np.float32(1e-5))
    return net.model("""(float[2,1,16] x, float[2,6,16] past_k, float[2,6,16] past_v)
        => (float[2,1,40] logits, float[2,7,16] k, float[2,7,16] v) {
        s2 = Pow(x, two) m = ReduceMean<axes=[-1]>(s2) me = Add(m, eps) sq = Sqrt(me) xn = Div(x, sq) n = Mul(xn, gain)
        q = MatMul(n, wq) k1 = MatMul(n, wk) v1 = MatMul(n, wv) k = Concat<axis=1>(past_k, k1) v = Concat<axis=1>(past_v, v1)
        kt = Transpose<perm=[0,2,1]>(k) a = MatMul(q, kt) b = Mul(a, root) p = Softmax<axis=2>(b) c = MatMul(p, v)
        o = MatMul(c, wo) r = Add(x, o) logits = MatMul(r, head) }""")


def quantised() -> onnx.ModelProto:
    """Convs between QuantizeLinear and DequantizeLinear, with an AveragePool."""
    net = _Net(3)
    rng = np.random.default_rng(3)
    for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (8, 8, 3, 3))):
        net.constant(name, rng.integers(-127, 128, shape).astype(np.int8))
    for name, value in (("sx", 0.03), ("sw", 0.004), ("sa", 0.02), ("sb", 0.013)):
        net.constant(name, np.float32(value))
    net.constant("zero", np.int8(0))
    net.constant("za", np.int8(-100))
    return net.model("""(float[1,3,24,24] x) => (float[1,8,12,12] y) {
        qx = QuantizeLinear(x, sx, zero) dx = DequantizeLinear(qx, sx, zero) d1 = DequantizeLinear(w1, sw, zero)
        c1 = Conv<pads=[1,1,1,1]>(dx, d1) r1 = Relu(c1) q1 = QuantizeLinear(r1, sa, za) a1 = DequantizeLinear(q1, sa, za)
        p1 = AveragePool<kernel_shape=[2,2], strides=[2,2]>(a1) qp = QuantizeLinear(p1, sb, za)
        ap = DequantizeLinear(qp, sb, za) d2 = DequantizeLinear(w2, sw, zero) c2 = Conv<pads=[1,1,1,1]>(ap, d2)
        q2 = QuantizeLinear(c2, sx, zero) y = DequantizeLinear(q2, sx, zero) }""")


def lstm() -> onnx.ModelProto:
    """Two LSTMs over a sequence of twenty steps."""
    net = _Net(4)
    for layer, width in (("1", 8), ("2", 16)):
        net.weight(f"w{layer}", 1, 64, width)
        net.weight(f"r{layer}", 1, 64, 16)
        net.constant(f"b{layer}", np.random.default_rng(4).standard_normal((1, 128)).astype(np.float32) * 0.1)
    net.constant("one", np.array([1]))
    net.weight("head", 16, 5)
    return net.model("""(float[20,2,8] x) => (float[20,2,5] y, float[1,2,16] h) {
        a, h1 = LSTM<hidden_size=16>(x, w1, r1, b1) s = Squeeze(a, one) b, h = LSTM<hidden_size=16>(s, w2, r2, b2)
        t = Squeeze(b, one) m = MatMul(t, head) y = Tanh(m) }""")


def _head(net: _Net) -> str:
    net.weight("c", 8, 3, 3, 3)
    net.weight("cb", 8)
    net.weight("k", 6, 8, 1, 1)
    net.weight("kb", 6)
    net.constant("flat", np.array([1, 6, 256]))
    return """f_ = Conv<pads=[1,1,1,1]>(x, c, cb) f = LeakyRelu<alpha=0.1>(f_) g = Conv(f, k, kb) r = Reshape(g, flat)
        t = Transpose<perm=[0,2,1]>(r)"""


def top_detector() -> onnx.ModelProto:
    """The boxes of the eight best scores, by TopK."""
    net = _Net(5)
    text = _head(net)
    net.constant("four", np.array(4))
    net.constant("eight", np.array([8]))
    net.constant("axis", np.array([2]))
    net.constant("wide", np.array([1, 1, 6]))
    return net.model(f"""(float[1,3,16,16] x) => (float[1,8,6] boxes, float[1,8] scores) {{ {text}
        s_ = Gather<axis=2>(t, four) s = Sigmoid(s_) scores, i = TopK(s, eight) u = Unsqueeze(i, axis) e = Expand(u, wide)
        boxes = GatherElements<axis=1>(t, e) }}""")


def suppressing_detector() -> onnx.ModelProto:
    """The boxes that NonMaxSuppression keeps."""
    net = _Net(6)
    text = _head(net)
    net.constant("most", np.array([16]))
    net.constant("overlap", np.float32([0.4]))
    net.constant("least", np.float32([0.5]))
    for name, values in (("b0", [0]), ("b4", [4]), ("b5", [5]), ("last", [2]), ("shape", [-1])):
        net.constant(name, np.array(values))
    net.constant("three", np.array([3]))
    net.constant("first", np.array([1]))
    return net.model(f"""(float[1,3,16,16] x) => (float[K,4] kept, float[K] scores) {{ {text}
        box = Slice(t, b0, b4, last) s_ = Slice(t, b4, b5, last) s = Sigmoid(s_) st = Transpose<perm=[0,2,1]>(s)
        n = NonMaxSuppression(box, st, most, overlap, least) i_ = Slice(n, last, three, first) i = Reshape(i_, shape)
        flatbox = Squeeze(box, b0) kept = Gather<axis=0>(flatbox, i) fs = Reshape(s, shape)
        scores = Gather<axis=0>(fs, i) }}""")


def loop() -> onnx.ModelProto:
    """A recurrent cell in a Loop of five steps, whose states are collected."""
    net = _Net(7)
    net.weight("w", 8, 8)
    net.weight("b", 8)
    net.weight("head", 8, 3)
    net.constant("steps", np.array(5))
    net.constant("go", np.array(True))
    return net.model("""(float[2,8] x) => (float[2,3] y, float[5,2,8] states) {
        last, states = Loop(steps, go, x) <body = step (int64 i, bool c, float[2,8] h) => (bool d, float[2,8] n, float[2,8] s) {
            d = Identity(c) m = MatMul(h, w) a = Add(m, b) t = Tanh(a) n = Add(t, x) s = Identity(n) }>
        y = MatMul(last, head) }""")


def diffusion() -> onnx.ModelProto:
    """A block of a U-Net: GroupNormalization as InstanceNormalization, SiLU, a time embedding, attention, upsampling."""
    net = _Net(8)
    for name, shape in (
        ("c1", (16, 4, 3, 3)),
        ("c2", (16, 16, 3, 3)),
        ("c3", (4, 16, 3, 3)),
        ("wt", (8, 16)),
    ):
        net.weight(name, *shape)
    _attention_weights(net, 16)
    net.constant("gain", np.ones(4, np.float32))
    net.constant("bias", np.zeros(4, np.float32))
    for name, value in (
        ("groups", [0, 4, -1]),
        ("image", [1, 16, 8, 8]),
        ("row", [1, 16, 64]),
        ("axes", [2, 3]),
    ):
        net.constant(name, np.array(value))
    net.constant("slope", np.random.default_rng(8).standard_normal((1, 1, 64, 64)).astype(np.float32))
    net.constant("scales", np.float32([1, 1, 2, 2]))
    return net.model(f"""(float[1,4,8,8] x, float[1,8] time) => (float[1,4,16,16] y) {{
        a = Conv<pads=[1,1,1,1]>(x, c1) g = Reshape(a, groups) n = InstanceNormalization<epsilon=0.00001>(g, gain, bias)
        b = Reshape(n, image) sb = Sigmoid(b) h = Mul(b, sb) t = MatMul(time, wt) tu = Unsqueeze(t, axes) ht = Add(h, tu)
        d = Conv<pads=[1,1,1,1]>(ht, c2) flat = Reshape(d, row) e = Transpose<perm=[0,2,1]>(flat)
        {_attention("e", "slope")}
        r = Add(e, o) rt = Transpose<perm=[0,2,1]>(r) ri = Reshape(rt, image)
        up = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(ri, , scales)
        y = Conv<pads=[1,1,1,1]>(up, c3) }}""")


def half() -> onnx.ModelProto:
    """A convolutional net in float16."""
    net = _Net(9, half=True)
    width = 3
    text = ""
    for k, last in enumerate(("x", "p0", "p1")):
        net.weight(f"w{k}", 12, width, 3, 3)
        for name in ("gain", "bias", "mean", "var"):
            net.weight(f"{name}{k}", 12)
        text += f"""c{k} = Conv<pads=[1,1,1,1]>({last}, w{k})
            n{k} = BatchNormalization<epsilon=0.001>(c{k}, gain{k}, bias{k}, mean{k}, var{k})
            p{k} = LeakyRelu<alpha=0.1>(n{k})\n"""
        width = 12
    net.weight("last", 5, 12, 1, 1)
    return net.model(
        f"(float16[1,3,32,32] x) => (float16[1,5,32,32] y) {{ {text} z = Conv(p2, last) y = Sigmoid(z) }}"
    )


def bytes_classifier() -> onnx.ModelProto:
    """Bytes to vectors, a convolution over the text, the largest of each channel, classes."""
    net = _Net(10)
    net.weight("table", 257, 16)
    net.weight("c", 32, 16, 5)
    net.weight("cb", 32)
    net.weight("gain", 32)
    net.weight("bias", 32)
    net.weight("w", 32, 12)
    net.weight("b", 12)
    return net.model("""(int32[1,200] bytes) => (float[1,12] y) {
        e = Gather(table, bytes) t = Transpose<perm=[0,2,1]>(e) a = Conv(t, c, cb) r = Relu(a)
        m = ReduceMax<axes=[2], keepdims=0>(r) n = LayerNormalization<epsilon=0.00001>(m, gain, bias) h = Gemm(n, w, b)
        y = Softmax<axis=1>(h) }""")


def recent_nets() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the ten nets with their names."""
    makers = (
        transformer, decoder, quantised, lstm, top_detector, suppressing_detector, loop, diffusion, half, bytes_classifier,
    )  # fmt: skip
    for maker in makers:
        yield maker.__name__, maker()
