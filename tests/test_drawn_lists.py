"""Lists A and B are drawn as they say: every kind, within the limits, the same each time; and files of them are read."""

from __future__ import annotations

import doctest
import gzip
import itertools
import json
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import drawn_list
import list_a
import msgspec
import pytest
import quick_sweep
import read_list

from kernelviz.core import BadField, Failure, Problem, Run
from kernelviz.formats import shipped_runs
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import catalogue

CHOSEN = ("hq", "hk", "d", "r", "s", "o", "g", "u")
"""Axes that are chosen from a few sizes."""
LIST = drawn_list.problems(list_a.SEED)
SWEPT = quick_sweep.drawn_problems("a sweep", 460)


def kind_of(drawn: drawn_list.Drawn) -> drawn_list.Kind:
    problem = drawn.problem
    return drawn_list.Kind(problem.op, problem.dtype, problem.compute, problem.direction or "forward")


def test_list_a_has_every_op_format_precision_and_direction_and_all_problems_of_an_op_together() -> None:
    assert len(LIST) == 400
    assert {kind_of(one) for one in LIST} == set(drawn_list.kinds())
    assert sorted(one.number for one in LIST) == list(range(400))
    ops = [one.problem.op for one in LIST]
    assert [op for op, _ in itertools.groupby(ops)] == sorted(set(ops)), "all problems of an op follow each other"
    assert set(ops) == set(catalogue())
    assert {one.shape for one in LIST} == set(drawn_list.SHAPES)


def test_a_seed_draws_the_same_list_each_time_and_another_seed_another_one() -> None:
    again = drawn_list.problems(list_a.SEED)
    assert again == LIST
    other = drawn_list.problems("9bf1de32")
    assert {one.problem.key for one in other} != {one.problem.key for one in LIST}
    assert drawn_list.problems(list_a.SEED, 10) != LIST[:10]
    numbered = {one.number: one for one in LIST}
    assert all(numbered[one.number] == one for one in drawn_list.problems(list_a.SEED, 10))


def test_parts_for_several_gpus_share_a_list_by_its_ops() -> None:
    parts = [list_a.part_of(LIST, f"{number}/4") for number in (1, 2, 3, 4)]
    assert sorted(one.number for part in parts for one in part) == list(range(400))
    for one, other in itertools.combinations(parts, 2):
        assert not {d.problem.op for d in one} & {d.problem.op for d in other}
    assert list_a.part_of(LIST, "1/1") == list(LIST)
    with pytest.raises(BadField, match=r"'5/4'.*name one like 1/2 and 2/2"):
        list_a.part_of(LIST, "5/4")


def test_a_run_has_a_few_problems_of_one_op_and_direction() -> None:
    runs = list_a.together(LIST)
    assert [one for some in runs for one in some] == list(LIST)
    assert max(map(len, runs)) == list_a.MOST_TOGETHER
    assert all(len({(one.problem.op, one.problem.direction) for one in some}) == 1 for some in runs)
    first = list_a.spread(runs)[: len({one.problem.op for one in LIST})]
    assert {some[0].problem.op for some in first} == {one.problem.op for one in LIST}
    assert sorted(map(str, list_a.spread(runs))) == sorted(map(str, runs))


def test_no_problem_exceeds_its_limits_and_sizes_are_of_every_magnitude() -> None:
    for one in LIST:
        op = catalogue()[one.problem.op]
        assert op.needed_bytes(one.problem) <= drawn_list.MOST_BYTES
        assert op.cost_of(one.problem).work_flop <= drawn_list.MOST_FLOP
        assert min(size for axis, size in one.problem.sizes.items() if axis != "o") >= 1
        if one.shape == "one element":
            assert {size for axis, size in one.problem.sizes.items() if axis not in CHOSEN} == {1}
    sizes = [size for one in LIST for size in one.problem.sizes.values()]
    assert any(size & (size - 1) for size in sizes)
    for least in (1, 10, 1000, 100_000, 10_000_000):
        assert sum(least <= size < 100 * least for size in sizes) > 20, least
    rows = [(one.problem.sizes["m"], one.problem.sizes["n"]) for one in LIST if {"m", "n"} <= set(one.problem.sizes)]
    assert any(m > 1000 * n for m, n in rows)
    assert any(n > 1000 * m for m, n in rows)


def test_the_memory_limit_is_the_largest_size_that_fits() -> None:
    kind = drawn_list.Kind("softmax", "bf16", None, "forward")
    op = catalogue()["softmax"]
    limit = drawn_list.largest(op, kind, {"m": 1, "n": 100}, "m")
    assert drawn_list.fits(op, kind, {"m": limit, "n": 100})
    assert not drawn_list.fits(op, kind, {"m": limit + 1, "n": 100})


def test_memory_bound_leaves_out_products() -> None:
    ops = {op.name for op in catalogue().values() if drawn_list.is_memory_bound(op)}
    assert {"softmax", "row_sum", "transpose", "attention_decode"} <= ops
    assert not {"matmul", "conv2d", "attention", "linear_cross_entropy"} & ops


def test_a_request_has_every_variant_that_takes_the_problem_but_the_slow_ones() -> None:
    for some in list_a.together(LIST):
        names, op = list_a.variants_of(some), catalogue()[some[0].problem.op]
        for name in names:
            assert any(op.variant_named(name).refuses(one.problem) is None for one in some)
        for one in some:
            assert any(op.variant_named(name).refuses(one.problem) is None for name in names)
        assert not set(list_a.SLOW) & set(names)


def lines_of_a_recorded_run() -> list[dict[str, object]]:
    """Lines as `list_a.measure` writes them, of the problems of a recorded run."""
    from functools import partial

    from kernelviz import bench as use_cases
    from kernelviz.bench.best import auto_names
    from kernelviz.metrics.library_comparison import comparison_rows

    run = shipped_runs.load("h200-softmax")
    rows = comparison_rows([run], auto=partial(auto_names, use_cases.current()))
    drawn = (drawn_list.Drawn(number, "any", row.problem) for number, row in enumerate(rows))
    results = {row.problem.key: tuple(r for r in run.results if r.problem == row.problem) for row in rows}
    device = run.environment.device
    return [
        list_a.line_of(one, "a seed", device, results[one.problem.key], row, auto=row.choice)
        for one, row in zip(drawn, rows, strict=True)
    ]


def test_a_file_is_read_and_the_rules_can_choose_again(tmp_path: Path) -> None:
    lines = lines_of_a_recorded_run()
    file = tmp_path / "list.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert list_a.numbers_in(file, "a seed") == set(range(len(lines)))
    with pytest.raises(ValueError, match="name another file"):
        list_a.numbers_in(file, "list B")
    lines_read = read_list.read(file)
    assert all(line.ratio and line.auto_ratio for line in lines_read)
    by_rule = read_list.read(file, rules=True)
    assert [(line.auto, line.auto_ratio) for line in by_rule] == [(line.auto, line.rule_ratio) for line in lines_read]
    every = read_list.read(file, rules=True, candidates=99)
    assert {line.auto_ratio for line in every} == {1.0}
    text = "\n".join(read_list.report(lines_read))
    assert text.startswith("NVIDIA H200, memory-bound ops")
    assert f"{len(lines)} problems, {len(lines)} compared" in text
    assert "auto within 3 % of the best own variant" in text
    assert f"the rule alone: {sum((line.rule_ratio or 0) >= 1 / 1.03 for line in lines_read)} of {len(lines)} (" in text


def test_a_miss_and_a_bad_choice_are_listed_and_a_choice_without_a_time_counts_as_zero(tmp_path: Path) -> None:
    line = lines_of_a_recorded_run()[0]
    slow = {
        **line,
        "own_s": {"cuda_row": 2e-6, "cuda_columns": 3e-6},
        "library_s": {"torch_eager": 1e-6},
        "verdict": "slower",
    }
    unclear = {**slow, "verdict": "unclear", "auto": "cuda_row"}
    nothing = {**slow, "auto": "cuda_cluster", "verdict": None}
    file = tmp_path / "list.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in (slow, unclear, nothing)))
    first, second, third = read_list.read(file)
    assert (first.ratio, first.level, first.auto_ratio) == (0.5, False, pytest.approx(2 / 3))
    assert (second.level, second.auto_ratio) == (True, 1.0)
    assert (third.level, third.auto_ratio) == (False, 0.0)
    text = "\n".join(read_list.report([first, second, third]))
    assert "1 of 3 (33.3 %) at least 0.98 by the verdict rule, 3 below 0.85" in text
    assert "own 0.500" in text
    assert "auto 0.000" in text
    fine = {**unclear, "number": 7, "library_s": {"torch_eager": 2e-6}}
    file.write_text("".join(f"{json.dumps(one)}\n" for one in (fine, slow, unclear, nothing)))
    seed, again = list_a.misses(file)
    assert seed == "a seed again"
    assert again == [drawn_list.Drawn(0, "any", first.problem)] * 3, (
        "slower, far slower though unclear, no time of auto"
    )
    fine = {**fine, "library_s": {"torch_eager": 1.9e-6}}
    file.write_text(f"{json.dumps(fine)}\n")
    assert list_a.misses(file)[1] == [], "unclear, and not far"
    assert [one.number for one in list_a.misses(file, [7])[1]] == [7]
    file.write_text(f"{json.dumps({**fine, 'own_s': {}})}\n")
    assert [one.number for one in list_a.misses(file)[1]] == [7], "nothing was measured"


def test_beside_a_mistake_of_a_variant_a_problem_gets_a_run_of_its_own() -> None:
    run = shipped_runs.load("h200-softmax")
    keys = list(dict.fromkeys(result.problem.key for result in run.results))[:3]
    results = {number: [r for r in run.results if r.problem.key == key] for number, key in enumerate(keys)}
    some = [drawn_list.Drawn(number, "any", of[0].problem) for number, of in results.items()]
    assert list_a.measured_alone(some, results) == []
    mistake = msgspec.structs.replace(results[1][0], outcome=Failure(stage="wrong"))
    assert list_a.measured_alone(some, {**results, 1: [mistake, *results[1][1:]]}) == [some[0], some[2]]
    assert list_a.measured_alone(some[1:2], {1: [mistake]}) == []
    assert list_a.measured_alone(some, {**results, 2: []}) == [some[2]], "a run that was given up"


def test_a_problem_that_is_measured_alone_keeps_its_choice_and_has_all_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelviz import bench as use_cases

    run = shipped_runs.load("h200-softmax")
    problems = list(dict.fromkeys(result.problem.key for result in run.results))[:3]
    of = {key: [r for r in run.results if r.problem.key == key] for key in problems}
    wrong = msgspec.structs.replace(of[problems[1]][0], outcome=Failure(stage="wrong"))
    choices: list[str] = []

    def measured(bench: object, drawn: Sequence[drawn_list.Drawn], device: str, without: Collection[str]) -> Run:
        results = [r for one in drawn for r in of[one.problem.key]]
        return msgspec.structs.replace(
            run, results=tuple(wrong if (r.problem, r.variant) == mistaken else r for r in results)
        )

    def choice_of(bench: object, problem: Problem, device: str) -> str:
        choices.append(problem.key)
        return "cuda_row"

    mistaken = (wrong.problem, wrong.variant)
    monkeypatch.setattr(list_a, "measured", measured)
    monkeypatch.setattr(list_a, "choice_of", choice_of)
    drawn = [drawn_list.Drawn(number, "any", of[key][0].problem) for number, key in enumerate(problems)]
    file = tmp_path / "list.jsonl"
    assert list_a.measure(use_cases.current(), file, drawn, "a seed", 100.0, without=["liger"]) == 0
    assert choices == problems, "once each: the run that judges would be the next choice's measurement"
    lines = {line["number"]: line for line in read_list.values_of(file)}
    assert [lines[number]["auto"] for number in range(3)] == ["cuda_row"] * 3
    assert {line["without"][0] for line in lines.values()} == {"liger"}
    assert [wrong.variant in lines[n]["own_s"] | lines[n]["library_s"] for n in range(3)] == [True, False, True]
    packed = tmp_path / "list.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert list_a.misses(packed, [2]) == list_a.misses(file, [2])
    with pytest.raises(ValueError, match=r"has no problem 7"):
        list_a.misses(file, [7])


@pytest.mark.parametrize("options", [["--number", "3"], ["--without", "cuda_row"]], ids=["number", "own variant"])
def test_options_that_would_be_ignored_or_would_judge_wrongly_are_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        list_a.main(["list.jsonl", "--most-s", "1", *options])
    assert f"error: {options[0]} " in capsys.readouterr().err


def test_a_quick_sweep_draws_memory_bound_problems_that_fit_on_a_gpu_together_each_once() -> None:
    drawn, ops = SWEPT, catalogue()
    assert len({one.problem.key for one in drawn}) == len(drawn) > 150
    assert all(drawn_list.is_memory_bound(ops[one.problem.op]) for one in drawn)
    assert all(ops[one.problem.op].needed_bytes(one.problem) <= quick_sweep.MOST_BYTES for one in drawn)
    assert drawn_list.MOST_BYTES > quick_sweep.MOST_BYTES, "the limit of lists is as before"


def test_processes_of_a_quick_sweep_never_take_the_same_problem(tmp_path: Path) -> None:
    counter = tmp_path / "next"
    counter.write_text("9")
    sweeper = object.__new__(quick_sweep.Sweeper)  # without a GPU
    sweeper._counter = counter
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: sweeper.following(), range(40)))
    assert sorted(numbers) == list(range(9, 49))


def test_lines_of_a_quick_sweep_are_read_with_the_rules_and_counted_by_op(tmp_path: Path) -> None:
    facts = {"card": "H200", "compute_capability": (9, 0), "multiprocessors": 132, "l2_bytes": 60 * 2**20}
    first, second, *_ = (one for one in SWEPT if one.problem.op == "histogram")
    own = {v.name: 2e-6 for v in catalogue()["histogram"].variants if v.backend in OWN}
    times = {"own_s": own, "library_s": {"torch_eager": 1e-6}, "failed": {}}
    lines = [
        quick_sweep.line_of(first, "a sweep", facts, times),
        quick_sweep.line_of(second, "a sweep", facts, {}, "TimeoutError: too long"),
    ]
    file = tmp_path / "sweep.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    read = read_list.read(file, rules=True)
    assert (read[0].ratio, read[0].auto_ratio, read[1].ratio) == (0.5, 1.0, None)
    assert read_list.by_op(read)[1].split() == ["histogram", "forward", "2", "1", "1", "0"]


def test_functions_of_a_quick_sweep_do_what_their_examples_say() -> None:
    failed, tried = doctest.testmod(quick_sweep)
    assert (failed, tried) == (0, 3)
