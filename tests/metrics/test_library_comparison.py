"""The library comparison: which variants are own ones, which are a library's, and which of them count."""

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.result import Failure, Stage
from kernelviz.core.run import Run
from kernelviz.metrics.library_comparison import comparison_rows, mean_ratio, time_s
from kernelviz.text.library_comparison import conclusion, format_row, markdown

BACKENDS = {"triton": "triton", "composite": "torch", "torch": "torch"}


def measured(**words: object) -> Run:
    """A sample run whose results contain the digest of their source, like real results."""
    made = samples.run(**words)  # type: ignore[arg-type]
    named = [msgspec.structs.replace(r, backend=BACKENDS[r.variant.split("_")[0]]) for r in made.results]
    return msgspec.structs.replace(made, results=tuple(named))


def test_the_fastest_of_either_side_counts() -> None:
    run = measured()
    for row in comparison_rows([run]):
        mine = [r for r in run.results if r.problem == row.problem]
        own = min((r for r in mine if r.backend == "triton" and r.timing), key=lambda r: time_s(r) or 1.0)
        library = min((r for r in mine if r.backend == "torch" and r.timing), key=lambda r: time_s(r) or 1.0)
        assert row.own == own
        assert row.library == library
        assert row.ratio == pytest.approx((time_s(library) or 0) / (time_s(own) or 1))
        assert 0 < (row.share or 0) < 1.1


@pytest.mark.parametrize("stage", ["wrong", "impossible"])
def test_a_wrong_variant_counts_for_nothing(stage: Stage) -> None:
    run = measured()
    wrong = Failure(stage=stage, message="off by one")
    spoilt = msgspec.structs.replace(
        run,
        results=tuple(msgspec.structs.replace(r, outcome=wrong) if r.backend == "triton" else r for r in run.results),
    )
    found = comparison_rows([spoilt])
    assert {s.own for s in found} == {None}
    assert {s.ratio for s in found} == {None}
    assert mean_ratio(found) is None
    assert format_row(found[0])[2] == "none is correct"
    assert str(conclusion(found)) == "no problem with a correct time of an own variant and of a library"


def test_who_is_wrong_at_one_size_leads_at_none() -> None:
    run = measured()
    best = comparison_rows([run])[0].own
    assert best is not None
    at = next(i for i, r in enumerate(run.results) if r.variant == best.variant and r.problem != best.problem)
    spoilt = list(run.results)
    spoilt[at] = msgspec.structs.replace(spoilt[at], outcome=Failure(stage="wrong", message="off by one"))
    found = comparison_rows([msgspec.structs.replace(run, results=tuple(spoilt))])
    assert best.variant not in {s.own.variant for s in found if s.own}
    assert len(found) == len(comparison_rows([run]))


def test_what_was_measured_again_counts_once_and_ops_stand_together() -> None:
    first, again = measured(id="a"), measured(id="b", shares={"torch_eager": 0.5, "triton_persistent": 0.8})
    found = comparison_rows([first, again])
    assert len(found) == len({s.problem.key for s in found})
    assert all(s.own in again.results for s in found)
    assert len(markdown(found).splitlines()) == 2 + len(found)
