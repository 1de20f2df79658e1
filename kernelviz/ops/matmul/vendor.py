"""The matrix product of torch's libraries, in exactly the precision that the problem names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.op import Launch

if TYPE_CHECKING:
    from torch import Tensor


def bind_mm(a_MK: Tensor, b_KN: Tensor, compute: str | None) -> Launch:
    """torch.mm with one process-wide setting held for the length of the call, and put back: other variants share it.

    fp32: the precision of the arithmetic. fp16, bf16: partial sums of a split K stay in fp32, which torch by default lets
    cuBLAS round to 16 bits. Captured graphs keep what was chosen while they were captured. Raises BadField for tf32 on a CPU.
    """
    import torch

    settings = torch.backends.cuda.matmul
    c_MN = torch.empty((a_MK.shape[0], b_KN.shape[1]), dtype=a_MK.dtype, device=a_MK.device)
    name: str
    value: str | bool
    if not a_MK.is_cuda:
        if compute == "tf32":
            raise BadField("compute", compute, "tf32 is arithmetic of NVIDIA's tensor cores; choose ieee on a CPU")
        return lambda: torch.mm(a_MK, b_KN, out=c_MN)
    if a_MK.dtype == torch.float32:
        name, value = "fp32_precision", compute or "ieee"
    else:
        short = "bf16" if a_MK.dtype == torch.bfloat16 else "fp16"
        name, value = f"allow_{short}_reduced_precision_reduction", False

    def launch() -> Tensor:
        before = getattr(settings, name)
        setattr(settings, name, value)
        try:
            return torch.mm(a_MK, b_KN, out=c_MN)
        finally:
            setattr(settings, name, before)

    return launch
