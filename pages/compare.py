"""Compare: run B held against run A, or one variant against another, the worst case first."""

from __future__ import annotations

from kernelviz.ui.compare import choice, panels
from kernelviz.ui.shared import session

bench = session.bench()
panels.heading()
chosen = choice.runs(bench)
if chosen is not None:
    panels.show(bench, *chosen)
else:
    choice.nothing_chosen(bench)
