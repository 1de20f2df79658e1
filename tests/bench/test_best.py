"""The variant that the rule of each op chooses: always an own one that can run, near the best one in every recorded run."""

import ast
import inspect
import re
from functools import partial
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.best import auto_names, best, card_of, recorded_cards
from kernelviz.bench.library_comparison import cards_of, every_row, library_comparison, library_records
from kernelviz.cli import main
from kernelviz.core import BadField, Problem, UnknownName
from kernelviz.core.backends import BACKENDS
from kernelviz.core.sizes import expand
from kernelviz.formats import compact
from kernelviz.metrics.library_comparison import AutoSummary, comparison_rows
from kernelviz.ops import Op, catalogue
from kernelviz.ops.catalog.best import H200, Card, sentence
from kernelviz.ops.catalog.choice import candidates, rule_of
from kernelviz.store import Store

ROOT = Path(__file__).parents[2]
A100 = Card(compute_capability=(8, 0), multiprocessors=108, l2_bytes=40 * 2**20)
SLICE = Card(compute_capability=(9, 0), multiprocessors=16, l2_bytes=7 * 2**20)
"""A seventh of an H200."""
CASES = [(op, dtype, direction) for op in catalogue().values() for dtype in op.dtypes for direction in op.directions]


def problems(op: Op, dtype: str, direction: str) -> list[Problem]:
    """Problems of the default sizes, of every preset, and small and odd ones; of every compute precision."""
    sizes = [one for texts in (*(p.sizes for p in op.presets), {}) for one in expand(op.axis_names, _texts(op, texts))]
    sizes += [
        {**sizes[-1], axis: small} for axis in op.axis_names for small in (1, 3, 17) if axis not in ("hq", "hk", "d")
    ]
    found = []
    for one in sizes:
        for compute in op.computes.get(dtype, (None,)):
            try:
                found.append(op.problem(one, dtype, compute=compute, direction=direction))  # type: ignore[arg-type]
            except BadField:
                continue
    return found


def _texts(op: Op, texts: object) -> dict[str, str]:
    return {a.name: a.default for a in op.axes} | dict(texts)  # type: ignore[call-overload]


@pytest.mark.parametrize(("op", "dtype", "direction"), CASES, ids=lambda value: getattr(value, "name", value))
def test_every_problem_has_a_choice_that_can_run(op: Op, dtype: str, direction: str) -> None:
    every = problems(op, dtype, direction)
    assert every
    for problem in every:
        for card in (H200, A100, SLICE):
            usable = candidates(op, problem, card)
            assert usable or (card is A100 and dtype == "fp8") or _only_newer(op, direction), problem.key
            for variant in usable:
                assert BACKENDS[variant.backend].written_here
                assert not variant.only_when_named
                assert variant.refuses(problem) is None
                assert card is not A100 or not {"sm_89", "sm_90", "sm_90a"} & set(variant.needs), variant.name
        named = op.best(problem, H200) if op.best else ()
        known = {v.name for v in op.variants}
        assert named
        assert set(named) <= known, f"{op.name}: its rule names what is no variant"


def _only_newer(op: Op, direction: str) -> bool:
    """Whether no own variant of the op runs on an A100."""
    own = (v for v in op.variants if BACKENDS[v.backend].written_here and direction in v.directions)
    return all({"sm_89", "sm_90", "sm_90a"} & set(v.needs) for v in own if "cpu" not in v.needs)


@pytest.mark.parametrize("op", catalogue().values(), ids=lambda op: op.name)
def test_each_rule_is_one_sentence_with_an_example_in_a_module_that_no_kernel_imports(op: Op) -> None:
    assert op.best is not None
    assert re.fullmatch(r"[^.]*(?:\d\.\d[^.]*)*\.", sentence(op.best)), sentence(op.best)
    assert rule_of(op) == sentence(op.best)
    assert ">>>" in (op.best.__doc__ or "")
    module = Path(inspect.getsourcefile(op.best) or "")
    assert module.name == "best.py"
    importing = {
        path.name
        for path in module.parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(f".{module.parent.name}")
        if any(alias.name == "best" for alias in node.names)
    }
    assert importing
    declaring = {"op.py", "op_fp8.py", "groups_op.py", "linear_op.py", "varlen_op.py", "layouts.py", "transposed.py"}
    assert importing <= declaring


@pytest.mark.parametrize("recorded", ["shipped", "docs"])
def test_the_choice_is_near_the_best_own_variant_of_every_recorded_problem(recorded: str) -> None:
    """That of docs/h200-ladders.jsonl.gz is tested where its table is (tests/test_kernels_page.py)."""
    bench = use_cases.current()
    files = (ROOT / "docs" / "runs").glob("*.kvz") if recorded == "docs" else ()
    runs = [compact.decode(file.read_bytes()) for file in files]
    rows = comparison_rows(runs, auto=partial(auto_names, bench)) if runs else every_row(bench)
    summary = AutoSummary.of(rows)
    assert (
        summary.problems > 150
    )  # A problem counts if the variant that its rule names was recorded; new variants were not yet.
    assert summary.as_fast >= 0.95 * summary.problems
    far = sorted(
        (row.card, row.problem.key, row.auto.variant, row.own.variant)
        for row in rows
        if row.auto and row.own and row.auto_ratio is not None and row.auto_ratio < 0.85
    )
    assert not far, "the rule of each names a variant that takes far more time than another own one"


def test_misses_come_first_and_the_filters_select() -> None:
    bench = use_cases.current()
    every = library_comparison(bench)
    ratios = [row.ratio for row in every if row.ratio is not None]
    assert ratios == sorted(ratios)
    assert all(row.ratio is None for row in every[len(ratios) :])
    card, op = every[0].card, "softmax"
    some = library_comparison(bench, card=card, op=op)
    assert some
    assert {(row.card, row.problem.op) for row in some} == {(card, op)}
    assert {row.problem.op for row in library_comparison(bench, family="attention")} >= {
        "attention",
        "attention_decode",
    }
    record = library_records(some)[0]
    assert record["auto"] == some[0].choice
    assert set(record["libraries"]) == {r.variant for r in some[0].libraries}
    for wrong in ({"card": "H300"}, {"family": "attentions"}, {"op": "sofmax"}):
        with pytest.raises(UnknownName):
            library_comparison(bench, **wrong)  # type: ignore[arg-type]


def test_a_run_that_is_stored_here_is_compared_too_and_replaces_the_recorded_one(tmp_path: Path) -> None:
    bench = Bench(Store.open(tmp_path), (samples.CPU,), lock_directory=tmp_path)
    recorded = bench.load("h200-softmax")
    bench.history.add(msgspec.structs.replace(recorded, id="of-here"))
    rows = library_comparison(bench, op="softmax", card="NVIDIA H200")
    assert len(rows) == len(library_comparison(use_cases.current(), op="softmax", card="NVIDIA H200"))
    assert {row.run_id for row in rows} == {"of-here", "h200-softmax-backward"}
    another = msgspec.structs.replace(recorded.environment.device, name="NVIDIA H200 NVL")
    elsewhere = msgspec.structs.replace(recorded.environment, device=another)
    bench.history.add(msgspec.structs.replace(recorded, id="of-another", environment=elsewhere))
    assert "NVIDIA H200 NVL" in cards_of(every_row(bench))
    bench.close()


def test_command_and_python_give_the_same_choice(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {"m": 4096, "n": "m", "k": "m"}
    assert (
        main(["best", "matmul", *(f"--size={a}={s}" for a, s in sizes.items()), "--dtype", "bf16", "--device", "H100"])
        == 0
    )
    shown = capsys.readouterr()
    assert shown.out.strip() == kv.best_variant("matmul", sizes, "bf16", device="h100") == "gluon_warp_specialised"
    assert "Rule: In 16 bits" in shown.err
    assert (
        main(["best", "topk", "--size", "m=4", "--size", "n=1000", "--size", "k=2", "--device", "H200", "--json"]) == 0
    )
    assert '"variant":"cuda_radix_select"' in capsys.readouterr().out.replace(" ", "").replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["softmax", "--size", "m=4"], "needs a size for each"),
        (["softmax", "--size", "m=4", "--size", "n=1,2"], "one size for each axis"),
        (["softmax", "--size", "m=4", "--size", "n=8", "--size", "q=2"], "axis"),
        (["softmax", "--size", "m=4", "--size", "n=8", "--device", "H300"], "H300"),
        (["softmax", "--size", "m=4", "--size", "n=8", "--device", "cpu"], "name a GPU"),
        (["sofmax", "--size", "m=4"], "softmax"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_what_to_do(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["best", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_facts_of_recorded_cards_are_those_of_the_examples() -> None:
    assert card_of(recorded_cards()["NVIDIA H200"]) == H200
    assert best(use_cases.current(), "row_sum", {"m": 4, "n": 8}).device.kind == "cuda"


def test_a_rule_and_its_kernel_have_the_same_limits() -> None:
    """Beyond them, a kernel that a rule names would silently be another one."""
    from kernelviz.ops.activation import best as activation
    from kernelviz.ops.activation import cuda as activation_kernels
    from kernelviz.ops.column_reduction import best as columns
    from kernelviz.ops.column_reduction import periodic_cluster
    from kernelviz.ops.pointwise_chain import at_once
    from kernelviz.ops.pointwise_chain import best as chain
    from kernelviz.ops.pointwise_chain import cuda as chain_kernels
    from kernelviz.ops.pointwise_chain import triton_known_size as chain_triton
    from kernelviz.ops.quantize import best as quantize
    from kernelviz.ops.quantize import triton_known_length as quantize_triton
    from kernelviz.ops.reduction import best as sums
    from kernelviz.ops.reduction import one_block
    from kernelviz.ops.row_reduction import best as rows
    from kernelviz.ops.row_reduction import known_length
    from kernelviz.ops.scatter_add import best as scatter
    from kernelviz.ops.scatter_add import shared

    assert columns.CLUSTER_BYTES == periodic_cluster.CLUSTER_BYTES
    assert activation.FAST_ELEMENTS == activation_kernels.FEW_ELEMENTS
    assert chain.FEW_NUMBERS <= chain_kernels.FEW_ELEMENTS
    assert chain.MOST_STEPS == chain_kernels.MOST_STEPS == at_once.MOST_STEPS == chain_triton.MOST_STEPS
    assert quantize.SHORT_KNOWN_ROW == quantize_triton.LONGEST_ROW
    assert (rows.KNOWN_LENGTH, rows.KNOWN_ELEMENTS) == (known_length.LONGEST, known_length.MOST_ELEMENTS)
    assert sums.ONE_BLOCK_BESIDE_CLUSTER_BYTES == one_block.KNOWN_SIZE_BYTES
    assert scatter.ADDITIONS_SAVED == shared.ADDITIONS_SAVED
