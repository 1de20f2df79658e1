"""The tiles of a run on its page and its card: of a tuning, the configuration that it chose, else the answers of its summary."""

from collections.abc import Sequence

from kernelviz.core import Run, units
from kernelviz.core.configuration import configuration_text, parted
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import summary
from kernelviz.metrics.tuning import Tried, is_tuning, speed_up_span, tried
from kernelviz.text.roofs import format_share
from kernelviz.text.tiles import Tile, tiles


def tiles_of_run(run: Run, table: Sequence[Row], headline: Headline = "cold") -> tuple[Tile, ...]:
    """The tiles of a run. Of a tuning with a correct cold time they are about the configuration that the tuning chose, which is
    not the one with the shortest single time (`metrics.tuning`), so that no two pages name different ones."""
    result = tried(run) if headline == "cold" and is_tuning(run) else None
    if result is None or result.best is None:
        return tiles(summary(table, headline), run.plan, headline)
    name = result.best.result.variant
    row = next((r for r in table if r.result.variant == name), result.best)
    return (
        Tile(
            f"Best configuration{'' if run.status == 'finished' else ' so far'}",
            configuration_text(parted(name)[1] or {}),
            "the default: no other is measurably faster" if result.best is result.default else _chosen_among(result),
            "The configuration that the tuning chose: the fastest of those that were measured again at the end, if it is "
            "measurably faster than the default, else the default. A shorter single time of another one can be chance.",
        ),
        _speed_up(result, result.best),
        Tile(
            "Share of the measured roof",
            "unknown" if row.efficiency is None else str(format_share(row.efficiency)),
            "its roof was not measured, or cannot be used" if row.efficiency is None else "of the best configuration",
            "The shortest time that the measured bandwidth and arithmetic rate of this device allow, divided by the measured "
            "time of the best configuration.",
        ),
    )


def _chosen_among(result: Tried) -> str:
    count = units.counted(result.tried, "configuration")
    return f"fastest of {len(result.final)} in the final, {count} tried" if result.final else f"of {count} tried so far"


def _speed_up(result: Tried, best: Row) -> Tile:
    how = "Time of the default configuration divided by that of the best one, compared in each measuring round."
    span = speed_up_span(best)
    if best is result.default:
        return Tile("Speed-up over the default", "1.00×", "the default is the best", how)
    if span is None:
        return Tile("Speed-up over the default", "unknown", "the default has no time", how)
    if span.low is None or span.high is None:
        return Tile("Speed-up over the default", f"{units.factor(span.estimate)}×", "without an interval", how)
    factor, low, high = units.factor_with_interval(span.estimate, span.low, span.high)
    return Tile("Speed-up over the default", f"{factor}×", f"95 % interval {low} to {high}", how)
