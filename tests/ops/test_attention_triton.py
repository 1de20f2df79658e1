"""Schedules of the persistent kernels of attention, and sequences that the published kernel refuses."""

import pytest

from kernelviz.core.errors import BadField
from kernelviz.ops.attention.tile_schedule import causal_schedule, schedule_table


@pytest.mark.parametrize(
    ("tiles", "heads", "programs"), [(1, 1, 1), (8, 256, 132), (32, 64, 132), (128, 16, 132), (5, 7, 24)]
)
@pytest.mark.parametrize("causal", [False, True])
def test_a_schedule_has_every_tile_once(tiles: int, heads: int, programs: int, causal: bool) -> None:
    torch = pytest.importorskip("torch")
    table = schedule_table(tiles, heads, programs, torch.device("cpu"), causal=causal)
    assert table.shape[1] == programs
    assert table.is_contiguous()
    assert sorted(table[table >= 0].tolist()) == list(range(tiles * heads))


@pytest.mark.parametrize(("tiles", "heads"), [(8, 256), (32, 64), (128, 16), (32, 128)])
def test_causal_programs_end_at_about_the_same_time(tiles: int, heads: int) -> None:
    """Back and forth through 132 programs, 128 tiles of a head would leave them idle for a quarter of the time."""
    costs = [sum(number % tiles + 2 for number in numbers) for numbers in causal_schedule(tiles, heads, programs=132)]
    assert max(costs) < 1.02 * sum(costs) / len(costs)


def test_programs_that_compute_at_the_same_time_read_the_keys_of_neighbouring_heads() -> None:
    first_round = [numbers[0] // 32 for numbers in causal_schedule(tiles=32, heads=64, programs=132)]
    assert set(first_round) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(("dimension", "longest"), [(64, 512), (128, 256), (256, 128)])
def test_published_kernel_refuses_rows_that_do_not_fit(dimension: int, longest: int) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from kernelviz.ops.attention.triton import bind_published

    fits, too_long = (torch.zeros(1, s, 1, dimension, dtype=torch.float16) for s in (longest, longest + 1))
    bind_published(fits, fits, fits, causal=False)
    with pytest.raises(BadField, match="size s"):
        bind_published(too_long, too_long, too_long, causal=False)


def test_kernels_refuse_more_heads_or_sequences_than_a_grid_has() -> None:
    pytest.importorskip("triton")
    import torch

    from kernelviz.ops.attention.triton import bind_published
    from kernelviz.ops.attention_decode import triton as decode
    from kernelviz.ops.attention_decode.cache import cache_of
    from kernelviz.ops.attention_decode.tiles import Tile

    most = 65535
    q_BSHD = torch.zeros(most + 1, 1, 1, 64, dtype=torch.float16)
    bind_published(q_BSHD[:most], q_BSHD[:most], q_BSHD[:most], causal=False)
    with pytest.raises(BadField, match="choose triton_flash"):
        bind_published(q_BSHD, q_BSHD, q_BSHD, causal=False)
    cache = cache_of((q_BSHD[:, 0], q_BSHD, q_BSHD), 1, paged=False)
    with pytest.raises(BadField, match="at most 65535 sequences; choose triton_packed"):
        decode.bind_split(cache, Tile(keys_kib=16, warps=4, stages=2, blocks=1))
