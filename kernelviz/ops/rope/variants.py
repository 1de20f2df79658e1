"""Rotary position embedding: every pair of a head's numbers is turned by an angle that its token and its place name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, variant
from kernelviz.ops.rope import eager
from kernelviz.ops.rope.reference import BACKWARD, OUTPUTS, RULE, TABLES, K, Q, bound, cost, reference

if TYPE_CHECKING:
    from torch import Tensor


def _composite_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(eager.rope_as_llama, (q, k, cos, sin), (dq, dk), (0, 1))


@variant(backend="torch", sources=("eager.py",), backward=_composite_backward)
def composite_eager(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Llama's rotate_half as written: negate, concatenate, two products and a sum, each a pass over all heads."""
    return lambda: eager.rope_as_llama(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _eager_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    return eager.bind_by_halves(dq, dk, cos, sin, -1)


@variant(backend="torch", sources=("eager.py",), backward=_eager_backward)
def torch_eager(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Eager by halves, into tensors that are there: mul and addcmul_, so nothing is concatenated and less is passed over."""
    return eager.bind_by_halves(q_TH2P, k_TH2P, cos_TP, sin_TP, 1)


def _compiled_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(eager.rope_in_fp32, (q, k, cos, sin), (dq, dk), (0, 1))


@variant(backend="inductor", needs=("inductor",), late=True, sources=("eager.py",), backward=_compiled_backward)
def torch_compile(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """torch.compile of the turn in float32, rounded at the end: inductor fuses its steps."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(eager.rope_in_fp32, q_TH2P, k_TH2P, cos_TP, sin_TP)


IN_PLACE = ("q_TH2P", "k_TH2P")
IN_PLACE_BOTH_WAYS = (*IN_PLACE, "dq_TH2P", "dk_TH2P")


def _liger_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    return eager.bind_liger(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="library",
    needs=("liger", "triton", "cuda"),
    sources=("eager.py",),
    mutates=IN_PLACE_BOTH_WAYS,
    backward=_liger_backward,
)
def liger(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Liger's Triton kernel: one program a token turns all heads in place; products in the format of the tensors."""
    return eager.bind_liger(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _token_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",), backward=_token_backward)
def triton_token(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Triton, one program a token: its row of cosines and sines is read once for all heads; computed in fp32."""
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _in_place_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(dq, dk, cos, sin, back=True, in_place=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    sources=("triton.py",),
    mutates=IN_PLACE_BOTH_WAYS,
    backward=_in_place_backward,
)
def triton_in_place(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Triton, the same in place: no memory for a result, yet every byte is still read and written once."""
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(q_TH2P, k_TH2P, cos_TP, sin_TP, in_place=True)


def _vec16_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"), backward=_vec16_backward)
def cuda_vec16(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """CUDA C++, 16-byte words of both halves; a thread keeps its cosines and sines in registers for several heads."""
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _vec16_in_place_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(dq, dk, cos, sin, back=True, in_place=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    sources=("cuda.cu", "cuda.py"),
    mutates=IN_PLACE_BOTH_WAYS,
    backward=_vec16_in_place_backward,
)
def cuda_in_place(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """CUDA C++, the same in place: what was read lies in L2 still when it is written."""
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(q_TH2P, k_TH2P, cos_TP, sin_TP, in_place=True)


TOKENS = "1,16,64,512,4096,16384"


def _preset(name: str, caption: str, hq: int, hk: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"t": TOKENS, "hq": str(hq), "hk": str(hk), "p": "64"})


OPS = (
    Op(
        name="rope",
        family="attention",
        summary="Rotary position embedding of queries and keys, as Llama pairs a head's numbers: first half with second half",
        formula="(x, z) → (x cos − z sin, z cos + x sin)",
        axes=(
            Axis(name="t", caption="tokens", default="2^8..2^14", cpu_default="64,256,1024"),
            Axis(name="hq", caption="query heads", default="32", cpu_default="8"),
            Axis(name="hk", caption="key heads", default="8", cpu_default="2"),
            Axis(name="p", caption="pairs a head, half its dimension", default="64", cpu_default="64"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(Q, K, *TABLES),
        outputs=OUTPUTS,
        cost=cost,
        reference=reference,
        bound=bound,
        rule=RULE,
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "liger", "triton_token", "cuda_vec16"),
        variants=(
            composite_eager,
            torch_eager,
            torch_compile,
            liger,
            triton_token,
            triton_in_place,
            cuda_vec16,
            cuda_in_place,
        ),
        presets=(
            _preset("llama-3-8b", "Llama 3 8B: 32 query and 8 key heads of 128", 32, 8),
            _preset("llama-3-70b", "Llama 3 70B: 64 query and 8 key heads of 128", 64, 8),
            _preset("qwen2.5-7b", "Qwen2.5 7B: 28 query and 4 key heads of 128", 28, 4),
            Preset(
                name="large",
                caption="Far larger than any L2: 640 MiB of heads in bf16",
                sizes={"t": "2^15", "hq": "32", "hk": "8", "p": "64"},
            ),
        ),
        slab="t",
        backward=BACKWARD,
    ),
)
