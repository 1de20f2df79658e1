"""Roofline: any results under the roofs of their machines, how far below, and what limits them."""

from __future__ import annotations

from kernelviz.ui.roofline import panels
from kernelviz.ui.shared import session

bench = session.bench()
panels.heading()
chosen = panels.runs_choice(bench)
if chosen:
    panels.show(bench, chosen)
else:
    panels.nothing_chosen(bench)
