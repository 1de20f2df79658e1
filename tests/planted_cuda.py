"""A variant of `add` that breaks the CUDA context. Given to a worker as a plug-in, never imported by a test process."""

import triton
import triton.language as tl

from kernelviz.ops import Launch, variant


@triton.jit
def stray_write(pointer, far):
    tl.store(pointer + far, 1.0)


@variant(op="add", backend="triton", needs=("triton", "cuda"))
def illegal_address(x_N, y_N) -> Launch:
    """Writes a tebibyte behind its output."""
    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        stray_write[(1,)](out_N, 2**38)
        return out_N

    return launch
