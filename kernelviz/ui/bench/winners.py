"""Who is fastest at which size, as a picture's words: for its alternative text, and below it for everybody."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row
from kernelviz.metrics.sweep import size_text
from kernelviz.metrics.winner import winners
from kernelviz.plots.variant_styles import variant_words
from kernelviz.text.winners import winner_words
from kernelviz.ui.shared.text import plain


def words(found: Sequence[Row], axis: str | None, headline: Headline) -> list[str]:
    """A line for each strip of sizes: who leads up to where."""
    return winner_words(found, winners(found, headline), axis, variant_words, size_text)


def show(lines: Sequence[str]) -> None:
    """The words below the picture, with the rule behind them."""
    st.markdown(
        "\n".join(f"- {plain(line)}" for line in lines),
        help="The fastest correct variant at each size, by the rule of verdicts: it leads where the interval of the ratio of "
        "both times, round by round, clears the noise floor. Where it does not, the size is hatched and each that may be the "
        "fastest is named. A sentence has as few changes as the verdicts allow.",
    )
