"""Products of torch's libraries, in exactly the precision that the problem names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.torch_precision import setting_of

if TYPE_CHECKING:
    from torch import Tensor


def bind_mm(a_MK: Tensor, b_KN: Tensor, compute: str | None) -> Launch:
    """torch.mm with a setting of torch, which is global to the process, changed for the duration of each call (1 µs).

    fp32: the precision of the arithmetic. fp16, bf16: partial sums of a split K stay in fp32, which torch by default lets
    cuBLAS round to 16 bits. A captured graph keeps the kernel chosen while it was captured. Raises BadField for tf32 on a CPU.
    """
    import torch

    c_MN = torch.empty((a_MK.shape[0], b_KN.shape[1]), dtype=a_MK.dtype, device=a_MK.device)
    if not a_MK.is_cuda:
        if compute == "tf32":
            raise BadField("compute", compute, "tf32 is arithmetic of NVIDIA's tensor cores; choose ieee on a CPU")
        return lambda: torch.mm(a_MK, b_KN, out=c_MN)
    name, value = setting_of(str(a_MK.dtype), compute)
    settings = torch.backends.cuda.matmul

    def launch() -> Tensor:
        before = getattr(settings, name)
        setattr(settings, name, value)
        try:
            return torch.mm(a_MK, b_KN, out=c_MN)
        finally:
            setattr(settings, name, before)

    return launch
