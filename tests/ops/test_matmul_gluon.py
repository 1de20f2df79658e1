"""The Gluon kernel of `matmul`: its partitions, executed from the compiled TTGIR, never wait for each other for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from barriers_of_ttgir import run_program

TESTS = Path(__file__).parents[1]
M, N, K = 384, 768, 704
SETTINGS = {
    "default": {},
    "three stages, two parts": {"stages": 3, "parts": 2},
    "two stages, one ahead": {"stages": 2, "lead": 1},
    "two ahead": {"lead": 2},
    "narrow": {"tile_n": 128, "stages": 6, "parts": 2, "buffers": 1},
}
DEFAULT = {"tile_m": 128, "tile_n": 256, "tile_k": 64, "stages": 4, "group": 8, "parts": 4, "buffers": 2, "lead": 0}

pytestmark = pytest.mark.xdist_group("compile-0")


@pytest.fixture(scope="module")
def ttgir(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of each of SETTINGS."""
    pytest.importorskip("triton.experimental.gluon")
    paths = os.pathsep.join(map(str, (TESTS.parent, TESTS, TESTS / "ops")))
    environment = os.environ | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    environment.pop("TRITON_INTERPRET", None)
    asked = "\n".join(json.dumps(DEFAULT | settings) for settings in SETTINGS.values())
    command = [sys.executable, TESTS / "ops" / "compiled_gluon.py"]
    done = subprocess.run(command, input=asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(zip(SETTINGS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_partitions_end_and_multiply_all_that_was_loaded(name: str, seed: int, ttgir: dict[str, str]) -> None:
    settings, programs = DEFAULT | SETTINGS[name], 2
    rows, columns, deep = settings["tile_m"], settings["tile_n"], settings["tile_k"]
    tiles = []
    for program in range(programs):
        machine = run_program(ttgir[name], {"m": M, "n": N, "k": K}, program, programs, seed)
        first, second = machine.products.values()
        assert first == second
        steps = -(-K // deep)
        for i in range(0, len(first), steps):
            ((_, row, _), (_, _, column)) = first[i]
            assert first[i : i + steps] == [(("a", row, deep * s), ("b", deep * s, column)) for s in range(steps)]
            tiles.append((row, column))
    assert sorted(tiles) == [(row, column) for row in range(0, M, rows) for column in range(0, N, columns)]


def test_a_slot_that_is_never_freed_is_noticed(ttgir: dict[str, str]) -> None:
    """Triton drops a loop-carried variable that equals another one where the loop begins: the kernel once freed one slot only."""
    text = ttgir["default"]
    lines = text.splitlines()
    arrivals = [i for i, line in enumerate(lines) if "ttng.arrive_barrier" in line]
    index = lines[arrivals[0] - 1]
    assert "ttg.memdesc_index" in index
    start, end = index.index("[") + 1, index.index("]")
    lines[arrivals[0] - 1] = index[:start] + "%slot" + index[end:]
    with pytest.raises(AssertionError, match="wait for each other"):
        run_program("\n".join(lines), {"m": M, "n": N, "k": K}, 0, 2, 0)
