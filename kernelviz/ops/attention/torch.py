"""Attention by torch: step by step, and by each of the libraries that scaled_dot_product_attention calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.autograd import backward_of
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention import SDPBackend

Attention: TypeAlias = "Callable[[Tensor, Tensor, Tensor], Tensor]"
"""From q (B, S, Hq, D), k and v (B, S, Hk, D) to o (B, S, Hq, D)."""


def composite(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, *, causal: bool) -> Tensor:
    """Product, division, mask, softmax and product, each into a tensor of the inputs' format."""
    import torch

    group = q_BSHD.shape[2] // k_BSHD.shape[2]
    q_BHSD = q_BSHD.transpose(1, 2)
    k_BHSD, v_BHSD = (t.repeat_interleave(group, 2).transpose(1, 2) for t in (k_BSHD, v_BSHD))
    scores_BHSS = torch.matmul(q_BHSD, k_BHSD.transpose(2, 3)) / float(q_BSHD.shape[-1]) ** 0.5
    if causal:
        later_SS = torch.ones(scores_BHSS.shape[2:], dtype=torch.bool, device=q_BSHD.device).triu(1)
        scores_BHSS = scores_BHSS.masked_fill(later_SS, -torch.inf)
    return torch.matmul(scores_BHSS.softmax(-1), v_BHSD).transpose(1, 2).contiguous()


def full_composite(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Tensor:
    """`composite` with all keys: a function of the module, so that what torch.compile makes of it is used again."""
    return composite(q_BSHD, k_BSHD, v_BSHD, causal=False)


def causal_composite(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Tensor:
    """`composite` with keys up to the position of a query."""
    return composite(q_BSHD, k_BSHD, v_BSHD, causal=True)


def scaled_dot_product(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, *, causal: bool) -> Tensor:
    """torch's own function; (B, S, H, D) is what it calls (B, H, S, D) with exchanged strides."""
    from torch.nn import functional

    o_BHSD = functional.scaled_dot_product_attention(
        q_BSHD.transpose(1, 2),
        k_BSHD.transpose(1, 2),
        v_BSHD.transpose(1, 2),
        is_causal=causal,
        enable_gqa=q_BSHD.shape[2] != k_BSHD.shape[2],
    )
    return o_BHSD.transpose(1, 2).contiguous()


def by_library(library: SDPBackend, *, causal: bool) -> Attention:
    """`scaled_dot_product` by one library."""
    from torch.nn.attention import sdpa_kernel

    def attention(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Tensor:
        with sdpa_kernel(library):
            return scaled_dot_product(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    return attention


def backward_pass(attention: Attention, q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
    """Autograd of a function. Gradients that come with exchanged strides are copied, as an optimiser would have to."""
    return contiguous(backward_of(attention, (q_BSHD, k_BSHD, v_BSHD), (do_BSHD,), (0, 1, 2)))


def contiguous(staged: Staged) -> Staged:
    """The same launch with contiguous results."""

    def call() -> tuple[Tensor, ...]:
        return tuple(gradient.contiguous() for gradient in staged.call())

    return Staged(staged.forward, call)


def _require(library: SDPBackend, q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, causal: bool) -> None:
    """Raises BadField where the library does not take these tensors, and for those that are not contiguous."""
    import torch
    from torch.nn.attention import SDPBackend

    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    grouped = q_BSHD.shape[2] != k_BSHD.shape[2]
    q_BHSD, k_BHSD, v_BHSD = (t.transpose(1, 2) for t in (q_BSHD, k_BSHD, v_BSHD))
    parameters = torch.backends.cuda.SDPAParams(q_BHSD, k_BHSD, v_BHSD, None, 0.0, causal, grouped)
    takes = {
        SDPBackend.FLASH_ATTENTION: torch.backends.cuda.can_use_flash_attention,
        SDPBackend.CUDNN_ATTENTION: torch.backends.cuda.can_use_cudnn_attention,
    }[library]
    if q_BSHD.device.type == "cuda" and not takes(parameters):
        raise BadField(
            "size d", q_BSHD.shape[-1], f"torch's {library.name} does not take these sizes; choose torch_eager"
        )


def bind_library(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, library: SDPBackend, *, causal: bool) -> Launch:
    """`by_library` on these tensors. Raises BadField where that library does not take them."""
    _require(library, q_BSHD, k_BSHD, v_BSHD, causal)
    attention = by_library(library, causal=causal)
    return lambda: attention(q_BSHD, k_BSHD, v_BSHD)


def bind_library_backward(
    q_BSHD: Tensor,
    k_BSHD: Tensor,
    v_BSHD: Tensor,
    do_BSHD: Tensor,
    library: SDPBackend,
    *,
    causal: bool,
) -> Launch:
    """The backward pass of that library. Raises BadField where it does not take these tensors."""
    # With requires_grad, torch asks the library for what its backward pass takes, too.
    leaves = [t.detach().requires_grad_() for t in (q_BSHD, k_BSHD, v_BSHD)]
    _require(library, leaves[0], leaves[1], leaves[2], causal)
    return backward_pass(by_library(library, causal=causal), q_BSHD, k_BSHD, v_BSHD, do_BSHD)
