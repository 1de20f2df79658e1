"""The ops `conv2d` and `conv_bias_relu`: their cost, their presets and their variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import CostModel, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Strided, TensorSpec
from kernelviz.ops.convolution import best
from kernelviz.ops.convolution.fusion import FUSION
from kernelviz.ops.convolution.geometry import covered, positions
from kernelviz.ops.convolution.reference import RELU_RULE, RULE, bound, reference, relu_bound, relu_reference
from kernelviz.ops.convolution.variants import VARIANTS
from kernelviz.ops.convolution.variants_bias_relu import BIAS_RELU_VARIANTS
from kernelviz.ops.convolution.variants_wgmma import WGMMA_VARIANTS


def cost_of(*, bias_relu: bool) -> CostModel:
    """A product and an addition for each of C R² terms of an element, also where the filter lies on padding.

    Read once: the pixels that the filter covers, the filters and the bias. Written once: y.

    >>> sizes = {"n": 2, "h": 5, "w": 4, "c": 8, "k": 16, "r": 3, "s": 1}
    >>> cost_of(bias_relu=False)(sizes, 2)
    Cost(work_flop=92160, read_bytes=2944, written_bytes=1280)
    >>> cost_of(bias_relu=True)(sizes, 2)
    Cost(work_flop=93440, read_bytes=2976, written_bytes=1280)
    >>> cost_of(bias_relu=False)(sizes | {"r": 1, "s": 2}, 2)
    Cost(work_flop=3072, read_bytes=448, written_bytes=384)
    """

    def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
        n, c, k, r = (sizes[axis] for axis in "nckr")
        pixels, pixels_read = n, n
        for axis in "hw":
            pixels *= positions(sizes[axis], r, sizes["s"])
            pixels_read *= covered(sizes[axis], r, sizes["s"])
        return Cost(
            work_flop=2 * pixels * k * c * r * r + bias_relu * 2 * pixels * k,
            read_bytes=(pixels_read * c + k * r * r * c + bias_relu * k) * itemsize_bytes,
            written_bytes=pixels * k * itemsize_bytes,
        )

    return cost


_AXES = (
    Axis(name="n", caption="images", default="256", cpu_default="2"),
    Axis(name="h", caption="rows of an image", default="14", cpu_default="14"),
    Axis(name="w", caption="columns of an image", default="h", cpu_default="h"),
    Axis(name="c", caption="input channels", default="256", cpu_default="32"),
    Axis(name="k", caption="filters (output channels)", default="c", cpu_default="c"),
    Axis(
        name="r", caption="side of a filter; the padding is half of it, rounded down", default="1,3", cpu_default="1,3"
    ),
    Axis(name="s", caption="stride", default="1", cpu_default="1"),
)
_INPUTS = (
    TensorSpec(name="x_NHWC", axes=("n", "h", "w", "c")),
    TensorSpec(name="w_KRRC", axes=("k", "r", "r", "c")),
)
_OUTPUTS = (TensorSpec(name="y_NPQK", axes=("n", Strided("h", "r", "s"), Strided("w", "r", "s"), "k")),)


def _preset(name: str, caption: str, n: int, h: str, c: str, k: str, r: int, s: int = 1) -> Preset:
    sizes = {"n": str(n), "h": h, "w": "h", "c": c, "k": k, "r": str(r), "s": str(s)}
    return Preset(name=name, caption=caption, sizes=sizes)


# ResNet-50 with the stride in the 3×3 convolutions, as torchvision has it. In a stage, channels times rows is a constant.
_PRESETS = (
    _preset("resnet-50-3x3", "ResNet-50, 3×3, 256 images", 256, "56,28,14,7", "3584/h", "c", 3),
    _preset("resnet-50-3x3-stride-2", "ResNet-50, 3×3 with stride 2, 256 images", 256, "56,28,14", "7168/h", "c", 3, 2),
    _preset("resnet-50-reduce", "ResNet-50, 1×1 to fewer channels, 256 images", 256, "56,28,14,7", "14336/h", "c/4", 1),
    _preset("resnet-50-expand", "ResNet-50, 1×1 to more channels, 256 images", 256, "56,28,14,7", "3584/h", "4*c", 1),
    _preset(
        "resnet-50-downsample", "ResNet-50, 1×1 with stride 2, 256 images", 256, "56,28,14", "14336/h", "2*c", 1, 2
    ),
    _preset("sd-1.5", "Stable Diffusion 1.5, 3×3, 2 images", 2, "64,32,16", "20480/h", "c", 3),
)

CONV2D = Op(
    name="conv2d",
    family="convolution",
    summary="Convolution of images in NHWC with square filters and padding of half a filter",
    formula="y = x ∗ w, padded by ⌊r/2⌋",
    axes=_AXES,
    dtypes=("bf16", "fp16"),
    inputs=_INPUTS,
    outputs=_OUTPUTS,
    cost=cost_of(bias_relu=False),
    reference=reference,
    bound=bound,
    rule=RULE,
    baseline="torch_eager",
    best=best.conv2d,
    first=("torch_eager", "torch_cudnn_search", "cuda_im2col", "triton_implicit", "cuda_wgmma_parts"),
    variants=(*VARIANTS, *WGMMA_VARIANTS),
    presets=_PRESETS,
    slab="n",
)
CONV_BIAS_RELU = Op(
    name="conv_bias_relu",
    family="convolution",
    summary="Convolution of images in NHWC, then a bias and relu, which can be fused into it",
    formula="y = max(x ∗ w + b, 0), padded by ⌊r/2⌋",
    axes=_AXES,
    dtypes=("bf16", "fp16"),
    inputs=(*_INPUTS, TensorSpec(name="b_K", axes=("k",))),
    outputs=_OUTPUTS,
    cost=cost_of(bias_relu=True),
    reference=relu_reference,
    bound=relu_bound,
    rule=RELU_RULE,
    baseline="torch_eager",
    best=best.conv_bias_relu,
    first=("torch_eager", "torch_compile", "torch_cudnn_fused", "triton_implicit", "cuda_wgmma_fused"),
    variants=BIAS_RELU_VARIANTS,
    presets=_PRESETS,
    slab="n",
    fusion=FUSION,
)
