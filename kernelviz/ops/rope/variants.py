"""The variants of `rope` in the order of the ladder: eager, a compiler, Liger, then kernels out of place and in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.rope.reference import rotated

if TYPE_CHECKING:
    from torch import Tensor

IN_PLACE = ("q_TH2P", "k_TH2P", "dq_TH2P", "dk_TH2P")
"""Tensors that the variants in place overwrite in either direction."""


def _rotated_as_llama(x_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    """Llama's `rotate_half` line by line: x · cos + cat(-z, x) · sin, each step rounded to the format of the tensors."""
    import torch

    x_THD = x_TH2P.flatten(2)
    cos_T1D = torch.cat((cos_TP, cos_TP), -1)[:, None]
    sin_T1D = torch.cat((sin_TP, sin_TP), -1)[:, None]
    half = x_THD.shape[-1] // 2
    rotated_THD = torch.cat((-x_THD[..., half:], x_THD[..., :half]), -1)
    return (x_THD * cos_T1D + rotated_THD * sin_T1D).reshape(x_TH2P.shape)


def rope_as_llama(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> tuple[Tensor, Tensor]:
    """The op as Llama's code computes it."""
    return _rotated_as_llama(q_TH2P, cos_TP, sin_TP), _rotated_as_llama(k_TH2P, cos_TP, sin_TP)


def rope_in_fp32(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> tuple[Tensor, Tensor]:
    """The op in float32, rounded once at the end."""
    tables = cos_TP.float(), sin_TP.float()
    return rotated(q_TH2P.float(), *tables).to(q_TH2P.dtype), rotated(k_TH2P.float(), *tables).to(k_TH2P.dtype)


def bind_by_halves(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor, sign: int) -> Launch:
    """The op half by half into allocated tensors, with the sine multiplied by `sign` (1, or -1 for the backward pass)."""
    import torch

    pairs = [(t.unbind(2), torch.empty(t.shape, dtype=t.dtype, device=t.device)) for t in (q_TH2P, k_TH2P)]
    cos_T1P, sin_T1P = cos_TP[:, None], sin_TP[:, None]

    def launch() -> Tensors:
        for (x_THP, z_THP), out_TH2P in pairs:
            left_THP, right_THP = out_TH2P.unbind(2)
            torch.mul(x_THP, cos_T1P, out=left_THP)
            left_THP.addcmul_(z_THP, sin_T1P, value=-sign)
            torch.mul(z_THP, cos_T1P, out=right_THP)
            right_THP.addcmul_(x_THP, sin_T1P, value=sign)
        return tuple(out for _, out in pairs)

    return launch


def _composite_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(rope_as_llama, (q, k, cos, sin), (dq, dk), (0, 1))


@variant(backend="torch", backward=_composite_backward)
def composite_eager(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Llama's rotate_half as written: negation, concatenation, two products and a sum, each a pass over all heads."""
    return lambda: rope_as_llama(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _eager_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    return bind_by_halves(dq, dk, cos, sin, -1)


@variant(backend="torch", backward=_eager_backward)
def torch_eager(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Eager, half by half into allocated tensors: mul and addcmul_, so no concatenation and fewer passes."""
    return bind_by_halves(q_TH2P, k_TH2P, cos_TP, sin_TP, 1)


def _compiled_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(rope_in_fp32, (q, k, cos, sin), (dq, dk), (0, 1))


@variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=_compiled_backward)
def torch_compile(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """torch.compile of the rotation in float32, rounded at the end: inductor fuses its steps."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(rope_in_fp32, q_TH2P, k_TH2P, cos_TP, sin_TP)


def _liger_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import liger as kernels

    return kernels.bind(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="library",
    needs=("liger", "triton", "cuda"),
    mutates=IN_PLACE,
    backward=_liger_backward,
)
def liger(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Liger's Triton kernel: one program per token rotates all heads in place; products in the format of the tensors."""
    from kernelviz.ops.rope import liger as kernels

    return kernels.bind(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _token_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(backend="triton", needs=("triton", "cuda"), backward=_token_backward)
def triton_token(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Triton, one program per token, which reads its row of cosines and sines once for all heads; computed in fp32."""
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _in_place_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(dq, dk, cos, sin, back=True, in_place=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    mutates=IN_PLACE,
    backward=_in_place_backward,
)
def triton_in_place(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """Triton, the same in place: no memory for a result, but every byte is still read and written once."""
    from kernelviz.ops.rope import triton as kernels

    return kernels.bind_token(q_TH2P, k_TH2P, cos_TP, sin_TP, in_place=True)


def _vec16_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(dq, dk, cos, sin, back=True, names=("dq_TH2P", "dk_TH2P"))


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=_vec16_backward, techniques=("vec16",))
def cuda_vec16(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """CUDA C++, 16-byte vectors of both halves; a thread keeps its cosines and sines in registers for several heads.

    Few elements have narrower vectors, one of each half a thread; many heads of halves that are no wider vectors are rotated in
    shared memory.
    """
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(q_TH2P, k_TH2P, cos_TP, sin_TP)


def _vec16_in_place_backward(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, dq: Tensor, dk: Tensor) -> Launch:
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(dq, dk, cos, sin, back=True, in_place=True, names=("dq_TH2P", "dk_TH2P"))


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    mutates=IN_PLACE,
    backward=_vec16_in_place_backward,
)
def cuda_in_place(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Launch:
    """CUDA C++, the same in place: the lines that were read are still in L2 when they are written."""
    from kernelviz.ops.rope import cuda as kernels

    return kernels.bind_vec16(q_TH2P, k_TH2P, cos_TP, sin_TP, in_place=True)


VARIANTS = (
    composite_eager,
    torch_eager,
    torch_compile,
    liger,
    triton_token,
    triton_in_place,
    cuda_vec16,
    cuda_in_place,
)
