"""docs/kernels.md: the tables of matrix products are those of the committed runs, and the text says what the runs say."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import geometric_mean

import documented_cells as cells
import documented_list
import documented_recordings
import documented_tables as tables
import pytest
import read_list

from kernelviz.formats import compact, document
from kernelviz.metrics.samples import by_block
from kernelviz.metrics.statistics import Interval

sys.path.insert(0, str(Path(__file__).parent / "gpu"))

import list_b
import list_b_attention
from documented_runs import RUNS

PAGE = tables.PAGE.read_text()
MOST_BYTES = 2_500_000
EARLIER = {"matmul-fp32-best"}
"""Runs of the tables that the script does not measure again: its fp32 ladder has their variants."""


def test_the_tables_are_made_of_the_runs() -> None:
    assert tables.with_tables(PAGE) == PAGE, "write them again with `python tests/documented_tables.py`"
    assert [name for _, name, _, _ in tables.MARKED.findall(PAGE)] == list(tables.TABLES)


def test_every_run_belongs_to_a_table_and_is_small() -> None:
    files = sorted(cells.FOLDER.iterdir())
    assert {file.suffix for file in files} == {cells.ENDING}
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    for file in files:
        card = next(c for c in cells.CARDS if file.name.startswith(f"{c}-"))
        assert file.stem.removeprefix(f"{card}-") in RUNS.keys() | EARLIER
        assert f"(runs/{file.name})" in PAGE or "one-row" in file.name, f"{file.name} is in no table"


def test_each_link_leads_to_a_run() -> None:
    linked = {part.split(")")[0] for part in PAGE.split("](runs/")[1:]}
    assert linked
    assert linked <= {file.name for file in cells.FOLDER.iterdir()}


def ratio(name: str, variant: str, **sizes: int) -> Interval:
    """The best library over the variant."""
    case = cells.case_of(cells.load("h200", name), variant, **sizes)
    assert case is not None
    library = cells.best_library(case)
    assert library is not None
    found = case.against(library).ratio
    assert found is not None
    return found.inverse()


def _said_of(card: str) -> str:
    """The list items about this card."""
    short = card.split()[1]
    return "\n".join(line for line in PAGE.splitlines() if line.startswith(f"- {short}, "))


def _found(ratios: list[float], library: str, *, least_mean: float) -> str:
    """What the page has to say of the ratios of a list, which meet the target that it states."""
    mean, fast, far = geometric_mean(ratios), sum(r >= 1 for r in ratios), sum(r < 0.7 for r in ratios)
    assert mean is not None
    assert f"The target is a geometric mean of at least {least_mean} and at most two problems below 0.7" in PAGE
    assert mean >= least_mean
    assert far <= 2
    return f"geometric mean {mean:.2f} of {library}, {fast} of {len(ratios)} at least as fast, {far} below 0.7"


@pytest.mark.parametrize(
    ("file", "card", "seed"), [("h200", "NVIDIA H200", list_b.SEED), ("h100", "NVIDIA H100 80GB HBM3", "9bf1de32")]
)
def test_list_b_is_what_its_seed_draws_and_the_text_says_what_was_measured(file: str, card: str, seed: str) -> None:
    lines = [line.split("\t") for line in (tables.PAGE.parent / f"{file}-list-b.tsv").read_text().splitlines()]
    assert lines[0] == list(list_b.COLUMNS)
    measured = [dict(zip(list_b.COLUMNS, line, strict=True)) for line in lines[1:]]
    assert [tuple(int(one[name]) for name in "mnk") for one in measured] == list_b.problems(seed)
    assert len(measured) == 40
    ratios = [float(one["cublas_us"]) / float(one["best_own_us"]) for one in measured]
    assert {one["card"] for one in measured} == {card}
    assert {one["best_own"] for one in measured} <= set(list_b.OWN)
    assert f'(`random.Random("{seed}")`): {_found(ratios, "cuBLAS", least_mean=0.95)}' in _said_of(card)
    if file != "h200":
        return
    long = [ratio for ratio, one in zip(ratios, measured, strict=True) if float(one["cublas_us"]) >= 10]
    assert f"{40 - len(long)} of them take cuBLAS less than 10 µs" in PAGE
    assert f"the geometric mean of the other {len(long)} is {geometric_mean(long):.2f}" in PAGE


@pytest.mark.parametrize(
    ("file", "card", "seed"),
    [("h200", "NVIDIA H200", list_b_attention.SEED), ("h100", "NVIDIA H100 80GB HBM3", "fc883eb8")],
)
def test_list_b_of_attention_is_what_its_seed_draws_and_the_text_says_what_was_measured(
    file: str, card: str, seed: str
) -> None:
    table = tables.PAGE.parent / f"{file}-attention-list-b.tsv"
    names, *lines = (line.split("\t") for line in table.read_text().splitlines())
    assert names == list(list_b_attention.COLUMNS)
    measured = [dict(zip(names, line, strict=True)) for line in lines]
    assert [one["problem"] for one in measured] == [problem.key for problem in list_b_attention.problems(seed)]
    assert len(measured) == 30
    assert {one["card"] for one in measured} == {card}
    ratios = [float(one["library_us"]) / float(one["own_us"]) for one in measured]
    found = _found(ratios, "the best library", least_mean=0.9)
    assert f"(seed `{seed}`): {found}; the slowest is {min(ratios):.2f}." in _said_of(card)


def test_list_b_of_memory_bound_ops_is_whole_and_its_text_says_what_was_measured_again() -> None:
    first, again = documented_list.lists()
    (seed,) = {values["seed"] for values in read_list.values_of(documented_list.FIRST)}
    assert f"The list of the seed {seed[:8]} judges" in PAGE
    assert len({line.number for line in first}) == len(first) == 275
    assert [one.number for one in again] == [one.number for one in first]
    assert {line.card for line in again} == {"NVIDIA H200"}
    assert "of which the 275 of memory-bound ops are here" in PAGE
    changed = [other for one, other in zip(first, again, strict=True) if one != other]
    assert len(changed) == 11, "as the text says"
    (one_row,) = (line for line in changed if line.problem.op == "gather" and line.problem.sizes["v"] == 1)
    assert one_row.problem.sizes["t"] == 16_367_766
    assert f"its time, {1e6 * one_row.own_s['cuda_vec16_unrolled']:.1f} µs when it was measured again" in PAGE
    assert [line.problem.sizes["m"] for line in first if line.ratio is None] == [1_761_671_965], "as the text says"
    (late,) = (line for line in again if line.problem.sizes.get("m") == 1_761_671_965)
    own, library = (documented_list.fastest(times) for times in (late.own_s, late.library_s))
    assert f"it ended: {own}, {library}." in PAGE
    largest = {line.problem.op: line.ratio for line in sorted(again, key=lambda line: line.ratio or 0.0)}
    scattered, diverging, highest = (largest[op] for op in ("scatter_add", "branch_divergence", "topk"))
    assert f"(`scatter_add` up to {scattered:.0f}, `branch_divergence` {diverging:.0f}, `topk` {highest:.0f})" in PAGE
    narrow = next(line for line in changed if line.problem.sizes == {"m": 4, "n": 21})
    assert min(narrow.own_s.values()) > narrow.library_s["torch_compile"], "faster than every own variant at 4 × 21"
    with pytest.raises(ValueError, match="the list has no problem"):
        read_list.replaced(first[1:], first[:1])


@pytest.mark.parametrize("card", documented_recordings.cards())
def test_every_recorded_case_is_right_and_few_times_are_suspect(card: str) -> None:
    assert documented_recordings.failures(card) == []
    assert documented_recordings.suspect_share(card) <= documented_recordings.MOST_SUSPECT


def test_the_lowest_ratio_of_an_op_is_that_of_its_first_listed_problem() -> None:
    lowest = {row[0].strip("`"): row[3] for row in map(_columns, documented_recordings.by_op().splitlines()[2:])}
    listed: dict[str, float] = {}
    for row in map(_columns, documented_recordings.misses().splitlines()[2:]):
        op = row[0].split()[0] + (" backward" if row[0].endswith("backward") else "")
        assert float(row[4]) < documented_recordings.LEVEL
        if row[1] == "H200":
            listed.setdefault(op, float(row[4]))
    assert listed
    assert {op: f"{ratio:.3f}" for op, ratio in listed.items()} == {op: lowest[op] for op in listed}


def _columns(line: str) -> list[str]:
    return line.strip("| ").split(" | ")


def test_what_is_claimed_of_list_b_holds() -> None:
    of, targets = read_list.Shares.of(documented_list.lists()[1]), documented_list.TARGETS
    readme = " ".join((tables.PAGE.parents[1] / "README.md").read_text().split())
    assert f"on {of.compared} problems of memory-bound ops" in readme
    said = f"{of.median_ratio:.2f} times as fast as the best library in the median and {of.mean_ratio:.2f} times in the"
    assert f"{said} geometric mean" in readme
    found = {
        "mean": of.mean_ratio,
        "level": of.level / of.compared,
        "least": of.least_ratio,
        "near": of.near / of.chosen,
        "least auto": of.least_auto_ratio,
    }
    assert found.keys() == targets.keys()
    assert {name: value for name, value in found.items() if value is None or value < targets[name]} == {}


def test_the_text_says_what_was_counted_in_the_sweeps() -> None:
    names, *lines = (line.split("\t") for line in (tables.PAGE.parent / "h200-sweeps.tsv").read_text().splitlines())
    counted = [dict(zip(names, line, strict=True)) for line in lines]
    for sweep in ("sweep1", "sweep2", "sweep3", "sweep4", "sweep5"):
        problems, compared, slower, worst, auto_slower = (
            sum(int(one[name]) for one in counted if one["sweep"] == sweep)
            for name in ("problems", "compared", "slower", "below_0.85", "auto_slower")
        )
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {sweep}, "))
        said = f"| {problems:,} | {100 * (1 - slower / compared):.1f} % | {worst} |"
        assert said in row
        near = "-" if sweep == "sweep1" else f"{100 * (1 - auto_slower / problems):.1f} %"
        assert row.endswith(f" {near} |")
    sayings = {
        "sweep4": "one of the first five in {:.1f} %, by the times of this sweep",
        "sweep5": "one of the first five in {:.1f} %. Of the 64 problems",
    }
    for sweep, saying in sayings.items():
        of_sweep = [one for one in counted if one["sweep"] == sweep]
        of_five = 1 - sum(int(one["first_five_slower"]) for one in of_sweep) / sum(
            int(one["problems"]) for one in of_sweep
        )
        assert saying.format(100 * of_five) in PAGE


def test_the_text_says_what_was_measured_of_list_a() -> None:
    names, *lines = (line.split("\t") for line in (tables.PAGE.parent / "h200-list-a.tsv").read_text().splitlines())
    measured = [dict(zip(names, line, strict=True)) for line in lines]
    assert {one["card"] for one in measured} == {"NVIDIA H200"}
    for code, said in (
        ("before", "{} problems: geometric mean {:.2f} of the best library, {} below 0.98, {} below 0.85;"),
        ("after", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85."),
        ("last", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85. "),
        ("spread", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
        ("anew", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
        ("judging", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
        ("rest", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
        ("mended", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
        ("second", "geometric mean {1:.2f}, {2} below 0.98, {3} below 0.85; auto within 3 % in {4}."),
    ):
        of_code = [one for one in measured if one["code"] == code]
        ratios = [float(one["library_us"]) / float(one["own_us"]) for one in of_code]
        below = [sum(ratio < limit for ratio in ratios) for limit in (0.98, 0.85)]
        shares = [float(one["own_us"]) / float(one["auto_us"]) for one in of_code if one["auto_us"]]
        near = f"{sum(share >= 0.97 for share in shares)} of {len(ratios)}"
        assert said.format(len(ratios), geometric_mean(ratios), *below, near) in PAGE
        assert f"{code.capitalize()}: {len(ratios)} problems" in PAGE
        level = f"{100 * sum(ratio >= 0.98 for ratio in ratios) / len(ratios):.0f} %"
        assert code != "anew" or f"with {level} of its problems at 0.98" in PAGE
        assert code != "judging" or f"In Judging {level} are at 0.98 or more" in PAGE
    before = {one["problem"]: one for one in measured if one["code"] == "before"}
    again = [one for one in measured if one["code"] == "after" and one["problem"] in before]
    assert f"{len(again)} of the {len(before)} among them" in PAGE
    last, above = (
        [one["problem"] for one in measured if one["code"] in codes] for codes in (("last",), ("before", "after"))
    )
    assert f"{len(set(last) & set(above))} of the {len(last)} are among those above" in PAGE
    chosen = [float(one["own_us"]) / float(one["auto_us"]) for one in before.values() if one["auto_us"]]
    assert f"in {sum(share >= 0.97 for share in chosen)} of {len(chosen)}." in PAGE
    for one in measured:
        if one["other_own"]:
            cells = (f"`{one[name]}` {one[f'{name}_us']}" for name in ("other_own", "own", "library"))
            assert f"| {one['problem']} | {' | '.join(cells)} |" in PAGE


def test_the_text_says_what_the_runs_say() -> None:
    percent = {
        name: [
            100 * (ratio(run, variant).estimate - 1)
            for variant in ("cuda_wgmma_tma_store", "gluon_warp_specialised", "triton_descriptors")
        ]
        for name, run in (("4096", "matmul-bf16-4096"), ("8192", "matmul-bf16-8192"))
    }
    _, gluon, triton = percent["4096"]
    assert f"Gluon {gluon:.1f} % faster and Triton {-triton:.1f} % slower" in PAGE
    least, most = f"{min(percent['8192']):.1f}", f"{max(percent['8192']):.1f}"
    assert f"are {least if least == most else f'{least} to {most}'} % faster" in PAGE
    first, last = (
        cells.case_of(cells.load("h200", "matmul-bf16-ladder"), v) for v in ("cuda_wgmma", "cuda_wgmma_hilbert")
    )
    assert first is not None
    assert last is not None
    assert f"All steps together gain {first.row.time_s / last.row.time_s:.2f} here and {764 / 317:.2f} there" in PAGE
    library, own = cells.cases(cells.load("h200", "burst-8192"))
    assert library.row.issue is not None
    assert own.row.issue is not None
    fewer = 100 * (own.row.issue.fraction / library.row.issue.fraction - 1)
    lower = 100 * (1 - own.row.issue.clock_hz / library.row.issue.clock_hz)
    faster = 100 * (ratio("burst-8192", own.result.variant).estimate - 1)
    assert f"needs fewer cycles ({fewer:.1f} %) at a lower clock ({lower:.1f} %)" in PAGE
    assert f"it is only {faster:.1f} % faster" in PAGE


def test_a_second_card_stands_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("burst-8192", "matmul-bf16-ladder"):
        shutil.copy(cells.FOLDER / f"h200-{name}.kvz", tmp_path)
    shutil.copy(cells.FOLDER / "h200-burst-8192.kvz", tmp_path / "h100-80gb-hbm3-burst-8192.kvz")
    monkeypatch.setattr(cells, "FOLDER", tmp_path)
    heading, _, first, *_ = tables.sustained().splitlines()
    assert heading.count("H200: ") == heading.count("H100: ") == 8
    of_cards = first.split(" | ")[2:]
    assert of_cards[:8] == [c.removesuffix(" |") for c in of_cards[8:]]
    assert "(runs/h100-80gb-hbm3-burst-8192.kvz)" in tables.sustained()
    assert "H100" not in tables.bf16_ladder()
    assert tables.grouped().startswith("Not measured in a run of this folder yet: `grouped-matmul`")


def test_a_folder_of_documents_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON or in the compact form; both give the same file."""
    run = compact.read((cells.FOLDER / "h200-burst-8192.kvz").read_bytes())
    measured, added = tmp_path / "measured", tmp_path / "added"
    measured.mkdir()
    added.mkdir()
    (measured / "h200-burst-8192.json").write_bytes(document.encode(run))
    (measured / "h200-sustained-8192.kvz").write_bytes(compact.encode(by_block(run)))
    (measured / "notes.json").write_text("{}")
    monkeypatch.setattr(tables, "FOLDER", added)
    assert tables.add_runs(measured) == ["h200-burst-8192", "h200-sustained-8192"]
    first, second = sorted(added.iterdir())
    assert first.read_bytes() == second.read_bytes()
    assert compact.read(first.read_bytes()) == run
