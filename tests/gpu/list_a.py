"""Measure list A: 400 problems over all ops, number formats and directions, with every own variant, auto and every library.

First each problem's choice is measured as `kernelviz.best` does it (`auto`: the fastest of the first variants of the rule, in a
short run of its own), then all variants in another run, by which it is judged. `by_rule`: the first variant of the rule.

    python tests/gpu/list_a.py FILE.jsonl --most-s SECONDS [--seed HASH] [--memory-bound] [--part 1/4] [--spread]

Each line of the file is a problem with its times. A problem that the file has already is not measured again, so call it
again until it says that the list is complete. No problem is begun after SECONDS; the last one and the compilers may
take a minute more. Another `--seed` draws another list: list B is that of the hash of the last commit of a kernel,
drawn and measured once; `--memory-bound` measures its problems of memory-bound ops only, two thirds of all.
`tests/gpu/read_list.py` reads the file. All problems of an op follow each other, so that one machine measures them.
`--again OTHER.jsonl` measures what was a miss in that file, in place of a list, and problems that `--number` names; `--without`
leaves out a variant, such as one whose calls of 15 s let a run seem dead. `--part 1/4` measures every fourth op only,
for four GPUs that measure at once, each into a file of its own (CUDA_VISIBLE_DEVICES chooses the GPU). `--spread` takes a few
problems of each op in turn, for a look at all ops in a short time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import read_list
from drawn_list import COUNT, Drawn, is_memory_bound, problems

from kernelviz.bench import Bench, recording
from kernelviz.bench.best import auto_names, best_of_problem
from kernelviz.bench.measured_choice import chosen
from kernelviz.core import LIVING, BadField, Device, Failure, KernelvizError, Method, Plan, Problem, Result, Run
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.figures import again_of, figure_of
from kernelviz.metrics.library_comparison import OWN, ComparisonRow, comparison_rows, time_s
from kernelviz.metrics.verdict_reasons import NoSharedRounds
from kernelviz.metrics.winner import NEVER_WINNING, compared
from kernelviz.ops import Op, Variant, catalogue, op_named
from kernelviz.store import Store

SEED = "list A"
METHOD = Method(budget_s=0.1, half_width=0.005, ratio_half_width=0.005, early_stop=1.5)
"""A variant of which a block takes 1.5 times as long as the fastest one gets no further blocks."""
SLOW = ("composite_eager", "cuda_direct", "cuda_im2col", "cuda_naive")
"""Rungs that show what not to do, and may take minutes at a drawn size."""
MOST_TOGETHER = 4
"""Problems of a run, which takes about 20 s."""
MOST_WAIT_S = 90.0
"""Without any event of the run for so long, what was measured counts, and the rest is cancelled."""


def together(drawn: Sequence[Drawn], most: int = MOST_TOGETHER) -> list[list[Drawn]]:
    """The problems of an op and direction that one run measures, so that kernels of the next are compiled meanwhile."""
    same = itertools.groupby(drawn, key=lambda one: (one.problem.op, one.problem.direction))
    return [list(some) for _, group in same for some in _batches(list(group), most)]


def _batches(drawn: list[Drawn], most: int) -> list[list[Drawn]]:
    return [drawn[first : first + most] for first in range(0, len(drawn), most)]


def variants_of(drawn: Sequence[Drawn]) -> tuple[str, ...]:
    """All variants that take one of the problems, but those that run only if they are named and the slow first rungs."""
    op = op_named(drawn[0].problem.op)
    taken = {variant.name for one in drawn for variant in usual_variants(op, one.problem)}
    return tuple(variant.name for variant in op.variants if variant.name in taken)


def usual_variants(op: Op, problem: Problem) -> list[Variant]:
    """The variants that take the problem, but those that run only if they are named and the slow first rungs."""
    usual = (v for v in op.variants if not v.only_when_named and v.name not in SLOW)
    return [v for v in usual if v.refuses(problem) is None]


def plan_of(bench: Bench, drawn: Sequence[Drawn], device: str, without: Collection[str] = ()) -> Plan:
    """Those of these variants that can run on this machine, but those in `without`."""
    problems = tuple(one.problem for one in drawn)
    usable = {offer.variant.name for offer in bench.offers(problems[0].op, device) if offer.lack is None}
    names = tuple(name for name in variants_of(drawn) if name in usable and name not in without)
    if not names:
        raise BadField("variants", problems[0].op, f"none of its variants can run on {device}")
    return Plan(problems=problems, variants=names, baseline=names[0], device=device)


def measured(bench: Bench, drawn: Sequence[Drawn], device: str, without: Collection[str] = ()) -> Run:
    """The run of some problems of an op and direction. Errors: KernelvizError."""
    run_id = bench.run(plan_of(bench, drawn, device, without), METHOD)
    for _ in bench.follow(run_id, timeout_s=MOST_WAIT_S):
        pass
    run = bench.load(run_id)
    if run.status in LIVING:
        bench.cancel(run_id)
    return run


def choice_of(bench: Bench, problem: Problem, device: str) -> str | None:
    """The variant that `kernelviz.best` binds for a problem on this GPU, by a short run; None where no own variant solves it."""
    try:
        by_rule = best_of_problem(bench, op_named(problem.op), problem, bench.device(device))
    except BadField:
        return None
    try:
        return chosen(bench, by_rule, measure=True).best.variant.name
    except KernelvizError:
        return by_rule.variant.name


def line_of(
    drawn: Drawn,
    seed: str,
    device: Device,
    results: Sequence[Result],
    row: ComparisonRow | None,
    baseline: str = "",
    error: str = "",
    seconds: float | None = None,
    auto: str | None = None,
) -> dict[str, Any]:
    """A line of the file: the problem, the card, cold device times in seconds, what failed, and the verdict on own and library.

    `baseline`: the variant that shares rounds with all others. `error`: why the problem as a whole could not be measured.
    `seconds`: of the run, for each of its problems; and in `preparation_s` what its variants spent before they were measured.
    """
    problem = drawn.problem
    timed = {} if row is None else row.named
    return {
        "number": drawn.number,
        "seed": seed,
        "shape": drawn.shape,
        "op": problem.op,
        "dtype": problem.dtype,
        "compute": problem.compute,
        "direction": problem.direction,
        "sizes": problem.sizes,
        **facts_of(device),
        "own_s": {name: time_s(result) for name, result in timed.items() if result.backend in OWN},
        "library_s": {name: time_s(result) for name, result in timed.items() if result.backend not in OWN},
        "auto": auto,
        "by_rule": None if row is None else row.choice,
        "verdict": None if row is None else _verdict(row, next((r for r in results if r.variant == baseline), None)),
        "failed": {
            result.variant: {"stage": result.outcome.stage, "message": result.outcome.message}
            for result in results
            if isinstance(result.outcome, Failure)
        },
        "error": error,
        "seconds": seconds,
        "preparation_s": {
            step: round(sum(getattr(result.preparation, step) or 0.0 for result in results if result.preparation), 3)
            for step in ("bind_s", "first_call_s", "check_s")
        },
    }


def facts_of(device: Device) -> dict[str, Any]:
    """The fields of a line that say on which GPU it was measured."""
    return {
        "card": device.name,
        "compute_capability": device.compute_capability,
        "multiprocessors": device.multiprocessors,
        "l2_bytes": device.last_level_cache_bytes,
    }


def _verdict(row: ComparisonRow, baseline: Result | None) -> str | None:
    """The verdict on the best own variant beside the best library, in shared rounds or through the baseline; None if there are
    no rounds to decide by."""
    own = figure_of(row.own.timing, "cold") if row.own else None
    library = figure_of(row.library.timing, "cold") if row.library else None
    if own is None or library is None:
        return None
    timing = baseline.timing if baseline else None
    verdict = compared(own, library, figure_of(timing, "cold"), again_of(timing, "cold"))
    return None if isinstance(verdict.reason, NoSharedRounds) else verdict.kind


def numbers_in(file: Path, seed: str) -> set[int]:
    """The numbers of the problems that the file has. Errors: ValueError for a list of another seed."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    seeds = {line["seed"] for line in lines}
    if seeds - {seed}:
        raise ValueError(f"{file} is the list of the seed {seeds.pop()!r}, not of {seed!r}; name another file")
    return {line["number"] for line in lines}


def measure(
    bench: Bench,
    file: Path,
    drawn: Sequence[Drawn],
    seed: str,
    most_s: float,
    device: str = "cuda:0",
    *,
    evenly: bool = False,
    without: Collection[str] = (),
) -> int:
    """Measure what the file lacks, until the time is over, and return how many problems are left. `evenly`: each op in turn.
    `without`: variants that are left out."""
    begun_s = time.monotonic()
    autos: dict[int, str | None] = {}
    choice_s: dict[int, float] = {}
    done = numbers_in(file, seed)
    rest = together([one for one in drawn if one.number not in done])
    if evenly:
        rest = spread(rest)
    while rest and time.monotonic() - begun_s < most_s:
        some = rest.pop(0)
        run_begun_s = time.monotonic()
        for one in some:
            # Once a problem: the run that judges it would be the next choice's measurement.
            if one.number not in autos:
                begun_choice_s = time.monotonic()
                autos[one.number] = choice_of(bench, one.problem, device)
                choice_s[one.number] = round(time.monotonic() - begun_choice_s, 2)
        try:
            run = measured(bench, some, device, without)
        except KernelvizError as error:
            lines = [line_of(one, seed, bench.device(device), (), None, error=str(error)) for one in some]
        else:
            rows = {row.problem.key: row for row in comparison_rows([run], auto=partial(auto_names, bench))}
            of_problem = {one.number: [r for r in run.results if r.problem == one.problem] for one in some}
            alone = measured_alone(some, of_problem)
            rest = [*([one] for one in alone), *rest]
            lines = [
                line_of(
                    one,
                    seed,
                    run.environment.device,
                    of_problem[one.number],
                    rows.get(one.problem.key),
                    run.plan.baseline,
                    seconds=round((time.monotonic() - run_begun_s) / len(some), 2),
                    auto=autos[one.number],
                )
                | {"choice_seconds": choice_s[one.number], "without": sorted(without)}
                for one in some
                if one not in alone
            ]
        with file.open("a") as written:
            for line in lines:
                print(json.dumps(line), file=written, flush=True)
                words = (line[name] for name in ("op", "sizes", "seconds", "verdict", "auto", "error"))
                print(*words, flush=True)  # noqa: T201
    return sum(map(len, rest))


def measured_alone(some: Sequence[Drawn], results: Mapping[int, Sequence[Result]]) -> list[Drawn]:
    """The problems of a run that need a run of their own: those that it never began because it was given up, and those beside one
    at which a variant was wrong or impossibly fast, because that variant is left out of the whole run. `results`: by number."""
    if len(some) == 1:
        return []
    wrong = {one.number: {r.variant for r in results[one.number] if is_wrong(r)} for one in some}
    everywhere = set().union(*wrong.values())
    return [one for one in some if not results[one.number] or everywhere - wrong[one.number]]


def is_wrong(result: Result) -> bool:
    """Whether the result counts as a mistake of its variant."""
    return isinstance(result.outcome, Failure) and result.outcome.stage in NEVER_WINNING


def misses(file: Path, numbers: Sequence[int] = ()) -> tuple[str, list[Drawn]]:
    """A name for the list of problems of this file in which a library was faster, auto chose a slower variant, or nothing was
    measured, or that have one of these `numbers`; and these. Errors: ValueError for a number that the file lacks."""
    values = read_list.values_of(file)
    pairs = zip(values, read_list.read(file), strict=True)
    if unknown := {*numbers} - {value["number"] for value in values}:
        raise ValueError(f"{file} has no problem {min(unknown)}")
    missed = [
        Drawn(value["number"], value["shape"], line.problem)
        for value, line in pairs
        if line.missed or line.ratio is None or value["number"] in numbers
    ]
    return f"{values[0]['seed'] if values else ''} again", missed


def part_of(drawn: Sequence[Drawn], part: str) -> list[Drawn]:
    """The problems of the ops of a part (`recording.part_of`). Errors: BadField."""
    ops = recording.part_of(list(dict.fromkeys(one.problem.op for one in drawn)), part)
    return [one for one in drawn if one.problem.op in ops]


def spread(runs: Sequence[list[Drawn]]) -> list[list[Drawn]]:
    """The first run of every op, then the second of every op, and so on."""
    by_op: dict[str, list[list[Drawn]]] = {}
    for some in runs:
        by_op.setdefault(some[0].problem.op, []).append(some)
    return [some for row in itertools.zip_longest(*by_op.values()) for some in row if some is not None]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--most-s", type=float, required=True)
    parser.add_argument("--seed", default=SEED)
    parser.add_argument("--memory-bound", action="store_true")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("--again", type=Path, metavar="OTHER.jsonl")
    parser.add_argument("--number", type=int, action="append", default=[], metavar="N", help="with --again")
    parser.add_argument("--without", action="append", default=[], metavar="VARIANT")
    given = parser.parse_args(arguments)
    if given.number and given.again is None:
        parser.error("--number names problems of the file of --again; give both")
    own = {v.name for op in catalogue().values() for v in op.variants if v.backend in OWN}
    if own & {*given.without}:
        parser.error("--without leaves out variants of libraries only; kernelviz.best would still choose an own one")
    seed: str = given.seed
    chosen: Sequence[Drawn] = problems(seed, given.count)
    if given.again is not None:
        seed, chosen = misses(given.again, given.number)
    if given.memory_bound:
        chosen = [one for one in chosen if is_memory_bound(op_named(one.problem.op))]
    drawn = part_of(chosen, given.part)
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(Store.open(Path(home)), discover(), lock_directory=Path(home))
        left = measure(
            bench, given.file, drawn, seed, given.most_s, given.device, evenly=given.spread, without=given.without
        )
        bench.close()
    print("the list is complete" if not left else f"{left} problems are left: call it again")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
