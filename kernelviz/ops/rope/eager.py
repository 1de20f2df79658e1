"""`rope` of torch ops and of Liger, bound to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch, Tensors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.rope.reference import turned

if TYPE_CHECKING:
    from torch import Tensor


def _turned_as_llama(x_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    """Llama's `rotate_half` line by line: x · cos + cat(-z, x) · sin, each step rounded to the format of the tensors."""
    import torch

    x_THD = x_TH2P.flatten(2)
    cos_T1D = torch.cat((cos_TP, cos_TP), -1)[:, None]
    sin_T1D = torch.cat((sin_TP, sin_TP), -1)[:, None]
    half = x_THD.shape[-1] // 2
    rotated_THD = torch.cat((-x_THD[..., half:], x_THD[..., :half]), -1)
    return (x_THD * cos_T1D + rotated_THD * sin_T1D).reshape(x_TH2P.shape)


def rope_as_llama(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> tuple[Tensor, Tensor]:
    return _turned_as_llama(q_TH2P, cos_TP, sin_TP), _turned_as_llama(k_TH2P, cos_TP, sin_TP)


def rope_in_fp32(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> tuple[Tensor, Tensor]:
    wide = cos_TP.float(), sin_TP.float()
    return turned(q_TH2P.float(), *wide).to(q_TH2P.dtype), turned(k_TH2P.float(), *wide).to(k_TH2P.dtype)


def bind_by_halves(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor, sign: int) -> Launch:
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


def bind_liger(
    q_TH2P: Tensor,
    k_TH2P: Tensor,
    cos_TP: Tensor,
    sin_TP: Tensor,
    *,
    back: bool = False,
    names: tuple[str, str] = ("q_TH2P", "k_TH2P"),
) -> Launch:
    """Liger takes (batch, heads, tokens, head dimension) and transposes back; of that view of ours its `contiguous` is free.

    Of others it would turn a copy: raises BadField for tensors that are not contiguous.
    """
    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    from liger_kernel.ops.rope import rope_backward, rope_forward

    call = rope_backward if back else rope_forward
    given = tuple(t.flatten(2)[None].transpose(1, 2) for t in (q_TH2P, k_TH2P))
    rotary = 2 * cos_TP.shape[1]

    def launch() -> Tensors:
        call(*given, cos_TP, sin_TP, rotary_dim=rotary)
        return q_TH2P, k_TH2P

    return launch
