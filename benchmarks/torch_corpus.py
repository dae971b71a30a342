"""Exports 140 nets of PyTorch's with random weights, from which `runtime_operators` learns the forms of nodes.

    pip install torch torchvision timm transformers onnx onnxscript onnxruntime
    python benchmarks/torch_corpus.py --out FOLDER                 # NAME.onnx and io/NAME.npz
    python benchmarks/torch_corpus.py --out FOLDER --only vit      # the nets with this in their name
    python -m benchmarks.runtime_operators mnn==3.6.1 --models FOLDER

Each net is exported twice: by TorchScript at opset 11 and by dynamo at 20 with an open first axis, or by dynamo at 18 and by
TorchScript at 17 with one. What must come of it is what ONNX Runtime computes without optimizations. What an exporter does not
take is named. The project does not depend on PyTorch, so the program runs in an environment of its own.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import timm
import torch
import torchvision
import transformers
from torch import Tensor, nn
from torch.nn import functional as f

EXPORTS = ((("ts", 11, False), ("dynamo", 20, True)), (("ts", 17, True), ("dynamo", 18, False)))
"""How nets are exported, in turn: the exporter, the opset, and whether the first axis is open."""

torch.manual_seed(0)  # of the layers below, which are made as the tables are

Net = tuple[nn.Module, tuple[Tensor, ...]]


class Then(nn.Module):
    """A first layer, and what a function makes of its result and of other layers."""

    def __init__(self, first: nn.Module, then: Callable[..., Tensor], layers: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self.first, self.then, self.layers = first, then, nn.ModuleList(layers)

    def forward(self, *inputs: Tensor) -> Any:
        """Return what the function returns."""
        return self.then(self.first(inputs[0]), *inputs[1:], *self.layers)


class Plain(nn.Module):
    """A model of transformers', with a tensor in place of its own class of results."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the first of the results."""
        return self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]


def image(then: Callable[..., Tensor], *layers: nn.Module, stride: int = 1) -> Callable[[], Net]:
    """Return a net of a convolution to 8 channels of 12 × 16, ReLU, and a function of that."""
    first = nn.Sequential(nn.Conv2d(3, 8, 3, stride, 1), nn.ReLU())
    return lambda: (Then(first, then, layers), (torch.randn(2, 3, 12 * stride, 16 * stride),))


def tokens(then: Callable[..., Tensor], *layers: nn.Module) -> Callable[[], Net]:
    """Return a net of an embedding of 10 tokens in 16 numbers, and a function of that."""
    return lambda: (Then(nn.Embedding(40, 16), then, layers), (torch.randint(0, 40, (2, 10)),))


def rows(then: Callable[..., Tensor], *layers: nn.Module) -> Callable[[], Net]:
    """Return a net of a linear layer from 6 to 12 numbers, and a function of that."""
    return lambda: (Then(nn.Linear(6, 12), then, layers), (torch.randn(2, 6),))


def grid(x: Tensor, **options: Any) -> Tensor:
    """Return x sampled at places that follow from itself."""
    places = torch.tanh(x[:, :2]).permute(0, 2, 3, 1)
    return f.grid_sample(x, places, align_corners=options.pop("align_corners", False), **options)


def attend(x: Tensor, qkv: nn.Module) -> Tensor:
    """Return attention written out, with a causal mask, over four heads."""
    q, k, v = qkv(x).reshape(x.shape[0], 10, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
    mask = torch.full((10, 10), -1e4).triu(1)
    return (((q @ k.transpose(-2, -1)) / 2 + mask).softmax(-1) @ v).transpose(1, 2).flatten(2)


def heads(x: Tensor, qkv: nn.Module, *, causal: bool) -> Tensor:
    """Return scaled_dot_product_attention over two heads."""
    q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in qkv(x).chunk(3, -1))
    return f.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(-1, 10, 16)


def rotary(x: Tensor) -> Tensor:
    """Return x turned by angles that grow with the place."""
    angles = torch.arange(10.0)[:, None] * torch.exp(torch.arange(8) * -0.5)
    sin, cos = angles.sin(), angles.cos()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def boxes(x: Tensor) -> Tensor:
    """Return a detection head's boxes from distances to anchors, and their scores."""
    gy, gx = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
    at = torch.stack((gx, gy), -1).reshape(1, -1, 2)
    flat = x.flatten(2).transpose(1, 2)
    low, high = at - flat[..., :2].exp(), at + f.softplus(flat[..., 2:4])
    return torch.cat([(low + high) / 2, high - low, flat[..., 4:].sigmoid()], -1)


OWN: dict[str, Callable[[], Net]] = {
    "grid_bilinear": image(grid),
    "grid_corners": image(lambda x: grid(x, align_corners=True, padding_mode="border")),
    "grid_nearest": image(lambda x: grid(x, mode="nearest", padding_mode="reflection")),
    "bicubic": image(lambda x: f.interpolate(x, scale_factor=2, mode="bicubic")),
    "bilinear": image(lambda x: f.interpolate(x, scale_factor=2, mode="bilinear")),
    "bilinear_size": image(lambda x: f.interpolate(x, size=(19, 23), mode="bilinear", align_corners=True)),
    "bilinear_like": image(lambda x: f.interpolate(f.max_pool2d(x, 2), x.shape[2:], mode="bilinear") + x),
    "nearest": image(lambda x: f.interpolate(x, scale_factor=2.0) * 2),
    "nearest_size": image(lambda x: f.interpolate(x, size=(30, 20))),
    "deconvolution": image(
        lambda x, a, b: b(a(x).relu()), nn.ConvTranspose2d(8, 6, 3, 2, 1, 1), nn.ConvTranspose2d(6, 4, 2, 2)
    ),
    "dilated": image(
        lambda x, a, b: b(a(x).relu()), nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 8, 5, 2, 2, groups=4)
    ),
    "depthwise": image(
        lambda x, a, b: b(f.hardswish(a(x))), nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), nn.Conv2d(8, 12, 1)
    ),
    "wide_kernels": image(
        lambda x, a, b: b(a(x)), nn.Conv2d(8, 8, (1, 7), padding=(0, 3)), nn.Conv2d(8, 8, (7, 1), padding=(3, 0))
    ),
    "convolution_1d": image(lambda x, a: a(x.flatten(2)), nn.Conv1d(8, 4, 5, 2, 2)),
    "convolution_3d": image(
        lambda x, a: f.max_pool3d(a(x[:, :, None].repeat(1, 1, 4, 1, 1)), 2), nn.Conv3d(8, 4, 3, padding=1)
    ),
    "pools": image(lambda x: torch.cat([f.max_pool2d(x, 3, 2, 1), f.avg_pool2d(x, 3, 2, 1)], 1)),
    "pools_ceil": image(
        lambda x: torch.cat([f.max_pool2d(x, 3, 2, ceil_mode=True), f.avg_pool2d(x, 3, 2, ceil_mode=True)], 1)
    ),
    "pools_uncounted": image(lambda x: f.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - f.adaptive_avg_pool2d(x, 1)),
    "pyramid_pools": image(
        lambda x: f.interpolate(f.adaptive_avg_pool2d(x, 2), (12, 16), mode="bilinear") + f.adaptive_avg_pool2d(x, 1)
    ),
    "batch_norm": image(lambda x, a: f.leaky_relu(a(x), 0.1), nn.BatchNorm2d(8)),
    "instance_norm": image(lambda x, a: a(x), nn.InstanceNorm2d(8, affine=True)),
    "group_norm": image(lambda x, a: f.silu(a(x)), nn.GroupNorm(4, 8)),
    "layer_norm_image": image(lambda x, a: a(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.LayerNorm(8)),
    "local_response": image(lambda x: f.local_response_norm(x, 3)),
    "shuffles": image(lambda x: f.pixel_unshuffle(f.pixel_shuffle(x, 2).sin(), 4)),
    "channel_shuffle": image(lambda x: x.reshape(-1, 2, 4, 12, 16).transpose(1, 2).reshape(-1, 8, 12, 16) + x),
    "pads": image(
        lambda x: f.pad(f.pad(f.pad(x, (1, 2, 3, 1), "reflect"), (1, 1, 0, 0), "replicate"), (0, 1, 2, 0), value=0.5)
    ),
    "roll": image(lambda x: torch.roll(x, (2, -3), (2, 3)) + x.flip(3)),
    "windows": image(lambda x: x.reshape(-1, 8, 3, 4, 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, 8).softmax(-1)),
    "unfold": image(lambda x: f.unfold(x, 3, padding=1, stride=2)),
    "squeeze_excite": image(
        lambda x, a, b: x * b(a(x.mean((2, 3), True)).relu()).sigmoid(), nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
    ),
    "spatial_attention": image(
        lambda x, a: x * a(torch.cat([x.mean(1, True), x.amax(1, True)], 1)).sigmoid(), nn.Conv2d(2, 1, 7, padding=3)
    ),
    "statistics": image(
        lambda x: torch.stack([x.std((2, 3)), x.var((2, 3), correction=0), x.norm(dim=(2, 3)), x.logsumexp((2, 3))], 1)
    ),
    "reductions": image(lambda x: torch.cat([x.sum(1), x.mean(1), x.amin(1), x.prod(1).clamp(0, 9)], 1)),
    "activations": image(
        lambda x: f.elu(x - 1) + f.selu(x - 1) + f.mish(x) + f.hardsigmoid(x) + f.softplus(x) + f.relu6(x * 5) + f.logsigmoid(x)
    ),
    "celu": image(lambda x: f.celu(x - 1, 0.5)),
    "gelus": image(lambda x, a: a(f.gelu(x) + f.gelu(x, approximate="tanh")), nn.PReLU(8)),
    "elementwise": image(lambda x: (x + 1).log() + x.sqrt() + x.exp().reciprocal() + x.pow(2.5) + x.abs().neg() + torch.atan(x)),
    "rounded": image(lambda x: (x * 3).floor() + (x * 2).round() + (x * 5).ceil() + (x * 7).trunc()),
    "clamps": image(
        lambda x: x.clamp(0.1, 0.9) + x.clamp_min(0.2) + torch.maximum(x, x.mean(1, True)) - torch.minimum(x, x.amax(3, True))
    ),
    "softmaxes": image(lambda x: x.softmax(1) + x.softmax(-1) + f.log_softmax(x, 1)),
    "masks": image(lambda x: torch.where(x > x.mean((2, 3), True), x, -x) * ((x < 1) & ~(x == 0)).float()),
    "masked_fill": image(lambda x: x.masked_fill(x < 0.3, -1e4).softmax(-1)),
    "labels": image(lambda x: x.argmax(1)),
    "one_hot": image(lambda x: f.one_hot(x.argmax(1), 8).permute(0, 3, 1, 2).float() * x),
    "top": image(lambda x: x.flatten(1).topk(5).values),
    "top_gather": image(lambda x: x.flatten(2).gather(2, x.flatten(2).topk(4).indices)),
    "cumsum": image(lambda x: x.cumsum(2) + x.cumsum(-1)),
    "slices": image(lambda x: torch.cat([x[:, :, ::2, ::2], x[:, :, 1::2, ::2], x[:, :, -6:, :8], x[..., 2:8, 4:12]], 1)),
    "splits": image(
        lambda x: torch.cat([a * b.sigmoid() for a, b in zip(x.chunk(2, 1), x.split(4, 1)[::-1], strict=True)], 1)
    ),
    "repeated": image(lambda x: x.repeat(1, 2, 1, 1) + x.repeat_interleave(2, 1)),
    "selected": image(lambda x: x[:, [0, 2, 5]] + x.index_select(2, torch.tensor([3, 1])).mean((1, 2), True)),
    "coordinates": image(lambda x: torch.cat([x, torch.linspace(-1, 1, 16).expand(x.shape[0], 1, 12, 16)], 1)),
    "soft_argmax": image(lambda x: torch.einsum("bcx,x->bc", x.amax(2).softmax(-1), torch.arange(16.0))),
    "gram": image(lambda x: torch.bmm(x.flatten(2), x.flatten(2).transpose(1, 2)) / 192),
    "correlation": image(lambda x: torch.einsum("bchw,bcij->bhwij", x[:, :, ::4, ::4], x[:, :, ::6, ::8])),
    "distances": image(lambda x: torch.cdist(x.flatten(2), x.flatten(2)[:, :3])),
    "boxes": image(boxes),
    "classifier": image(lambda x, a: a(x.mean((2, 3))).softmax(1), nn.Linear(8, 5), stride=2),
    "flat_classifier": image(
        lambda x, a, b: b(a(torch.flatten(f.max_pool2d(x, 2), 1)).relu()), nn.Linear(384, 20), nn.Linear(20, 5)
    ),
    "recognizer": image(
        lambda x, a, b: b(a(x.mean(2).permute(0, 2, 1))[0]).log_softmax(-1),
        nn.LSTM(8, 6, batch_first=True, bidirectional=True), nn.Linear(12, 9),
    ),
    "lstm": tokens(lambda x, a: a(x)[0], nn.LSTM(16, 8, batch_first=True)),
    "lstm_last": tokens(lambda x, a: a(x)[1][0][-1], nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True)),
    "gru": tokens(lambda x, a: a(x)[0], nn.GRU(16, 8, batch_first=True)),
    "gru_both": tokens(lambda x, a: a(x)[0].mean(1), nn.GRU(16, 8, 2, batch_first=True, bidirectional=True)),
    "rnn": tokens(lambda x, a: a(x)[0], nn.RNN(16, 8, batch_first=True)),
    "attention": tokens(attend, nn.Linear(16, 48)),
    "fused_attention": tokens(lambda x, a: heads(x, a, causal=False), nn.Linear(16, 48)),
    "causal_attention": tokens(lambda x, a: heads(x, a, causal=True), nn.Linear(16, 48, bias=False)),
    "multihead": tokens(lambda x, a: a(x, x, x, need_weights=False)[0], nn.MultiheadAttention(16, 4, batch_first=True)),
    "encoder": tokens(lambda x, a: a(x), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)),
    "encoder_gelu": tokens(
        lambda x, a: a(x), nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", norm_first=True, batch_first=True)
    ),
    "rotary": tokens(rotary),
    "rms_norm": tokens(lambda x, a: a(x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6)), nn.Linear(16, 16)),
    "gated": tokens(lambda x, a, b, c: c(f.silu(a(x)) * b(x)), nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)),
    "text_convolution": tokens(lambda x, a: f.glu(a(x.transpose(1, 2)), 1).amax(2), nn.Conv1d(16, 12, 3, padding=1)),
    "positions": tokens(lambda x: x * math.sqrt(16) + torch.sin(torch.arange(x.shape[1])[:, None] / (torch.arange(16) + 1.0))),
    "mlp": rows(lambda x, a: a(x.relu()), nn.Linear(12, 4)),
    "mlp_norm": rows(lambda x, a, b: b(a(x)).tanh() * x, nn.BatchNorm1d(12), nn.Linear(12, 12)),
    "normalized": rows(lambda x: f.normalize(x, dim=1) @ f.normalize(torch.ones(5, 12), dim=1).t()),
    "outer": rows(lambda x: (x[:, :, None] * x[:, None, :]).flatten(1) + torch.outer(x[0], x[0]).flatten()),
    "scattered": rows(lambda x: torch.zeros_like(x).scatter(1, x.argsort(1)[:, :3], x[:, :3])),
    "fourier": rows(lambda x: torch.cat([(x[..., None] * 2.0 ** torch.arange(4)).flatten(1).sin(), x.cos()], 1)),
    "remainders": rows(lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.3) + x.sign() + x.ceil()),
}  # fmt: skip
"""Small nets of what models do beside convolutions."""

VISION = {
    "alexnet": 64, "squeezenet1_1": 64, "shufflenet_v2_x0_5": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "mnasnet0_5": 64,
    "efficientnet_b0": 64, "regnet_y_400mf": 64, "resnet18": 64, "densenet121": 64, "googlenet": 64, "vgg11_bn": 64,
    "lraspp_mobilenet_v3_large": 64, "deeplabv3_mobilenet_v3_large": 64,
}  # fmt: skip
"""Nets of torchvision's by name, with the height and width of what they are fed."""

TIMM = {
    "ghostnet_050": 64, "lcnet_050": 64, "mobilenetv4_conv_small_050": 64, "mobilevitv2_050": 64, "repghostnet_050": 64,
    "convnext_atto": 64, "convnextv2_atto": 64, "inception_next_atto": 64, "mobilevit_xxs": 64, "edgenext_xx_small": 64,
    "fastvit_t8": 64, "mobileone_s0": 64, "starnet_s050": 64, "efficientformerv2_s0": 224, "hgnetv2_b0": 64, "poolformer_s12": 64,
    "pit_ti_224": 224, "levit_128s": 224, "xcit_nano_12_p16_224": 224, "coat_lite_tiny": 224, "resmlp_12_224": 224, "dla34": 64,
    "tinynet_e": 64, "vit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224, "efficientvit_b0": 64, "nfnet_l0": 64,
}  # fmt: skip
"""Nets of timm's, likewise."""

_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 99,
}
_DECODER = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 99, "n_positions": 32, "use_cache": False}

TEXT: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", _SMALL), "roberta": ("Roberta", _SMALL), "electra": ("Electra", _SMALL | {"embedding_size": 16}),
    "albert": ("Albert", _SMALL | {"embedding_size": 16}), "mpnet": ("MPNet", _SMALL), "gpt2": ("GPT2", _DECODER),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "vocab_size": 99}),
    "llama": ("Llama", _SMALL | {"use_cache": False}), "qwen": ("Qwen2", _SMALL | {"use_cache": False, "num_key_value_heads": 1}),
}  # fmt: skip
"""Models of transformers' that read tokens: the beginning of their class, and what their configurations have."""


def nets() -> Iterator[tuple[str, Callable[[], Net]]]:
    """Yield the name of each net, and what makes it and what it is fed."""
    yield from OWN.items()
    for name, size in VISION.items():
        yield f"torchvision_{name}", partial(_fed, partial(_vision, name), size)
    for name, size in TIMM.items():
        yield f"timm_{name}", partial(_fed, partial(timm.create_model, name, num_classes=10), size)
    for name, (kind, options) in TEXT.items():
        yield f"text_{name}", partial(_text, kind, options)
    vision = {"image_size": 32, "patch_size": 8, **_SMALL}
    vision.pop("vocab_size")
    for kind in ("ViT", "DeiT", "Dinov2"):
        yield f"image_{kind.lower()}", partial(_fed, partial(_made, kind, vision, "pixel_values"), 32)
    small = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 2]}
    yield "image_segformer", partial(_fed, partial(_made, "Segformer", small, "pixel_values"), 64)


def _fed(make: Callable[[], nn.Module], size: int) -> Net:
    return make(), (torch.randn(2, 3, size, size),)


def _vision(name: str) -> nn.Module:
    own: dict[str, Any] = {"weights_backbone": None} if "v3_large" in name else {}
    own |= {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    net = torchvision.models.get_model(name, weights=None, num_classes=10, **own)
    return Then(net, lambda found: found["out"] if isinstance(found, dict) else found, ())


def _made(kind: str, options: dict[str, Any], *names: str) -> nn.Module:
    config = getattr(transformers, f"{kind}Config")(**options)
    config._attn_implementation = "eager"
    return Plain(getattr(transformers, f"{kind}Model")(config), *names)


def _text(kind: str, options: dict[str, Any]) -> Net:
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[:, 9:] = 0
    return _made(kind, options, "input_ids", "attention_mask"), (torch.randint(3, 99, (2, 12)), mask)


def export(name: str, make: Callable[[], Net], exporter: str, opset: int, opened: bool, out: Path) -> None:
    """Write a net as ONNX, what it is fed, and what ONNX Runtime computes of that."""
    torch.manual_seed(zlib.crc32(name.encode()))
    net, inputs = make()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    net.eval()
    given = inputs if opened else tuple(value[:1] for value in inputs)
    path = out / f"{name}_{exporter}{opset}.onnx"
    own: dict[str, Any] = {"dynamo": False}
    if exporter == "dynamo":
        dims = {0: torch.export.Dim.DYNAMIC}
        own = {"dynamo": True, "external_data": False, "verbose": False}
        own |= {"dynamic_shapes": (tuple(dims for _ in given),)} if opened else {}
    elif opened:
        own["dynamic_axes"] = {f"x{at}": {0: "n"} for at in range(len(given))}
    names = [f"x{at}" for at in range(len(given))]
    model_path = path.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(net, given, model_path, opset_version=opset, input_names=names, **own)
    model = onnx.load(model_path)
    model_path.unlink()
    for node in model.graph.node:
        del node.metadata_props[:]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {value.name: fed[:1].numpy() for value, fed in zip(session.get_inputs(), inputs, strict=True)}
    found = session.run(None, feeds)
    (out / "io").mkdir(exist_ok=True)
    np.savez(
        out / "io" / f"{path.stem}.npz",
        names=np.array([value.name for value in session.get_outputs()]),
        **{f"i:{key}": value for key, value in feeds.items()},
        **{f"o:{at:02}": value for at, value in enumerate(found)},
    )
    onnx.save(model, path)


def main() -> None:
    """Export the nets that are not there yet."""
    parser = argparse.ArgumentParser(description="Export small and published nets of PyTorch's.")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--only", default="", help="the nets with this in their name")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for at, (name, make) in enumerate(nets()):
        for exporter, opset, opened in EXPORTS[at % 2]:
            if given.only not in name or (given.out / f"{name}_{exporter}{opset}.onnx").exists():
                continue
            try:
                export(name, make, exporter, opset, opened, given.out)
            except Exception as error:  # exporters raise classes of their own
                print(
                    f"{name} is not exported by {exporter} at {opset}: {' '.join(str(error).split())[:160]}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
