"""Models for the pairs, as text: operators that onnx has no case of, and small nets in which corners hide."""

from __future__ import annotations

__all__ = ["WRITTEN"]

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>'


def _net(operator: str, text: str) -> tuple[str, str]:
    return operator, f"{_HEAD} {text}"


_CLASSES = (
    'nodes_falsenodeids = [2,0,0,0,0], nodes_featureids = [0,0,1,0,0], nodes_hitrates = [1.0,1.0,1.0,1.0,1.0],\
 nodes_missing_value_tracks_true = [0,0,0,0,0], nodes_modes = ["BRANCH_LEQ","LEAF","BRANCH_LEQ","LEAF","LEAF"],\
 nodes_nodeids = [0,1,2,3,4], nodes_treeids = [0,0,0,0,0], nodes_truenodeids = [1,0,3,0,0],\
 nodes_values = [0.5,0.0,-0.25,0.0,0.0]'
)
_TREE = _CLASSES.replace("nodes_falsenodeids = [2,0,0,0,0]", "nodes_falsenodeids = [2,0,4,0,0]")

WRITTEN: dict[str, tuple[str, str]] = {
    "scaler": _net("ai.onnx.ml:Scaler", """g (float[6,3] x) => (float[6,3] y) {
        y = ai.onnx.ml.Scaler <offset = [1.0, 0.5, -2.0], scale = [2.0, 0.25, 3.0]> (x) }"""),
    "normalizer": _net("ai.onnx.ml:Normalizer", """g (float[6,3] x) => (float[6,3] y) {
        y = ai.onnx.ml.Normalizer <norm = "L2"> (x) }"""),
    "imputer": _net("ai.onnx.ml:Imputer", """g (float[6,3] x) => (float[6,3] y) {
        y = ai.onnx.ml.Imputer <imputed_value_floats = [1.0, 2.0, 3.0], replaced_value_float = 0.0> (x) }"""),
    "imputer_int": _net("ai.onnx.ml:Imputer", """g (int64[6,3] x) => (int64[6,3] y) {
        y = ai.onnx.ml.Imputer <imputed_value_int64s = [7, 8, 9], replaced_value_int64 = 1> (x) }"""),
    "one_hot_encoder": _net("ai.onnx.ml:OneHotEncoder", """g (int64[6] x) => (float y) {
        y = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 1, 2, 5], zeros = 1> (x) }"""),
    "one_hot_encoder_text": _net("ai.onnx.ml:OneHotEncoder", """g (string[6] x) => (float y) {
        y = ai.onnx.ml.OneHotEncoder <cats_strings = ["a", "b", "Tom"], zeros = 1> (x) }"""),
    "label_encoder": _net("ai.onnx.ml:LabelEncoder", """g (string[6] x) => (int64[6] y) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b", "Tom"], values_int64s = [3, 5, 9],
        default_int64 = -1> (x) }"""),
    "label_encoder_float": _net("ai.onnx.ml:LabelEncoder", """g (float[6] x) => (string[6] y) {
        y = ai.onnx.ml.LabelEncoder <keys_floats = [0.5, 1.0, 2.0], values_strings = ["u", "v", "w"],
        default_string = "none"> (x) }"""),
    "category_mapper": _net("ai.onnx.ml:CategoryMapper", """g (string[6] x) => (int64[6] y) {
        y = ai.onnx.ml.CategoryMapper <cats_int64s = [1, 2, 3], cats_strings = ["a", "b", "c"],
        default_int64 = -5> (x) }"""),
    "feature_vectorizer": _net("ai.onnx.ml:FeatureVectorizer", """g (float[4,2] a, float[4,3] b) => (float[4,5] y) {
        y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [2, 3]> (a, b) }"""),
    "binarizer": _net("ai.onnx.ml:Binarizer", """g (float[6,3] x) => (float[6,3] y) {
        y = ai.onnx.ml.Binarizer <threshold = 0.5> (x) }"""),
    "array_feature_extractor": _net("ai.onnx.ml:ArrayFeatureExtractor", """g (float[4,5] x) => (float[4,2] y)
        <int64[2] i = {1, 3}> { y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }"""),
    "linear_classifier": _net("ai.onnx.ml:LinearClassifier", """g (float[6,3] x) => (int64[6] y, float[6,3] s) {
        y, s = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1, 4], multi_class = 1,
        coefficients = [1.0, -1.0, 0.5, 0.2, 2.0, -0.7, -1.0, 0.3, 0.9], intercepts = [0.1, -0.2, 0.3],
        post_transform = "SOFTMAX"> (x) }"""),
    "linear_classifier_text": _net("ai.onnx.ml:LinearClassifier", """g (float[6,2] x) => (string[6] y) {
        y, s = ai.onnx.ml.LinearClassifier <classlabels_strings = ["no", "yes"],
        coefficients = [1.0, -1.0, -1.0, 1.0], intercepts = [0.1, -0.1], post_transform = "LOGISTIC"> (x) }"""),
    "linear_regressor": _net("ai.onnx.ml:LinearRegressor", """g (float[6,3] x) => (float[6,2] y) {
        y = ai.onnx.ml.LinearRegressor <targets = 2, coefficients = [1.0, -1.0, 0.5, 0.2, 2.0, -0.7],
        intercepts = [0.5, -0.5]> (x) }"""),
    "svm_classifier": _net("ai.onnx.ml:SVMClassifier", """g (float[6,2] x) => (int64[6] y, float[6,2] s) {
        y, s = ai.onnx.ml.SVMClassifier <classlabels_ints = [0, 1], coefficients = [1.0, -1.0, 0.5],
        kernel_params = [0.5, 0.0, 3.0], kernel_type = "RBF", rho = [0.1],
        support_vectors = [1.0, 0.0, -1.0, 0.5, 0.3, 0.3], vectors_per_class = [1, 2]> (x) }"""),
    "svm_regressor": _net("ai.onnx.ml:SVMRegressor", """g (float[6,2] x) => (float[6,1] y) {
        y = ai.onnx.ml.SVMRegressor <coefficients = [1.0, -1.0, 0.5], kernel_params = [0.5, 0.0, 3.0],
        kernel_type = "RBF", n_supports = 3, rho = [0.1],
        support_vectors = [1.0, 0.0, -1.0, 0.5, 0.3, 0.3]> (x) }"""),
    "tree_classifier": _net("ai.onnx.ml:TreeEnsembleClassifier", f"""g (float[6,2] x) => (int64[6] y, float[6,3] s) {{
        y, s = ai.onnx.ml.TreeEnsembleClassifier <classlabels_int64s = [0, 1, 2], class_ids = [0,1,2],
        class_nodeids = [1,3,4], class_treeids = [0,0,0], class_weights = [1.0,1.0,1.0], {_TREE}> (x) }}"""),
    "tree_regressor": _net("ai.onnx.ml:TreeEnsembleRegressor", f"""g (float[6,2] x) => (float[6,1] y) {{
        y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, target_ids = [0,0,0], target_nodeids = [1,3,4],
        target_treeids = [0,0,0], target_weights = [1.0,-2.0,3.0], {_TREE}> (x) }}"""),
    "zip_map": _net("ai.onnx.ml:ZipMap", """g (float[3,2] x) => (seq(map(int64, float)) y) {
        y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 7]> (x) }"""),
    "zip_map_text": _net("ai.onnx.ml:ZipMap", """g (float[3,2] x) => (seq(map(string, float)) y) {
        y = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (x) }"""),
    "dict_vectorizer": _net("ai.onnx.ml:DictVectorizer", """g (map(string, float) x) => (float[1,3] y) {
        y = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a", "b", "c"]> (x) }"""),
    "cast_map": _net("ai.onnx.ml:CastMap", """g (map(int64, float) x) => (float[1,3] y) {
        y = ai.onnx.ml.CastMap <cast_to = "TO_FLOAT", map_form = "SPARSE", max_map = 3> (x) }"""),
    "random_normal_like": _net(":RandomNormalLike", """g (float[20,50] x) => (float[20,50] y) {
        r = RandomNormalLike <mean = 0.0, scale = 1.0> (x)
        y = Add (x, r) }"""),
    "random_uniform_like": _net(":RandomUniformLike", """g (float[20,50] x) => (float[20,50] y) {
        r = RandomUniformLike <low = 0.0, high = 1.0> (x)
        y = Mul (x, r) }"""),
    "random_normal": _net(":RandomNormal", """g (float[20,50] x) => (float[20,50] y) {
        r = RandomNormal <shape = [20, 50], mean = 0.5, scale = 2.0> ()
        y = Add (x, r) }"""),
    "random_uniform": _net(":RandomUniform", """g (float[20,50] x) => (float[20,50] y) {
        r = RandomUniform <shape = [20, 50], low = -1.0, high = 3.0> ()
        y = Add (x, r) }"""),
    "bernoulli": _net(":Bernoulli", """g (float[20,50] x) => (float[20,50] y) {
        p = Sigmoid (x)
        y = Bernoulli (p) }"""),
    "multinomial": _net(":Multinomial", """g (float[4,5] x) => (int32 y) {
        y = Multinomial <sample_size = 200> (x) }"""),
    "dropout": _net(":Dropout", """g (float[20,50] x) => (float[20,50] y) <float r = {0.25}, bool t = {1}> {
        y = Dropout (x, r, t) }"""),
    "dropout_off": _net(":Dropout", """g (float[20,50] x) => (float[20,50] y) <float r = {0.5}, bool t = {0}> {
        y = Dropout (x, r, t) }"""),
    "max_roi_pool": _net(":MaxRoiPool", """g (float[1,2,8,8] x) => (float y)
        <float[2,5] r = {0.0, 0.0, 0.0, 4.0, 4.0, 0.0, 2.0, 2.0, 7.0, 7.0}> {
        y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 1.0> (x, r) }"""),
    "global_lp_pool": _net(":GlobalLpPool", "g (float[1,2,5,5] x) => (float y) { y = GlobalLpPool <p = 2> (x) }"),
    "sequence_at": _net(":SequenceAt", """g (float[3,4] a, float[3,4] b) => (float[3,4] y) <int64 i = {1}> {
        s = SequenceConstruct (a, b)
        y = SequenceAt (s, i) }"""),
    "sequence_construct": _net(":SequenceConstruct", """g (float[3,4] a, float[3,4] b) => (seq(float[3,4]) y) {
        y = SequenceConstruct (a, b) }"""),
    "sequence_scaled": _net(":SequenceConstruct", """g (float[3,4] a) => (seq(float[3,4]) y) <float three = {3.0}> {
        b = Mul (a, three)
        y = SequenceConstruct (a, b) }"""),
    "sequence_erase": _net(":SequenceErase", """g (float[3,4] a, float[3,4] b) => (seq(float[3,4]) y) <int64 i = {1}> {
        s = SequenceConstruct (a, b)
        y = SequenceErase (s, i) }"""),
    "concat_from_sequence": _net(":ConcatFromSequence", """g (float[3,3] a, float[3,3] b) => (float y) {
        s = SequenceConstruct (a, b)
        y = ConcatFromSequence <axis = 0, new_axis = 0> (s) }"""),
    "optional": _net(":Optional", """g (float[3,4] a) => (optional(float[3,4]) y) <float three = {3.0}> {
        b = Mul (a, three)
        y = Optional (b) }"""),
    "masked_attention": _net(":Softmax", """g (float[2,4,8] x, int64[2,4] mask) => (float[2,4,8] y)
        <float one = {1.0}, float low = {-10000.0}, int64[1] ax = {1}> {
        m = Cast <to = 1> (mask)
        n = Sub (one, m)
        b = Mul (n, low)
        u = Unsqueeze (b, ax)
        t = Transpose <perm = [0, 2, 1]> (x)
        q = MatMul (x, t)
        s = Add (q, u)
        p = Softmax <axis = -1> (s)
        y = MatMul (p, x) }"""),
    "masked_where": _net(":Where", """g (float[2,4,6] x, bool[2,1,6] mask) => (float[2,4,6] y) <float low = {-1e9}> {
        w = Where (mask, x, low)
        y = Softmax <axis = -1> (w) }"""),
    "position_table": _net(":Gather", """g (int64[1,T] ids) => (float[1,T,2] y)
        <float[6,2] table = {1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0,11.0,12.0}> { y = Gather (table, ids) }"""),
    "slice_long": _net(":Slice", """g (float[1,T] x) => (float y)
        <int64[1] s = {0}, int64[1] e = {40}, int64[1] a = {1}> { y = Slice (x, s, e, a) }"""),
    "reshape_batch": _net(":Reshape", """g (float[N,6] x) => (float y) <int64[3] s = {-1, 2, 3}> {
        y = Reshape (x, s) }"""),
    "two_thresholds": _net(":Where", """g (float[6,8] x) => (float[6,8] y)
        <float lo = {-1.5}, float hi = {2.5}, float zero = {0.0}> {
        a = Greater (x, lo)
        b = Less (x, hi)
        c = And (a, b)
        y = Where (c, x, zero) }"""),
    "clip_far": _net(":Clip", """g (float[6,8] x) => (float[6,8] y) <float lo = {-1000.0}, float hi = {1000.0}> {
        y = Clip (x, lo, hi) }"""),
    "branch_of_number": _net(":If", """g (int64 k, float[4] x) => (float[4] y) <int64 seven = {7}, float two = {2.0}> {
        c = Equal (k, seven)
        y = If (c) <then_branch = t () => (float[4] a) { a = Mul (x, two) },
                    else_branch = e () => (float[4] b) { b = Add (x, two) }> }"""),
    "branch_of_mean": _net(":If", """g (float[8] x) => (float[8] y) <float ten = {10.0}, float two = {2.0}> {
        m = ReduceMean <keepdims = 0> (x)
        c = Greater (m, ten)
        y = If (c) <then_branch = t () => (float[8] a) { a = Mul (x, two) },
                    else_branch = e () => (float[8] b) { b = Add (x, two) }> }"""),
    "loop_until": _net(":Loop", """g (float[4] x) => (float[4] y) <int64 n = {50}, bool yes = {1}, float small = {1.01}> {
        y = Loop (n, yes, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
            w = Mul (v, small)
            d = Identity (c) }> }"""),
    "loop_limit": _net(":Loop", """g (int64 n, float[4] x) => (float[4] y)
        <int64 top = {100}, bool yes = {1}, float one = {1.0}> {
        k = Min (n, top)
        y = Loop (k, yes, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
            w = Add (v, one)
            d = Identity (c) }> }"""),
    "scan_sum": _net(":Scan", """g (float[3] s, float[5,3] x) => (float[3] e, float[5,3] y) {
        e, y = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] v) => (float[3] n, float[3] o) {
            n = Add (a, v)
            o = Mul (a, v) }> (s, x) }"""),
    "boxes": _net(":NonMaxSuppression", """g (float[1,8,4] z, float[1,1,8] scores) => (int64 y)
        <float[1,8,4] c = {0.0,0.0,2.0,2.0, 0.5,0.0,2.5,2.0, 1.0,0.0,3.0,2.0, 0.0,1.0,2.0,3.0, 5.0,5.0,7.0,7.0,
        5.2,5.0,7.2,7.0, 6.0,5.0,8.0,7.0, 9.0,9.0,9.5,9.5}, float tenth = {0.1}, int64[1] most = {20},
        float[1] iou = {0.5}, float[1] least = {0.0}> {
        d = Mul (z, tenth)
        b = Add (c, d)
        y = NonMaxSuppression (b, scores, most, iou, least) }"""),
    "classes": _net(":ArgMax", """g (float[5,6] x) => (int64[5] y)
        <float[6,3] w = {1.0,-1.0,0.5,0.2,2.0,-0.7,-1.0,0.3,0.9,0.4,-0.6,1.2,0.8,0.1,-0.3,0.5,0.5,-1.1}> {
        l = MatMul (x, w)
        y = ArgMax <axis = 1, keepdims = 0> (l) }"""),
    "top_classes": _net(":TopK", """g (float[5,6] x) => (float[5,2] v, int64[5,2] i) <int64[1] k = {2}> {
        v, i = TopK <axis = 1> (x, k) }"""),
    "text_case": _net(":StringNormalizer", """g (string[6] x) => (string y) {
        y = StringNormalizer <case_change_action = "LOWER", is_case_sensitive = 0, locale = "C", stopwords = ["b"]> (x) }"""),
    "tfidf": _net(":TfIdfVectorizer", """g (int64[2,8] x) => (float y) {
        y = TfIdfVectorizer <mode = "TF", max_gram_length = 2, max_skip_count = 1, min_gram_length = 1,
        ngram_counts = [0, 3], ngram_indexes = [0, 1, 2, 3, 4], pool_int64s = [0, 1, 5, 0, 1, 1, 0]> (x) }"""),
    "quantised_pairs": _net(":QuantizeLinear", """g (float[2,8] x) => (float[2,4] y)
        <float s = {0.05}, uint8 z = {128}, float t = {0.01}, int8 n = {0}, int8[8,4] w = {1,-2,3,-4,5,-6,7,-8,9,-10,
        11,-12,13,-14,15,-16,17,-18,19,-20,21,-22,23,-24,25,-26,27,-28,29,-30,31,-32}> {
        q = QuantizeLinear (x, s, z)
        a = DequantizeLinear (q, s, z)
        b = DequantizeLinear (w, t, n)
        y = MatMul (a, b) }"""),
    "float16_net": _net(":MatMul", """g (float16[4,8] x) => (float16[4,2] y)
        <float[8,2] f = {1.0,-1.0,0.5,0.25,2.0,-0.75,-1.0,0.25,1.0,0.5,-0.5,1.25,0.75,0.125,-0.25,0.5}> {
        w = Cast <to = 10> (f)
        h = MatMul (x, w)
        y = Tanh (h) }"""),
    "integers": _net(":Mul", """g (int64[3,4] x) => (int64[3,4] y) <int64 three = {3}, int64 off = {100}> {
        m = Mul (x, three)
        y = Add (m, off) }"""),
    "days": _net(":Mod", """g (int64[3,4] x) => (int64[3,4] y) <int64 seven = {7}> { y = Mod (x, seven) }"""),
    "conv_net": _net(":Conv", """g (float[1,2,6,6] x) => (float[1,2,6,6] y)
        <float[2,2,3,3] w = {0.1,-0.2,0.3,0.4,-0.5,0.6,0.7,-0.8,0.9,0.2,0.1,-0.3,0.5,-0.4,0.2,0.8,0.6,-0.1,
        0.3,0.3,-0.7,0.2,0.9,0.1,-0.6,0.4,0.5,0.1,-0.9,0.8,0.2,0.2,-0.3,0.7,0.1,0.4}, float[2] s = {1.0, 1.5},
        float[2] b = {0.1, -0.1}, float[2] m = {0.2, 0.0}, float[2] v = {1.0, 0.5}> {
        c = Conv <pads = [1,1,1,1]> (x, w)
        n = BatchNormalization <epsilon = 0.001> (c, s, b, m, v)
        y = LeakyRelu <alpha = 0.1> (n) }"""),
}  # fmt: skip
