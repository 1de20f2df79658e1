"""Which columns come first, widths that Streamlit would measure by the first rows only, and cells that it would draw empty."""

from __future__ import annotations

import sample_runs as samples

from kernelviz.metrics.rows import rows
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import View
from kernelviz.ui.shared import table


def test_the_column_of_the_variants_has_space_for_one_that_is_measured_later() -> None:
    """The name of torch_compile, which arrived after those of shorter names, lost its last letter."""
    run = samples.run(shares={"torch_eager": 0.5, "triton_block_per_row": 0.9})
    shown = cases(run, rows(run, run.environment.roofs))
    _, config = table.frame(case_columns(shown, View.WIDE), shown)
    assert config["Variant"]["width"] >= 8 * len("triton block per row")
    assert config["Versus torch eager"]["width"] == "medium"


def test_an_unknown_share_of_the_roof_is_a_dash_and_no_empty_cell() -> None:
    """A bar has no placeholder. If no roof was measured, its column was empty in all rows."""
    kinds = []
    for run in (samples.run(shares={"torch_eager": 0.5}), samples.run(roofs=())):
        shown = cases(run, rows(run, run.environment.roofs))
        _, config = table.frame(case_columns(shown, View.WIDE), shown)
        kinds.append(config["Share of roof, %"]["type_config"]["type"])
    assert kinds == ["progress", "number"]


def test_the_time_stands_beside_the_variant_and_the_sizes_that_tell_rows_apart() -> None:
    """On a phone, a run of attention at one size showed five sizes and no time. The stages of a network have h = w and c = k."""
    sizes = {"b": 1, "s": 4096, "hq": 16, "hk": 16, "d": 128}
    stages = [{"n": 256, "h": h, "w": h, "c": 3584 // h, "k": 3584 // h, "r": 3, "s": 1} for h in (56, 28, 14)]
    runs = {
        "": samples.run(op="attention", sizes=[sizes], shares={"torch_eager": 0.5}),
        "b|s": samples.run(op="attention", sizes=[sizes | {"b": 2**12 // s, "s": s} for s in (1024, 2048)]),
        "h = w|c = k": samples.run(op="conv2d", sizes=stages, shares={"torch_eager": 0.5}),
    }
    for leading, run in runs.items():
        shown = cases(run, rows(run, run.environment.roofs))
        headings = [column.heading for column in case_columns(shown, View.WIDE)]
        before = headings.index("Cold time")
        assert headings[:before] == ["Variant", *filter(None, leading.split("|"))]
        last = [] if leading else list(sizes)
        assert headings[len(headings) - len(last) :] == last
