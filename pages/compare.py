"""Compare: run B held against run A, or one variant against another, the worst case first."""

from __future__ import annotations

from kernelviz.ui import compare, compare_choice, session

bench = session.bench()
compare.heading()
chosen = compare_choice.runs(bench)
if chosen is not None:
    compare.show(bench, *chosen)
else:
    compare_choice.nothing_chosen(bench)
