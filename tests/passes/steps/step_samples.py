"""Small models of operators at versions that no claim is about: samples of steps that rewrite, beside those of samples.py."""

from __future__ import annotations

from tests.passes.steps.samples import SAMPLES, Sample, read

__all__ = ["STEP_SAMPLES"]

_LINES = """
AffineGrid: (float[1,2,3] t) => (float[A,B,C,D] y) <int64[4] s = {1, 2, 3, 4}> { y = AffineGrid (t, s) }
And Or Xor ..6: (bool[2,3] a, bool[3] b) => (bool[2,3] y) { y = OP <broadcast = 1> (a, b) }
And Or Xor 7..: (bool[2,3] a, bool[3] b) => (bool[2,3] y) { y = OP (a, b) }
BatchNormalization ..5: (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y)
    { y = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1> (x, s, b, m, v) }
BatchNormalization 6..6: (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y)
    { y = BatchNormalization <is_test = 1> (x, s, b, m, v) }
BitCast: (float[2,3] x) => (int32[2,3] y) { y = BitCast <to = 6> (x) }
BitwiseAnd BitwiseOr BitwiseXor: (int32[2,3] a, int32[3] b) => (int32[2,3] y) { y = OP (a, b) }
BitwiseNot: (uint8[2,3] x) => (uint8[2,3] y) { y = BitwiseNot (x) }
BlackmanWindow HammingWindow HannWindow: (int64 n) => (float[N] y) { y = OP (n) }
Cast ..5: (float[9] x) => (int64[9] y) { y = Cast <to = "INT64"> (x) }
CausalConvWithState: (float[1,2,6] x, float[2,1,3] w) => (float[A,B,C] y, float[D,E,F] s) { y, s = CausalConvWithState (x, w) }
CenterCropPad: (float[5,4] x) => (float[A,B] y) <int64[2] s = {3, 6}> { y = CenterCropPad (x, s) }
Clip ..5: (float[2,9] x) => (float[2,9] y) { y = Clip <min = -1.0, max = 2.0> (x) }
Clip 6..10: (float[2,9] x) => (float[2,9] y) { y = Clip <min = 0.0> (x) }
Col2Im: (float[1,4,4] x) => (float[A,B,C,D] y) <int64[2] s = {3, 3}, int64[2] b = {2, 2}> { y = Col2Im (x, s, b) }
ConcatFromSequence SequenceConstruct: (float[2,3] a, float[2,3] b) => (float[A,B] y) { s = SequenceConstruct (a, b)
    y = ConcatFromSequence <axis = 1> (s) }
ConvInteger: (uint8[1,1,4,4] x, uint8[1,1,2,2] w, uint8 z) => (int32[A,B,C,D] y) { y = ConvInteger (x, w, z) }
CumProd: (float[2,5] x) => (float[2,5] y) <int64 one = {1}> { y = CumProd <exclusive = 1> (x, one) }
DFT ..19: (float[1,8,1] x) => (float[A,B,C] y) { y = DFT <axis = 1> (x) }
DFT 20..: (float[1,8,1] x) => (float[A,B,C] y) <int64 a = {1}> { y = DFT (x, , a) }
Dropout ..5: (float[2,3] x) => (float[2,3] y) { y = Dropout <is_test = 1, ratio = 0.3> (x) }
Dropout 6..6: (float[2,3] x) => (float[2,3] y) { y = Dropout <is_test = 1> (x) }
DynamicQuantizeLinear: (float[2,3] x) => (uint8[2,3] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (x) }
Equal ..6: (int32[2,3] a, int32[3] b) => (bool[2,3] y) { y = Equal <broadcast = 1> (a, b) }
Gelu: (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Gelu (x) z = Gelu <approximate = "tanh"> (x) }
Greater Less ..6: (float[2,3] a, float[3] b) => (bool[2,3] y) { y = OP <broadcast = 1> (a, b) }
GroupNormalization 21..: (float[2,4,3] x, float[4] s, float[4] b) => (float[A,B,C] y)
    { y = GroupNormalization <num_groups = 2> (x, s, b) }
GroupNormalization 18..20: (float[2,4,3] x, float[2] s, float[2] b) => (float[A,B,C] y)
    { y = GroupNormalization <num_groups = 2> (x, s, b) }
InstanceNormalization ..5: (float[2,3,4] x, float[3] s, float[3] b) => (float[2,3,4] y)
    { y = InstanceNormalization <consumed_inputs = [0, 0, 0]> (x, s, b) }
LinearAttention: (float[1,4,6] q, float[1,4,6] k, float[1,4,6] v) => (float[A,B,C] y, float[D,E,F,G] s)
    { y, s = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (q, k, v) }
LpPool ..1: (float[1,2,6,7] x) => (float[A,B,C,D] y) { y = LpPool <kernel_shape = [3, 2], p = 2.0> (x) }
MatMulInteger: (uint8[2,3] a, uint8[3,4] b, uint8 z) => (int32[2,4] y) { y = MatMulInteger (a, b, z) }
MelWeightMatrix: (float u) => (float[A,B] y)
    <int64 m = {4}, int64 n = {8}, int64 r = {8192}, float l = {0}, float h = {4096}> { y = MelWeightMatrix (m, n, r, l, h) }
Pad ..1: (float[2,3] x) => (float[A,B] y) { y = Pad <paddings = [1, 0, 2, 1], value = 1.5> (x) }
Pad 2..10: (float[2,3] x) => (float[A,B] y) { y = Pad <pads = [1, 0, 2, 1], value = 1.5> (x) }
QLinearConv: (uint8[1,1,4,4] x, uint8[1,1,2,2] w) => (uint8[A,B,C,D] y) <float s = {0.05}, uint8 z = {3}>
    { y = QLinearConv (x, s, z, w, s, z, s, z) }
RMSNormalization: (float[2,3,4] x, float[4] s) => (float[2,3,4] y) { y = RMSNormalization (x, s) }
Reshape ..4: (float[2,3,4] x) => (float[A,B] y) { y = Reshape <shape = [0, -1]> (x) }
Resize 10..10: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[4] s = {1, 1, 2, 3}> { y = Resize (x, s) }
Resize 10..10: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[4] s = {1, 1, 2, 3}> { y = Resize <mode = "linear"> (x, s) }
Resize 11..12: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[8] r = {0, 0, 0, 0, 1, 1, 1, 1}, float[4] s = {1, 1, 2, 2}>
    { y = Resize <mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"> (x, r, s) }
Resize 11..: (float[1,1,4,5] x) => (float[A,B,C,D] y, float[E,F,G,H] z) <float[4] s = {1, 1, 1.5, 2.5}>
    { y = Resize <mode = "linear"> (x, , s)
    z = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , s) }
Resize 11..: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[4] s = {1, 1, 2, 2}>
    { y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , s) }
Resize 11..: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[8] r = {0, 0, 0.2, 0.1, 1, 1, 0.8, 0.9}, float[4] s = {1, 1, 2, 2}>
    { y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, s) }
Resize 18..: (float[1,1,8,9] x) => (float[A,B,C,D] y) <int64[2] n = {4, 5}>
    { y = Resize <mode = "linear", antialias = 1, axes = [2, 3], keep_aspect_ratio_policy = "not_larger"> (x, , , n) }
Resize 19..: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[4] s = {1, 1, 1.5, 2.5}>
    { y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric"> (x, , s) }
RotaryEmbedding: (float[1,2,3,4] x, float[1,3,2] c, float[1,3,2] s) => (float[A,B,C,D] y) { y = RotaryEmbedding (x, c, s) }
STFT: (float[1,16,1] x) => (float[A,B,C,D] y) <int64 p = {4}, int64 n = {8}> { y = STFT (x, p, , n) }
Scan 8..8: (float[1,2] x, float[1,3,2] s) => (float[1,2] y, float[A,B,C] z) { y, z = Scan (, x, s)
    <num_scan_inputs = 1,body = b (float[2] a, float[2] e) => (float[2] next, float[2] each) { next = Add (a, e)
    each = Mul (next, next) }> }
SequenceAt: (float[2,3] a, float[2,3] b) => (float[2,3] y) <int64 one = {1}> { s = SequenceConstruct (a, b)
    y = SequenceAt (s, one) }
SequenceErase SequenceLength: (float[2,3] a, float[2,3] b) => (int64 n) <int64 one = {1}> { s = SequenceConstruct (a, b)
    t = SequenceErase (s, one) n = SequenceLength (t) }
SequenceEmpty SequenceInsert: (float[2,3] a) => (float[2,3] y) <int64 zero = {0}> { e = SequenceEmpty ()
    s = SequenceInsert (e, a) y = SequenceAt (s, zero) }
SequenceMap: (float[2,3] a, float[2,3] b) => (float[A,B] y) { s = SequenceConstruct (a, b) t = SequenceMap (s)
    <body = m (float[2,3] p) => (float[2,3] q) { q = Relu (p) }> y = ConcatFromSequence <axis = 0> (t) }
Shrink: (float[2,3] x) => (float[2,3] y) { y = Shrink <lambd = 0.7, bias = 0.2> (x) }
Split ..1: (float[5,2] x) => (float[A,B] y, float[C,D] z) { y, z = Split <axis = 0, split = [2, 3]> (x) }
SwiGLU: (float[2,3] g, float[2,3] x) => (float[2,3] y) { y = SwiGLU (g, x) }
Swish: (float[2,3] x) => (float[2,3] y) { y = Swish <alpha = 1.5> (x) }
TensorScatter: (float[1,2,5,3] c, float[1,2,2,3] u) => (float[A,B,C,D] y) <int64[1] i = {1}> { y = TensorScatter (c, u, i) }
Tile ..5: (float[2,3] x, float n, float a) => (float[A,B] y) { y = Tile (x, n, a) }
TopK ..9: (float[3,6] x) => (float[A,B] y, int64[C,D] i) { y, i = TopK <k = 3> (x) }
Trilu: (float[4,5] x) => (float[4,5] y) { y = Trilu (x) }
Trilu: (float[4,5] x) => (float[4,5] y) <int64 one = {1}> { y = Trilu <upper = 0> (x, one) }
Upsample ..6: (float[1,1,4,5] x) => (float[A,B,C,D] y) { y = Upsample <height_scale = 2.0, width_scale = 3.0> (x) }
Upsample 7..8: (float[1,1,4,5] x) => (float[A,B,C,D] y) { y = Upsample <scales = [1.0, 1.0, 2.0, 3.0]> (x) }
Upsample 9..9: (float[1,1,4,5] x) => (float[A,B,C,D] y) <float[4] s = {1, 1, 2, 3}> { y = Upsample (x, s) }
"""

STEP_SAMPLES: dict[str, list[Sample]] = {operator: list(samples) for operator, samples in SAMPLES.items()}
"""All samples of each operator: those of claims first."""
for _operator, _sample in read(_LINES):
    STEP_SAMPLES.setdefault(_operator, []).append(_sample)
