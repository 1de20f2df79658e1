"""Every reason and every missing fact of a fusion has a text, and so has every step and family."""

from __future__ import annotations

from typing import get_args

import pytest
import sample_fusions as plant

from kernelviz.core.fusion import FusionFamily, StepKind
from kernelviz.metrics import fusion_reasons as why
from kernelviz.metrics.fusion import payoff
from kernelviz.metrics.fusion_prediction import LaunchSource, MissingFact
from kernelviz.text import fusion as text

EXAMPLES: tuple[why.FusionReason, ...] = (
    why.ComputeBoundStep(0.7),
    why.CacheResident(2**20, 60 * 2**20),
    why.SmallerThanCopies(2**16, 2**23),
    why.LaunchesMatter(1, 0.4),
    why.SlowSteps(2.5),
    why.SlowFused(1.5, "compute"),
    why.Spills(64),
    why.OtherKernels("torch", "cuda"),
    why.SeveralKernels(3),
    why.WideInterval(0.3),
    why.NotExplained(),
)


def test_every_kind_has_a_text() -> None:
    assert set(text.FAMILIES) == set(get_args(FusionFamily))
    assert set(text.STEPS) == set(get_args(StepKind))
    assert set(text.MISSING) == set(get_args(MissingFact))
    assert set(text.LAUNCH_SOURCES) == set(get_args(LaunchSource))
    assert {type(one) for one in EXAMPLES} == set(get_args(why.FusionReason))


@pytest.mark.parametrize("reason", EXAMPLES, ids=lambda one: type(one).__name__)
def test_every_reason_is_one_clause_without_an_open_field(reason: why.FusionReason) -> None:
    (said,) = map(str, text.describe_reasons((reason,)))
    assert said
    assert "{" not in said
    assert not said.endswith(".")


def test_sentences_about_a_row_and_a_line() -> None:
    rows = plant.rows()
    fastest = [row for row in rows if row.fastest]
    said = str(text.describe_row(fastest[-1]))
    assert said.startswith("Fusing transposition → relu at m = 32,768, n = 8,192 saves 1.07 GB and 1 launch: ")
    assert "predicted by the time of the steps, 2.00 × predicted by the roofs alone." in said
    line = payoff(fastest, "m")
    assert str(text.describe_payoff(line)) == "Fusing pays at all 5 sizes of m with a clear verdict."
    slow = next(row for row in rows if not row.fastest and row.problem == fastest[-1].problem)
    assert str(text.describe_split(fastest[-1], slow)).startswith("Over contiguous then op the fused variant is ")
    assert "so the product of the two factors need not be exactly the whole." in str(
        text.describe_split(fastest[-1], slow)
    )
    assert str(text.describe_split(fastest[-1], fastest[-1])) == ""
