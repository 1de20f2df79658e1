"""The card of a run, for pages, the command line and notebooks."""

from collections.abc import Sequence
from typing import cast, get_args

from kernelviz.bench.bench import Bench
from kernelviz.bench.exported import with_roofs
from kernelviz.bench.snapshots import selected
from kernelviz.core import BadField, Run, check_name
from kernelviz.metrics import foreign_times
from kernelviz.metrics.chart_selection import charted_variants
from kernelviz.metrics.figures import Headline
from kernelviz.plots.card import Scheme
from kernelviz.plots.card import card as draw


def card(
    bench: Bench,
    run: Run,
    *,
    variants: Sequence[str] | None = None,
    l2: str = "cold",
    link: str = "",
    scheme: str = "light",
) -> str:
    """The card as an SVG document. `variants`: only these and the baseline. `link`: where the run can be opened.

    Errors: UnknownName for a variant, the cache state or the colour scheme; BadField for a run without device times.
    """
    check_name("l2", l2, get_args(Headline))
    check_name("scheme", scheme, get_args(Scheme))
    if foreign_times.alone(run):
        raise BadField("run", run.id, "it holds times of another tool only, and a card shows device times")
    part = with_roofs(bench, selected(run, variants=variants))
    every = charted_variants(run)
    return draw(part, headline=cast(Headline, l2), link=link, scheme=cast(Scheme, scheme), beside=every)
