"""Models of what random graphs rarely have: control flow with states, sequences, optionals, quantized and narrow types."""

from __future__ import annotations

__all__ = ["TEXTS"]

_HEAD = '<ir_version: {ir}, opset_import: ["" : {opset}{more}]>'


def _model(graph: str, *, ir: int = 10, opset: int = 21, more: str = "") -> str:
    return _HEAD.format(ir=ir, opset=opset, more=more) + " g " + graph


TEXTS: tuple[str, ...] = (
    _model("""(float[3] x) => (float[3] y, float[n,3] z) <int64 turns = {4}, bool on = {1}> {
      y, z = Loop (turns, on, x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] u) {
        d = Identity (c)  t = Add (s, x)  u = Mul (t, s) }> }"""),
    _model(
        """(float[4,2] x) => (float[2] y, float[4,2] z) <float[2] w = {0, 0}> {
      y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t, float[2] u) {
        t = Add (s, r)  u = Identity (t) }> (w, x) }""",
        opset=11,
        ir=6,
    ),
    _model(
        """(float[1,4,2] x) => (float[1,2] y, float[1,4,2] z) <float[1,2] w = {0, 0}> {
      y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t, float[2] u) {
        t = Add (s, r)  u = Identity (t) }> ("", w, x) }""",
        opset=8,
        ir=3,
    ),
    _model(
        """(float[2,3] x) => (float[2,3] y) { s = SequenceConstruct (x, x)  i = Constant <value_int = 1> ()
      n = SequenceLength (s)  a = SequenceAt (s, i)  e = SequenceEmpty <dtype = 1> ()  t = SequenceInsert (e, a)
      y = ConcatFromSequence <axis = 0> (t) }""",
        opset=17,
        ir=8,
    ),
    _model(
        """(seq(float[2]) x) => (seq(float[2]) y) {
      y = SequenceMap <body = b (float[2] s) => (float[2] t) { t = Neg (s) }> (x) }""",
        opset=17,
        ir=8,
    ),
    _model(
        """(optional(float[2]) x) => (bool h, float[2] y) { h = OptionalHasElement (x)
      y = If (h) <then_branch = a () => (float[2] t) { t = OptionalGetElement (x) },
                  else_branch = b () => (float[2] t) { t = Constant <value_floats = [1.0, 2.0]> () }> }""",
        opset=18,
        ir=8,
    ),
    _model(
        """(float[2,8] x) => (float[2,8] y) <float s = {0.1}, uint8 z = {128}> { q = QuantizeLinear (x, s, z)
      y = DequantizeLinear (q, s, z) }""",
        opset=13,
        ir=7,
    ),
    _model(
        """(float[4,8] x) => (float[4,8] y) <float[4] s = {0.1, 0.2, 0.3, 0.4}> {
      q = QuantizeLinear <axis = 0, output_dtype = 22> (x, s)  y = DequantizeLinear <axis = 0> (q, s) }""",
        opset=21,
    ),
    _model(
        """(float[4] x) => (float[4] y) <float s = {0.5}> { q = QuantizeLinear <output_dtype = 17> (x, s)
      y = DequantizeLinear (q, s) }""",
        opset=19,
        ir=9,
    ),
    _model(
        """(float[1,3,8,8] x) => (float[1,2,a,b] y) <float[2,3,3,3] w = {%s}> { c = Conv <pads = [1,1,1,1]> (x, w)  r = Relu (c)
      y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r) }""".replace(
            "%s", ", ".join("0.1" for _ in range(54))
        ),
        opset=11,
        ir=6,
    ),
    _model(
        """(float[1,2,4,4] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 2, 2}, float[0] r = {}> {
      y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, r, s) }""",
        opset=11,
        ir=6,
    ),
    _model(
        """(float[2,3] x) => (float[n] y) { s = Softmax <axis = 0> (x)  l = ReduceLogSumExp <axes = [1], keepdims = 0> (s)
      y = Squeeze (l) }""",
        opset=9,
        ir=4,
    ),
    _model(
        """(string[2] x) => (string[2] y) { y = StringNormalizer <case_change_action = "LOWER"> (x) }""",
        opset=10,
        ir=5,
    ),
    _model(
        """(float[2,3] x) => (float[2,3] y) { y = f.Outer <a = 0.3> (x) }
      <domain: "f", opset_import: ["" : 17, "f" : 1]> Outer <a> (i) => (o) { t = Inner <b : float = @a> (i)  o = Relu (t) }
      <domain: "f", opset_import: ["" : 17]> Inner <b> (i) => (o) { o = LeakyRelu <alpha : float = @b> (i) }""".replace(
            "t = Inner", "t = f.Inner"
        ),
        opset=17,
        ir=8,
        more=', "f" : 1',
    ),
    _model(
        """(float[2,3] x) => (float[2,3] y) { t = Dropout <ratio = 0.25> (x)
      y = BatchNormalization (t, s, b, m, v) }""".replace(
            "=> (float[2,3] y)",
            "=> (float[2,3] y) <float[3] s = {1,1,1}, float[3] b = {0,0,0},"
            " float[3] m = {0,0,0}, float[3] v = {1,1,1}>",
        ),
        opset=9,
        ir=4,
    ),
    _model(
        """(float[2,3] x) => (float[2,1] y) { y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0]> (x) }""",
        opset=15,
        ir=8,
        more=', "ai.onnx.ml" : 1',
    ),
    _model(
        """(float[3,1,4] x) => (float[a,b,c,d] y) <float[1,8,4] w = {%w}, float[1,8,2] r = {%r}> {
      y, h, c = LSTM <hidden_size = 2> (x, w, r) }""".replace("%w", ", ".join(["0.1"] * 32)).replace(
            "%r", ", ".join(["0.2"] * 16)
        ),
        opset=7,
        ir=3,
    ),
    _model(
        """(float[2,3] x) => (float[2,3] y, int64[2] n) { n = Shape (x)  f = ConstantOfShape <value = float[1] {2}> (n)
      e = Expand (f, n)  y = Where (m, x, e)  z = Constant <value_float = 0.0> ()  m = Greater (x, z) }""".replace(
            "y = Where (m, x, e)  z = Constant <value_float = 0.0> ()  m = Greater (x, z)",
            "z = Constant <value_float = 0.0> ()  m = Greater (x, z)  y = Where (m, x, e)",
        ),
        opset=12,
        ir=7,
    ),
    _model("() => () {}", opset=17, ir=8),
    _model("(float[2] x) => (float[2] x) {}", opset=17, ir=8),
    _model("() => (float[2] y) <float[2] w = {1, 2}> { y = Identity (w) }", opset=17, ir=8),
)
"""Models in onnx's text format."""
