"""Measure list B of attention, convolution and the loss: 30 problems that no kernel was tuned for, the best own variant against
the best library.

    python tests/gpu/list_b_attention.py FILE.tsv [--seed HASH]

Sizes are log-uniform, drawn with the hash of the last commit of a kernel before the list was measured, so that nobody could know
them. Writes a line for each problem as soon as it is measured; the roofs are not needed. About 4 minutes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.core import Method, Problem, RunRequest
from kernelviz.core.problem import Direction
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.library_comparison import comparison_rows
from kernelviz.ops import op_named
from kernelviz.store import Store

SEED = "6b81f072cc1e3ade51f29b9327e1fa7b08021899"
COLUMNS = ("problem", "library", "library_us", "own", "own_us", "card")
MOST_POSITIONS = 16384
"""Of all sequences of a batch together."""
MOST_CACHED = 2**20
SLOW = ("composite_eager", "cuda_direct", "cuda_im2col")
"""Rungs that show what not to do, and take long."""
Sizes = dict[str, int]


def log_uniform(draw: random.Random, least: int, most: int) -> int:
    return round(math.exp(draw.uniform(math.log(least), math.log(most))))


def _heads(draw: random.Random) -> Sizes:
    key_heads = draw.choice((1, 2, 4, 8))
    return {"hq": key_heads * draw.choice((1, 2, 4, 8)), "hk": key_heads}


def of_attention(draw: random.Random, dimensions: tuple[int, ...] = (64, 128, 256)) -> Sizes:
    length = log_uniform(draw, 1, 16384)
    batch = log_uniform(draw, 1, max(1, min(16, MOST_POSITIONS // length)))
    return {"b": batch, "s": length, **_heads(draw), "d": draw.choice(dimensions)}


def of_backward(draw: random.Random) -> Sizes:
    return of_attention(draw, (64, 128))


def of_decode(draw: random.Random) -> Sizes:
    length = log_uniform(draw, 1, 65536)
    batch = log_uniform(draw, 1, max(1, min(128, MOST_CACHED // length)))
    return {"b": batch, "l": length, **_heads(draw), "d": draw.choice((64, 128, 256))}


def of_convolution(draw: random.Random) -> Sizes:
    side = {axis: log_uniform(draw, 7, 64) for axis in "hw"}
    channels = {axis: log_uniform(draw, 1, 512) for axis in "ck"}
    return {"n": log_uniform(draw, 1, 256), **side, **channels, "r": draw.choice((1, 3, 5)), "s": draw.choice((1, 2))}


def of_loss(draw: random.Random) -> Sizes:
    return {"m": log_uniform(draw, 1, 8192), "h": log_uniform(draw, 64, 8192), "v": log_uniform(draw, 1000, 200_000)}


PLAN: tuple[tuple[str, Direction, int, Callable[[random.Random], Sizes]], ...] = (
    ("attention", "forward", 6, of_attention),
    ("causal_attention", "forward", 6, of_attention),
    ("causal_attention", "backward", 4, of_backward),
    ("attention_decode", "forward", 4, of_decode),
    ("paged_attention_decode", "forward", 2, of_decode),
    ("conv2d", "forward", 6, of_convolution),
    ("linear_cross_entropy", "forward", 2, of_loss),
)


def problems(seed: str = SEED) -> list[Problem]:
    draw = random.Random(seed)
    return [
        op_named(name).problem(sizes_of(draw), "bf16", direction=direction)
        for name, direction, count, sizes_of in PLAN
        for _ in range(count)
    ]


def line_of(bench: Bench, problem: Problem) -> tuple[str, ...]:
    """The best library and the best own variant with their cold device times, µs; empty where there is none."""
    op = op_named(problem.op)
    request = RunRequest(
        op=problem.op,
        dtype=problem.dtype,
        direction=problem.direction or "forward",
        sizes={axis: str(size) for axis, size in problem.sizes.items()},
        variants=tuple(
            v.name
            for v in op.of(problem).variants
            if not (v.only_when_named or v.slow_compile or v.name in SLOW) and v.refuses(problem) is None
        ),
        device="cuda:0",
    )
    run_id = bench.run(bench.plan(request), Method(budget_s=0.1))
    for _ in bench.follow(run_id, timeout_s=100):
        pass
    (row,) = comparison_rows([bench.load(run_id)])
    cells = []
    for result in (row.library, row.own):
        figure = figure_of(result.timing, "cold") if result else None
        cells += [result.variant, f"{figure.estimate * 1e6:.2f}"] if result and figure else ["", ""]
    return (problem.key, *cells)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", default=SEED)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home, given.file.open("w") as file:
        bench = Bench(Store.open(Path(home)), discover(), lock_directory=Path(home))
        card = bench.device("cuda:0").name
        print(*COLUMNS, sep="\t", file=file)
        for problem in problems(given.seed):
            print(*line_of(bench, problem), card, sep="\t", file=file, flush=True)
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
