"""How far PyTorch's own half numbers are from float32, and those of `--precision fp16` of the same nets.

    pip install torch torchvision timm transformers onnx onnxscript           # in an environment of its own
    python benchmarks/half_numbers.py --export FOLDER                         # NAME.onnx and NAME.npz
    python -m benchmarks.half_numbers FOLDER                                  # with onnx-migrate

Five nets of random weights run on one input by PyTorch on the CPU, in float32 and after `model.half()`. What is printed is the
largest difference from float32 as a share of the largest magnitude: of PyTorch's half, of the migrated export with every value
rounded, and of that in ONNX Runtime.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def export(folder: Path) -> None:
    """Export the nets, with an input and what PyTorch computes on it."""
    import torch

    for seed, (name, make) in enumerate(_NETS.items()):
        torch.manual_seed(seed)
        net, inputs = make()
        with torch.no_grad():
            _calibrate(net, inputs[0])
            names = [f"input_{place}" for place in range(len(inputs))]
            whole = net(*inputs)
            torch.onnx.export(
                net, inputs, folder / f"{name}.onnx", dynamo=True, external_data=False, input_names=names
            )
            halves = [value.half() if value.is_floating_point() else value for value in inputs]
            half = net.half()(*halves).float()
        fed = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
        np.savez(folder / f"{name}.npz", whole=whole.numpy(), half=half.numpy(), **fed)


def _calibrate(net: Any, first: Any) -> None:
    """Let batch normalisations have the statistics of random images, as those of a trained net."""
    import torch

    norms = [part for part in net.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
    if norms:
        net.train()
        for _ in range(2):
            net(torch.rand(4, *first.shape[1:]))
    net.eval()


def _resnet() -> Any:
    import torch
    import torchvision

    return torchvision.models.resnet18(), (torch.rand(1, 3, 224, 224),)


def _vit() -> Any:
    import timm
    import torch

    return timm.create_model("vit_tiny_patch16_224", num_classes=1000), (torch.rand(1, 3, 224, 224),)


def _unet() -> Any:
    import torch
    from torch import nn
    from torch.nn.functional import interpolate, max_pool2d

    def block(given: int, made: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(4, made), nn.GELU())

    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([block(3, 16), block(16, 32), block(32, 64)])
            self.up = nn.ModuleList([block(96, 32), block(48, 16)])
            self.last = nn.Conv2d(16, 2, 1)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            first = self.down[0](image)
            second = self.down[1](max_pool2d(first, 2))
            third = self.down[2](max_pool2d(second, 2))
            wide = self.up[0](torch.cat((interpolate(third, scale_factor=2, mode="bilinear"), second), 1))
            return self.last(self.up[1](torch.cat((interpolate(wide, scale_factor=2), first), 1))).softmax(1)

    return Unet(), (torch.rand(1, 3, 128, 128),)


def _logits(model: Any, *names: str) -> Any:
    """Return a model of transformers' as a net of positional inputs that gives the logits."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            given = dict(zip(names, inputs, strict=True))
            return self.model(**given, use_cache=False, return_dict=True).logits

    return Logits()


def _whisper() -> Any:
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        d_model=256, encoder_layers=4, decoder_layers=4, encoder_attention_heads=8, decoder_attention_heads=8,
        encoder_ffn_dim=1024, decoder_ffn_dim=1024, vocab_size=2000, max_source_positions=100, num_mel_bins=80,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    net = _logits(WhisperForConditionalGeneration(config), "input_features", "decoder_input_ids")
    return net, (torch.randn(1, 80, 200), torch.randint(3, 2000, (1, 12)))


def _gpt() -> Any:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=6, n_head=8, n_embd=256, vocab_size=5000, attn_implementation="eager")
    return _logits(GPT2LMHeadModel(config), "input_ids"), (torch.randint(0, 5000, (1, 32)),)


_NETS: dict[str, Callable[[], Any]] = {
    "resnet18": _resnet, "vit": _vit, "unet": _unet, "whisper": _whisper, "gpt2": _gpt
}  # fmt: skip


def compare(folder: Path) -> None:
    """Migrate the exports, run them, and print how far each is off."""
    import onnxruntime

    import onnx_migrate
    from onnx_migrate.verify import Runnable
    from onnx_migrate.verify.evaluators import STRICT, open_model

    for source in sorted(folder.glob("*.onnx")):
        numbers = np.load(source.with_suffix(".npz"))
        result = onnx_migrate.migrate(str(source), precision="fp16", simplify="no").model
        feeds = {value.name: numbers[value.name] for value in result.graph.input}
        structure = result.SerializeToString()
        strict = next(iter(open_model(Runnable(structure=structure), STRICT).run(feeds).values()))
        run = onnxruntime.InferenceSession(structure, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        shares = [_share(numbers["whole"], value) for value in (numbers["half"], strict, run)]
        print(source.stem, "PyTorch {:.1e}, onnx-migrate {:.1e}, in ONNX Runtime {:.1e}".format(*shares))


def _share(expected: Any, given: Any) -> float:
    return float(np.abs(given.astype(np.float32) - expected).max() / np.abs(expected).max())


def main() -> None:
    """Export in an environment with PyTorch, or compare in one with onnx-migrate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--export", action="store_true", help="export the nets, with PyTorch")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    (export if arguments.export else compare)(arguments.folder)


if __name__ == "__main__":
    main()
