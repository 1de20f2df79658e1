"""The ops of this folder by torch: written out, and by scaled_dot_product_attention with a backend of our choice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.attention_heads import group_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


def composite(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Tensor:
    """o (B, Hq, D) by products with fp32 copies of q and of the caches, and torch.softmax."""
    import torch

    b, hq, d = q_BHD.shape
    hk = k_BLHD.shape[2]
    q_BHGD = q_BHD.float().reshape(b, hk, group_of(hq, hk), d)
    s_BHGL = torch.matmul(q_BHGD, k_BLHD.float().permute(0, 2, 3, 1)) * (1 / math.sqrt(d))
    o_BHGD = torch.matmul(s_BHGL.softmax(-1), v_BLHD.float().transpose(1, 2))
    return o_BHGD.reshape(b, hq, d).to(q_BHD.dtype)


def attention(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Tensor:
    """o (B, Hq, D), contiguous, by scaled_dot_product_attention with grouped heads, whose backend torch chooses."""
    import torch

    grouped = group_of(q_BHD.shape[1], k_BLHD.shape[2]) > 1
    o_BH1D = torch.nn.functional.scaled_dot_product_attention(
        q_BHD[:, :, None], k_BLHD.transpose(1, 2), v_BLHD.transpose(1, 2), enable_gqa=grouped
    )
    return o_BH1D[:, :, 0].contiguous()


def gathered(k_pages_NPHD: Tensor, v_pages_NPHD: Tensor, table_BN: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Contiguous copies of both caches, (B, L, Hk, D) each (views of copies of whole pages)."""
    import torch

    flat_T = table_BN.reshape(-1)
    shape = (*table_BN.shape, *k_pages_NPHD.shape[1:])
    copies = (torch.index_select(pages, 0, flat_T).view(shape) for pages in (k_pages_NPHD, v_pages_NPHD))
    k_BLHD, v_BLHD = (copy.flatten(1, 2)[:, :length] for copy in copies)
    return k_BLHD, v_BLHD


def forced(backend: str, run: Callable[[], Tensor]) -> Launch:
    """`run` with the one backend of scaled_dot_product_attention of this name (of torch.nn.attention.SDPBackend).

    Errors: BadField where that backend does not take the problem.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    one = getattr(SDPBackend, backend)

    def launch() -> Tensor:
        with sdpa_kernel([one]):
            return run()

    try:
        launch()
    except RuntimeError as error:
        if "kernel" not in str(error).lower() and "cudnn" not in str(error).lower():
            raise
        reason = str(error).splitlines()[0]
        raise BadField("backend", backend, f"torch has no such kernel for this problem ({reason})") from error
    return launch
