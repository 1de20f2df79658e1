"""Everything that a screen of the page Bench says twice and differently.

A check knows nothing of how the product computes: it compares what a reader sees, and allows what intervals and rounding allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import checks_of_cases as cases
import checks_of_tiles as tiles
from screen import Screen

Finding = tuple[str, str]
"""The name of the check, and what contradicts what."""
CHECKS: tuple[Callable[[Screen], Iterator[str]], ...] = (
    cases.speed_up_is_the_ratio_of_the_shown_times,
    cases.reason_without_a_verdict_is_true,
    cases.interval_of_a_verdict_holds_its_ratio,
    cases.same_work_at_a_size,
    cases.unstable_time_is_no_number,
    cases.charts_and_table_show_the_same,
    cases.list_and_table_say_the_same,
    cases.share_is_rate_over_roof,
    cases.shares_above_the_roof_are_explained,
    tiles.tile_best_overall,
    tiles.tile_speed_up,
    tiles.tile_share_and_worst_size,
    tiles.tile_wins_most_sizes,
    tiles.winners_follow_from_the_verdicts,
    tiles.sentences_follow_from_the_winners,
)


def contradictions(screen: Screen) -> list[Finding]:
    """Everything that the page says twice and differently."""
    return [(check.__name__, said) for check in CHECKS for said in check(screen)]
