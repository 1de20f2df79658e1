"""Liger Kernel's rotary position embedding, bound to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


def bind(
    q_TH2P: Tensor,
    k_TH2P: Tensor,
    cos_TP: Tensor,
    sin_TP: Tensor,
    *,
    back: bool = False,
    names: tuple[str, str] = ("q_TH2P", "k_TH2P"),
) -> Launch:
    """The op in place, or its backward pass (`back`); `names` are those of the two tensors in error messages.

    Liger takes (batch, heads, tokens, head dimension) and transposes back, so its `contiguous` copies nothing for the view
    that it gets here. It would rotate a copy of other tensors: raises BadField for tensors that are not contiguous.
    """
    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    from liger_kernel.ops.rope import rope_backward, rope_forward

    call = rope_backward if back else rope_forward
    heads = tuple(t.flatten(2)[None].transpose(1, 2) for t in (q_TH2P, k_TH2P))
    rotary = 2 * cos_TP.shape[1]

    def launch() -> Tensors:
        call(*heads, cos_TP, sin_TP, rotary_dim=rotary)
        return q_TH2P, k_TH2P

    return launch
