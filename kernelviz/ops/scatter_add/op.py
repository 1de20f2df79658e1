"""Rows added where ids say: the gradient of an embedding. Several rows may name one place, so somebody must wait or sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; rows and ids of 8 bytes read once, sums that are named at least once read and written once.

    The ids are all sums in random order, begun again where there are fewer sums than ids: min(t, v) different ones.

    >>> cost({"v": 100, "t": 300, "d": 1024}, 2)
    Cost(work_flop=307200, read_bytes=821600, written_bytes=204800)
    >>> cost({"v": 300, "t": 100, "d": 1024}, 2)
    Cost(work_flop=102400, read_bytes=410400, written_bytes=204800)
    """
    t, row_bytes = sizes["t"], sizes["d"] * itemsize_bytes
    named_bytes = min(t, sizes["v"]) * row_bytes
    return Cost(work_flop=t * sizes["d"], read_bytes=named_bytes + t * row_bytes + 8 * t, written_bytes=named_bytes)


def reference(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensors:
    """x with each row of src added to the row that its id names."""
    return (x_VD.index_add(0, ids_T, src_TD),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + 2 √K 2^-24 Σ|terms|: K terms an element (x and the rows with its id) summed in fp32, rounded once.

    K terms take K - 1 roundings, each of at most 2^-24 of a partial sum, so of Σ|terms|; they come in any order, as atomic
    additions do. 2 √K is at least K - 1 up to K = 5; beyond that roundings of either sign grow as √K. A sum that is
    kept in a 16-bit format is rounded to u of itself at each addition, and not allowed: fp32 is what a problem declares.
    """
    import torch

    x_VD, src_TD, ids_T = inputs
    terms_V = torch.bincount(ids_T, minlength=x_VD.shape[0]) + 1
    sizes_VD = x_VD.abs().index_add(0, ids_T, src_TD.abs())
    return (2 * FP32_ROUNDOFF * terms_V[:, None].sqrt() * sizes_VD + stored(outputs[0], problem.dtype),)


IN_PLACE = ("x_VD",)
NARROW = ("bf16", "fp16")


@variant(backend="torch", mutates=IN_PLACE)
def torch_eager(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_add_, an atomic addition an element on a GPU; 16-bit sums are widened to fp32 for it and rounded at the end."""
    if x_VD.element_size() == 4:
        return lambda: x_VD.index_add_(0, ids_T, src_TD)
    return lambda: x_VD.copy_(x_VD.float().index_add_(0, ids_T, src_TD.float()))


@variant(backend="torch", needs=("cuda",), mutates=IN_PLACE, dtypes=NARROW)
def torch_index_add_16bit(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_add_ on 16-bit tensors as one would write it; claimed to be the same sum: it is rounded at every addition."""
    return lambda: x_VD.index_add_(0, ids_T, src_TD)


@variant(backend="torch", needs=("cuda",), mutates=IN_PLACE, dtypes=("fp32",))
def torch_index_put(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """index_put_ with accumulate: it sorts the ids and adds up each run of equal ones (of 16-bit numbers not in fp32)."""
    return lambda: x_VD.index_put_((ids_T,), src_TD, accumulate=True)


def _added(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.float().index_add(0, ids_T, src_TD.float()).to(x_VD.dtype)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """torch.compile of index_add in float32, out of place: a kernel that copies the sums, and one of atomic additions."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(_added, x_VD, src_TD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",), mutates=IN_PLACE)
def triton_atomics(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, fp32 atomic additions, tiles of rows a program; 16-bit sums need an fp32 copy first and a rounding after."""
    from kernelviz.ops.scatter_add import triton as kernels

    return kernels.bind_atomics(x_VD, src_TD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",), mutates=IN_PLACE)
def triton_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """torch.sort of the ids within the call, then Triton: one program a sum adds up its rows, so nothing is atomic."""
    from kernelviz.ops.scatter_add import triton as kernels

    return kernels.bind_segments(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"), mutates=IN_PLACE)
def cuda_atomics(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one fp32 atomic addition an element; 16-bit sums need an fp32 copy first and a rounding after."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics(x_VD, src_TD, ids_T)


@variant(
    backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda_sm90.cu", "cuda.cu", "cuda.py"), mutates=IN_PLACE
)
def cuda_atomics_vec16(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, four fp32 additions an atomic instruction (red.v4.f32, sm_90): a quarter of the requests to L2."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics_vec16(x_VD, src_TD, ids_T)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    sources=("cuda_sm90.cu", "cuda.py"),
    mutates=IN_PLACE,
    dtypes=NARROW,
)
def cuda_atomics_16bit(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, eight 16-bit additions an atomic instruction; claimed to save the fp32 copy: it rounds at every addition."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_atomics_16bit(x_VD, src_TD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"), mutates=IN_PLACE)
def cuda_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, a counting sort of the ids, then each sum adds up its rows in registers: read and written once, not atomic."""
    from kernelviz.ops.scatter_add import cuda as kernels

    return kernels.bind_segments(x_VD, src_TD, ids_T)


def _preset(name: str, caption: str, v: int, d: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"v": str(v), "t": "512,4096,16384", "d": str(d)})


OPS = (
    Op(
        name="scatter_add",
        family="layout",
        summary="Sum of rows into the rows that ids name, in place",
        formula="x[ids[i]] += s[i]",
        axes=(
            Axis(name="v", caption="sums", default="2^13", cpu_default="2^10"),
            Axis(name="t", caption="rows added", default="2^10..2^17", cpu_default="2^8,2^10,2^12"),
            Axis(name="d", caption="row length", default="1024", cpu_default="256"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(
            TensorSpec(name="x_VD", axes=("v", "d")),
            TensorSpec(name="src_TD", axes=("t", "d")),
            TensorSpec(name="ids_T", axes=("t",), dtype="int64", below="v", ids="permutation"),
        ),
        outputs=(TensorSpec(name="y_VD", axes=("v", "d")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="|error| ≤ 1.01 u |y| + 2 √K 2⁻²⁴ Σ|terms|, K terms a sum: in fp32, any order, rounded once to the output's format",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_segments", "cuda_atomics_vec16", "cuda_segments"),
        variants=(
            torch_eager,
            torch_index_add_16bit,
            torch_index_put,
            torch_compile,
            triton_atomics,
            triton_segments,
            cuda_atomics,
            cuda_atomics_vec16,
            cuda_atomics_16bit,
            cuda_segments,
        ),
        presets=(
            Preset(
                name="large",
                caption="Eight rows a sum: 65536 rows of 1024 into 8192 sums, and four times as many",
                sizes={"v": "2^13", "t": "2^16,2^18", "d": "1024"},
            ),
            Preset(
                name="few",
                caption="Few sums of many rows: every atomic addition waits for another",
                sizes={"v": "8,64,512", "t": "2^16", "d": "1024"},
            ),
            _preset("llama-3-8b", "Llama 3 8B: gradient of the embedding, 128256 × 4096", 128256, 4096),
            _preset("gpt-2", "GPT-2: gradient of the embedding, 50257 × 768", 50257, 768),
            _preset("bert-base", "BERT base: gradient of the embedding, 30522 × 768", 30522, 768),
        ),
    ),
)
