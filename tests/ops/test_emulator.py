"""The emulator of CUDA kernels: each of its checks notices a small kernel with that mistake, and lets the correct one pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from emulator import AT_ONCE, LATE, MODES, Emulator, Grid, Mode, needs_compiler, tensor_maps, translated_text, unwritten

pytestmark = needs_compiler
NAME = Path("kernel.cu")
KERNEL = 'extern "C" __global__ void kernel(int* c) {{ {body} }}'
WARPS = """
#include "warpgroups.cuh"
#include "tma.cuh"
"""


def run(
    emulator: Emulator, body: str, mode: Mode = LATE, *, threads: int = 32, blocks: int = 1, cluster: int = 1
) -> str:
    """The error of a kernel that gets the address of 64 numbers."""
    program = emulator.program(NAME, "kernel", {}, text=WARPS + KERNEL.format(body=body))
    numbers = torch.zeros(64, dtype=torch.int32)
    grid = Grid(blocks=blocks, threads=threads, shared_bytes=8192, cluster=cluster)
    return program.run([numbers], grid, mode)


LANE = "const unsigned to = aligned_shared_memory(); const unsigned t = threadIdx.x;"
BARRIER = f"{LANE} if (t == 0) {{ barrier_init(to, 2); }} __syncthreads();"
ERRORS = {
    "an address that is not aligned": (f"{LANE} unsigned a, b; load_two(a, b, to + 8 * t + 4);", "not a multiple of 8"),
    "an address after shared memory": (
        f"{LANE} unsigned a, b; load_two(a, b, to + 8 * t + 8192);",
        "outside of shared",
    ),
    "a bank conflict of loads": (f"{LANE} unsigned a, b; load_two(a, b, to + 128 * t);", "a bank conflict of a load"),
    "a bank conflict of stmatrix": (f"{LANE} store_matrices(to + 128 * t, 0, 0, 0, 0);", "a bank conflict of stmatrix"),
    "a barrier that not all threads reach": (
        "if (threadIdx.x < 31) { __syncthreads(); }",
        "waits for what never happens",
    ),
    "an mbarrier that is not initialised": (f"{LANE} barrier_wait(to, 0);", "not initialised"),
    "an mbarrier that is not aligned": (f"{LANE} barrier_init(to + 4, 1);", "not a multiple of 8"),
    "too few arrivals": (f"{BARRIER} if (t == 0) {{ barrier_arrive(to); }} barrier_wait(to, 0);", "never happens"),
    "too many arrivals": (
        f"{BARRIER} if (t == 0) {{ barrier_expect(to, 16); barrier_arrive(to); barrier_arrive(to); }}",
        "more arrivals",
    ),
    "bytes that never arrive": (
        f"{BARRIER} if (t == 0) {{ barrier_expect(to, 16); barrier_arrive(to); }} barrier_wait(to, 0);",
        "never happens",
    ),
    "the barrier of another warpgroup": ("warpgroup_barrier(1);", "the barrier of another warpgroup"),
}
CORRECT = {
    "loads of 8 bytes": f"{LANE} unsigned a, b; load_two(a, b, to + 8 * t);",
    "stmatrix": f"{LANE} store_matrices(to + 16 * t, 0, 0, 0, 0);",
    "a barrier": "__syncthreads();",
    "an mbarrier": f"{BARRIER} if (t < 2) {{ barrier_arrive(to); }} barrier_wait(to, 0);",
}


@pytest.mark.parametrize("mistake", ERRORS)
def test_a_mistake_is_an_error(mistake: str, emulator: Emulator) -> None:
    body, message = ERRORS[mistake]
    for mode in MODES:
        threads = 128 if mistake == "the barrier of another warpgroup" else 32
        assert message in run(emulator, body, mode, threads=threads)


@pytest.mark.parametrize("name", CORRECT)
def test_what_is_correct_is_no_error(name: str, emulator: Emulator) -> None:
    for mode in MODES:
        assert run(emulator, CORRECT[name], mode) == ""


def test_an_arrival_at_a_block_that_has_ended_is_an_error(emulator: Emulator) -> None:
    body = f"{BARRIER} cluster_barrier(); if (blockIdx.x == 0 && t == 0) {{ barrier_arrive_at(to, 1); }}"
    assert "has ended" in run(emulator, body, blocks=2, cluster=2)
    assert run(emulator, body + " cluster_barrier();", blocks=2, cluster=2) == ""


def test_threads_and_blocks_run_in_either_order(emulator: Emulator) -> None:
    """And static shared memory is not a number at the beginning of each block."""
    body = """__shared__ float one; if (threadIdx.x == 0) { c[63] += one == one; one = 1.0f; }
              if (c[0] == 0) { c[0] = 1 + threadIdx.x + 100 * blockIdx.x; }"""
    program = emulator.program(NAME, "kernel", {}, text=KERNEL.format(body=body))
    for mode, first in ((LATE, 1), (AT_ONCE, 1 + 63 + 100)):
        numbers = torch.zeros(64, dtype=torch.int32)
        assert program.run([numbers], Grid(blocks=2, threads=64), mode) == ""
        assert numbers[0] == first
        assert numbers[63] == 0


COPY = """#include "mma.cuh"
extern "C" __global__ void kernel(const char* a, unsigned* c) {{
    const unsigned t = threadIdx.x, shared = shared_memory();
    copy_async<16>(shared + 16 * t, a + 16 * t{offset}, true);
    commit_copies();
    {wait}
    unsigned value;
    load_shared(value, shared + 4 * t);
    c[t] = value;
}}
"""


@pytest.mark.parametrize(
    ("wait", "offset", "late", "at_once"),
    [
        ("wait_for_copies<0>(); __syncthreads();", "", "", ""),
        ("", "", "wrong", ""),
        ("wait_for_copies<0>(); __syncthreads();", " + 16", "reads outside", "reads outside"),
        ("wait_for_copies<0>(); __syncthreads();", " + 4", "not aligned", "not aligned"),
    ],
)
def test_asynchronous_copies_arrive_late_or_at_once(
    wait: str, offset: str, late: str, at_once: str, emulator: Emulator
) -> None:
    program = emulator.program(NAME, "kernel", {}, text=COPY.format(wait=wait, offset=offset))
    a = torch.arange(128, dtype=torch.int32)
    for mode, expected in ((LATE, late), (AT_ONCE, at_once)):
        c = torch.zeros(32, dtype=torch.int32)
        error = program.run([a, c], Grid(blocks=1, threads=32, shared_bytes=512), mode, readable=(a,))
        assert expected in (error or ("" if torch.equal(c, a[:32]) else "wrong"))
        assert bool(error) == ("reads" in expected or "aligned" in expected)


BOXES = """#include "tma.cuh"
#include "warpgroups.cuh"
extern "C" __global__ void kernel(const char* maps) {{
    const unsigned box = aligned_shared_memory(), barrier = box + 1024;
    if (threadIdx.x == 0) {{
        barrier_init(barrier, 1);
        barrier_expect(barrier, 1024);
        load_box(box{offset}, maps, 64, 0, barrier);
        {wait}
    }}
    __syncthreads();
    {before}
    if (threadIdx.x == 0) {{
        store_box(box, maps + 128, 0, 0);
        {again}
        store_commit();
        {end}
    }}
}}
"""
BOX = {"offset": "", "wait": "barrier_wait(barrier, 0);", "before": "", "again": "", "end": "store_wait();"}
MATRICES = "store_matrices(box + 16 * threadIdx.x, 0, 0, 0, 0);"
BOX_ERRORS = {
    "a box at a wrong address": ({"offset": " + 128"}, "where its swizzle does"),
    "a store of a box before it is loaded": ({"wait": ""}, "that has ended"),
    "a store that nobody waits for": ({"end": ""}, "ends before its stores"),
    "a store of what TMA may not see": ({"before": MATRICES}, "may not see"),
    "an element that is stored twice": ({"again": "store_box(box, maps + 128, 0, 0);"}, "written twice"),
    "an arrival too many at the mbarrier of a box": ({"wait": "barrier_arrive(barrier);"}, "more arrivals"),
}


def copied(emulator: Emulator, changes: dict[str, str], mode: Mode) -> str:
    """The error of a kernel that copies 8 rows of 64 columns through shared memory, or whether the copy is wrong."""
    program = emulator.program(NAME, "kernel", {}, text=BOXES.format(**BOX | changes))
    a, c = torch.randn(7, 96).bfloat16(), unwritten((8, 64), torch.bfloat16)
    expected = torch.zeros(8, 64).bfloat16()
    expected[:7, :32] = a[:, 64:]  # beyond the matrix are zeros
    error = program.run([tensor_maps([(a, 8), (c, 8)])], Grid(blocks=1, threads=32, shared_bytes=4096), mode)
    return error or ("" if torch.equal(c, expected) else "wrong")


def test_boxes_are_copied_with_zeros_around_the_matrix(emulator: Emulator) -> None:
    for mode in MODES:
        assert copied(emulator, {}, mode) == ""
        assert copied(emulator, {"before": MATRICES + " fence_for_tma(); __syncthreads();"}, mode) == "wrong"


@pytest.mark.parametrize("mistake", BOX_ERRORS)
def test_a_mistake_with_boxes_is_noticed_late_or_at_once(mistake: str, emulator: Emulator) -> None:
    changes, message = BOX_ERRORS[mistake]
    assert any(message in copied(emulator, changes, mode) for mode in MODES)


def test_an_instruction_that_is_not_known_is_not_left_out() -> None:
    assert (
        translated_text('asm volatile("bar.sync %0, 128;" ::"r"(f(x) + 1));')
        == "emulated::barrier_of_threads(f(x) + 1, 128);"
    )
    with pytest.raises(ValueError, match="not enough values to unpack"):
        translated_text('asm volatile("nanosleep.u32 100;");')
