"""The variants of `paged_attention_decode`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.attention_decode.variants_kernels import kernel_variants
from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def composite_eager(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Pages copied into contiguous caches, then scores, torch.softmax and weighted sum with fp32 copies of them."""
    from kernelviz.ops.attention_decode.torch import composite, gathered
    from kernelviz.ops.kernels.torch_precision import in_precision

    def launch() -> Tensor:
        return composite(q_BHD, *gathered(k_pages_NPHD, v_pages_NPHD, table_BN, l))

    return in_precision(launch, q_BHD.float(), None)


@variant(backend="torch")
def torch_eager(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Launch:
    """Pages copied into contiguous caches, then scaled_dot_product_attention: the caches are read twice and written once."""
    from kernelviz.ops.attention_decode.torch import attention, gathered

    return lambda: attention(q_BHD, *gathered(k_pages_NPHD, v_pages_NPHD, table_BN, l))


PAGED_VARIANTS = (composite_eager, torch_eager, *kernel_variants(paged=True))
