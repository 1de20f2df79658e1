"""What the tables of docs/kernels.md show of convolutions and linear_cross_entropy: ops, sizes and variants of each run."""

from __future__ import annotations

from documented_plan import Documented

from kernelviz.ops import op_named

RESNET_50 = (
    *("resnet-50-3x3", "resnet-50-3x3-stride-2", "resnet-50-reduce", "resnet-50-expand"),
    "resnet-50-downsample",
)
CONV2D = (
    *("torch_eager", "torch_cudnn_search", "triton_implicit", "gluon_boxes"),
    *("cuda_wgmma_by_size", "cuda_wgmma_resident", "cuda_wgmma_parts"),
)


def _of_preset(op: str, preset: str, variants: tuple[str, ...] | None) -> Documented:
    sizes = next(p.sizes for p in op_named(op).presets if p.name == preset)
    return Documented(op, dict(sizes), variants)


CONVOLUTION = {
    **{f"conv2d-{preset}": _of_preset("conv2d", preset, CONV2D) for preset in (*RESNET_50, "sd-1.5")},
    "conv2d-ladder": Documented(
        "conv2d", {"n": "256", "h": "14", "w": "14", "c": "256", "k": "256", "r": "3", "s": "1"}
    ),
    "conv-bias-relu": _of_preset("conv_bias_relu", "resnet-50-3x3", None),
}
_LLAMA = {"m": "8192", "h": "4096", "v": "128256"}
LOSS = {
    "linear-cross-entropy": Documented("linear_cross_entropy", _LLAMA),
    "linear-cross-entropy-product": Documented(
        "matmul_nt", {"m": "8192", "n": "128256", "k": "4096"}, ("torch_eager", "cuda_wgmma")
    ),
    "linear-cross-entropy-backward": Documented(
        "linear_cross_entropy",
        _LLAMA,
        ("torch_eager", "torch_chunked", "liger", "triton_tiles", "cuda_wgmma"),
        direction="backward",
    ),
}
