"""Published variants that are known to be wrong or slow run only in a plan that names them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_runs as samples
from cases import WRONG
from rehearsed_bench import RehearsedBench

from kernelviz.bench.planning import chosen_variants
from kernelviz.bench.summaries import Offer
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Direction
from kernelviz.core.reasons import NeedMissing
from kernelviz.core.request import RunRequest
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ui.bench import link
from kernelviz.ui.bench.form import choices, default_form, reconciled

NAMED = [(op, v) for op in catalogue().values() for v in op.variants if v.only_when_named]
by_name = pytest.mark.parametrize(("op", "variant"), NAMED, ids=lambda x: x.name)


@pytest.fixture
def bench() -> RehearsedBench:
    return RehearsedBench((samples.H200, samples.CPU))


def test_every_variant_that_is_wrong_on_purpose_runs_only_when_it_is_named() -> None:
    assert {(op.name, v.name) for op, v in NAMED} >= WRONG


@pytest.mark.parametrize("op", list(catalogue().values()), ids=lambda op: op.name)
def test_a_plan_without_names_has_all_other_variants_that_can_run(bench: RehearsedBench, op: Op) -> None:
    for device in ("cuda:0", "cpu"):
        for dtype in op.dtypes:
            plan = bench.plan(RunRequest(op=op.name, dtype=dtype, device=device))
            able = {
                o.variant.name
                for o in bench.offers(op.name, device)
                if o.available and o.variant.refuses(plan.problems[0]) is None
            }
            assert set(plan.variants) == able - {v.name for o, v in NAMED if o is op}


@by_name
def test_a_plan_has_it_when_it_is_named(bench: RehearsedBench, op: Op, variant: Variant) -> None:
    dtype = (variant.dtypes or op.dtypes)[0]
    assert bench.plan(RunRequest(op=op.name, dtype=dtype, variants=(variant.name,))).variants == (variant.name,)
    others = bench.plan(RunRequest(op=op.name, dtype=dtype)).variants
    assert bench.plan(RunRequest(op=op.name, dtype=dtype, baseline=variant.name)).variants == (variant.name, *others)


@by_name
def test_the_form_offers_it_and_does_not_choose_it(bench: RehearsedBench, op: Op, variant: Variant) -> None:
    dtype = (variant.dtypes or op.dtypes)[0]
    form = default_form(bench, op.name, "cuda:0")
    assert variant.name not in form.variants
    assert variant.name not in link.read({"op": op.name, "dtype": dtype}, bench).form.variants
    direction: Direction | None = form.direction
    offered = {c.variant.name: c for c in choices(bench, op, "cuda:0", dtype, None, direction)}
    assert offered[variant.name].usable
    asked = link.read({"op": op.name, "dtype": dtype, "variants": variant.name}, bench)
    assert (asked.form.variants, asked.complaints) == ((variant.name,), ())
    assert reconciled(asked.form, form, bench).variants == (variant.name,)


def test_a_plan_of_nothing_else_asks_for_a_name() -> None:
    """Also where no other variant can run: what cannot run is planned and fails with its reason, this is not."""
    op, variant = NAMED[0]
    problem = op.problem(dict.fromkeys(op.axis_names, 64), (variant.dtypes or op.dtypes)[0])
    with pytest.raises(BadField, match=f"name at least one of.*{variant.name}"):
        chosen_variants(op, (Offer(variant),), (problem,), None, None)
    other = next(v for v in op.variants if not v.only_when_named)
    offers = (Offer(variant), Offer(other, NeedMissing(text="not here")))
    assert chosen_variants(op, offers, (problem,), None, None)[0] == (other.name,)


def test_the_list_of_ops_says_which() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ops.md").read_text()
    for op, variant in NAMED:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{op.name}` |")]
        assert f"`{variant.name}` (only when named)" in line
