"""Occupancy against figures that NVIDIA publishes, and what is not known."""

from __future__ import annotations

import msgspec
import planted_limits as plant
import pytest
import sample_runs as samples

from kernelviz.core.run import Device
from kernelviz.metrics.occupancy import LIMITS, Occupancy, ResidencyLimit, occupancy
from kernelviz.text.limiter import format_residency_limit


def on(capability: tuple[int, int]) -> Device:
    return msgspec.structs.replace(samples.H200, compute_capability=capability)


def of(capability: tuple[int, int], **how: int) -> Occupancy:
    found = occupancy(plant.kernel(1e-6, **how), on(capability))
    assert found is not None
    return found


def test_the_examples_of_the_best_practices_guide() -> None:
    """CUDA C++ Best Practices Guide, "Calculating Occupancy": on 7.0, 37 registers a thread allow 12 blocks of 128 threads
    (75 %), but only 4 of 320 (63 %)."""
    first, second = of((7, 0), threads=128, registers=37), of((7, 0), threads=320, registers=37)
    assert (first.blocks, first.fraction) == (12, 0.75)
    assert (second.blocks, second.fraction) == (4, 0.625)
    assert first.limited_by == second.limited_by == ResidencyLimit("registers", 37)


@pytest.mark.parametrize(
    ("capability", "how", "blocks", "why"),
    [
        ((9, 0), {"threads": 32, "registers": 16}, 32, "32 blocks per SM"),
        ((8, 6), {"threads": 32, "registers": 16}, 16, "16 blocks per SM"),
        ((8, 9), {"threads": 1024, "registers": 32}, 1, "1,024 threads per block"),
        ((9, 0), {"threads": 384, "registers": 168, "shared": 100 * 1024}, 1, "168 registers per thread"),
        # 227 KiB are the most that a block may ask for on 9.0; CUDA's own KiB fills the 228.
        ((9, 0), {"threads": 64, "registers": 32, "shared": 227 * 1024}, 1, "227 KiB of shared memory per block"),
        ((9, 0), {"threads": 64, "registers": 32, "shared": 113 * 1024}, 2, "113 KiB of shared memory per block"),
        ((8, 0), {"threads": 256, "registers": 255}, 1, "255 registers per thread"),
    ],
)
def test_what_allows_no_more_blocks(capability: tuple[int, int], how: dict[str, int], blocks: int, why: str) -> None:
    found = of(capability, **how)
    assert (found.blocks, format_residency_limit(found.limited_by)) == (blocks, why)
    assert found.fraction == blocks * -(-how["threads"] // 32) / LIMITS[capability].warps


def test_every_listed_architecture_can_hold_a_full_block() -> None:
    for capability in LIMITS:
        assert of(capability, threads=1024, registers=32).blocks >= 1
        assert of(capability, threads=256, registers=32).fraction == 1.0


def test_what_is_not_known_is_not_guessed() -> None:
    made = plant.kernel(1e-6)
    assert occupancy(made, on((13, 7))) is None
    assert occupancy(made, samples.CPU) is None
    for field in ("block", "registers_per_thread", "shared_memory_bytes"):
        assert occupancy(msgspec.structs.replace(made, **{field: None}), on((9, 0))) is None
    without_sms = msgspec.structs.replace(samples.H200, multiprocessors=None)
    found = occupancy(made, without_sms)
    assert found is not None
    assert found.waves is None
