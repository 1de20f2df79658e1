"""Roofline: any results under the roofs of their machines, how far below, and what limits them."""

from __future__ import annotations

from kernelviz.ui import roofline, session

bench = session.bench()
roofline.heading()
chosen = roofline.runs_choice(bench)
if chosen:
    roofline.show(bench, chosen)
else:
    roofline.nothing_chosen(bench)
