"""Operators of other domains that onnx-migrate cannot replace by standard ones, each with advice on what to do."""

from __future__ import annotations

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.registration import not_written

_PLAIN = "export the model again without ONNX Runtime's transformer tools (onnxruntime.transformers)"

not_written(
    "com.microsoft.nchwc::*",
    why="its weights stand in blocks as wide as the registers of the machine that saved the model, which the file does not name",
    hint="save the model at ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL",
)
not_written(
    "com.ms.internal.nhwc::* com.microsoft::NhwcConv com.microsoft::NhwcFusedConv",
    why="ONNX Runtime has no CPU kernel for it, so nothing could verify the result",
    hint="save the model at ORT_ENABLE_EXTENDED with the CPU provider",
)
not_written(
    "com.microsoft::BeamSearch com.microsoft::GreedySearch com.microsoft::Sampling com.microsoft::WhisperBeamSearch",
    why="it searches for a text, running the models that it holds as sub-graphs once for each word",
    hint="export the decoder alone, and search in the program that runs it",
)
not_written(
    "com.microsoft::DynamicQuantizeLSTM",
    why="it quantises its input and its state anew in every step, which LSTM does not",
    hint=(
        Advice("quantise the model without LSTM (op_types_to_quantize of quantize_dynamic)"),
        Advice(
            "write it as LSTM of dequantised weights with --quantized-form float",
            options={"quantized_form": "float"},
        ),
    ),
)
not_written(
    "com.microsoft::PackedAttention com.microsoft::PackedMultiHeadAttention com.microsoft::RemovePadding"
    " com.microsoft::RestorePadding com.microsoft::PagedAttention com.microsoft::LongformerAttention"
    " com.microsoft::DecoderMaskedSelfAttention com.microsoft::GatedRelativePositionBias com.microsoft::QOrderedAttention"
    " com.microsoft::QOrderedGelu com.microsoft::QOrderedLayerNormalization com.microsoft::QOrderedLongformerAttention"
    " com.microsoft::QOrderedMatMul",
    why="ONNX Runtime has no CPU kernel for it, so nothing could verify the result",
    hint=_PLAIN,
)
not_written(
    "com.microsoft::QMoE",
    why="it runs the quantised experts that each row chooses, which would be all of them, unpacked, in the standard's operators",
    hint="export the model with experts of floats, as MoE, which is written",
)
not_written(
    "com.microsoft::SparseAttention",
    why="ONNX Runtime runs it only where the host binds one buffer for each cache before and after, so that no result could be"
    " compared",
    hint="export the model with GroupQueryAttention or MultiHeadAttention, which are written",
)
not_written(
    "com.microsoft::BiasDropout com.microsoft::BitmaskBiasDropout com.microsoft::BitmaskDropout",
    why="it drops elements by chance, as in a training",
    hint="export the model for inference (torch.onnx.export of a model in eval mode)",
)
not_written(
    "com.microsoft::EPContext com.microsoft::Snpe",
    why="it holds a program that was compiled for one device",
    hint="migrate the original model, before its compilation",
)
not_written(
    "com.microsoft::*",
    why="onnx-migrate has no form of it in the standard's operators",
    hint=(
        Advice("save the model at ORT_ENABLE_BASIC, or export it without the tool that writes this operator"),
        Advice("with --best-effort the node stays, for ONNX Runtime alone", options={"best_effort": True}),
    ),
)
not_written(
    "ai.onnx.contrib::*",
    why="it is of onnxruntime-extensions, for texts, sounds and images, which the standard has no operators for",
    hint="export the model without its tokenizer or its image reader, and run these before it",
)
