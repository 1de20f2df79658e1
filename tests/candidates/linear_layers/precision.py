"""Products of torch's libraries in exactly the precision that the problem names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.matmul.torch import _setting

if TYPE_CHECKING:
    from torch import Tensor


def in_precision(product: Launch, a: Tensor, compute: str | None) -> Launch:
    """A launch with products, with `precision` for the duration of each call (1 µs). `a`: a factor. A captured graph keeps the
    kernel chosen while it was captured. Errors: as `precision`."""
    if not a.is_cuda:
        with precision(a, compute):
            return product

    def launch() -> Tensor | Tensors:
        with precision(a, compute):
            return product()

    return launch


@contextmanager
def precision(a: Tensor, compute: str | None) -> Iterator[None]:
    """A setting of torch, which is global to the process, for products with the factor `a`.

    fp32: the precision of the arithmetic. fp16, bf16: partial sums of a split K stay in fp32, which torch by default lets
    cuBLAS round to 16 bits. Raises BadField for tf32 on a CPU.
    """
    import torch

    if not a.is_cuda:
        if compute == "tf32":
            raise BadField("compute", compute, "tf32 is arithmetic of NVIDIA's tensor cores; choose ieee on a CPU")
        yield
        return
    name, value = _setting(str(a.dtype), compute)
    settings = torch.backends.cuda.matmul
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)
