"""Run in a process of its own: the TTGIR of `gluon_warp_specialised` of matmul for an H100 that is not there, one JSON line for
each JSON line of settings."""

from __future__ import annotations

import json
import sys

import torch
import triton
from compiled_only import triton_driver

from kernelviz.ops.matmul import gluon

M, N, K = 384, 768, 704


def ttgir(settings: dict[str, int]) -> str:
    gluon.gluon_kernel.device_caches.clear()
    a_MK, b_KN = torch.empty((M, K), dtype=torch.bfloat16), torch.empty((K, N), dtype=torch.bfloat16)
    gluon.bind_warp_specialised(a_MK, b_KN, **settings)()
    (kernel,) = next(iter(gluon.gluon_kernel.device_caches.values()))[0].values()
    return str(kernel.asm["ttgir"])


if __name__ == "__main__":
    triton.runtime.driver.set_active(triton_driver("sm_90"))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(ttgir(json.loads(line))) + "\n")
