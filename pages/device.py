"""Device: what this machine is, what it reports now, its roofs against its data sheet, and how they moved."""

from __future__ import annotations

from kernelviz.ui.device import live, machine, roofs
from kernelviz.ui.method import sections
from kernelviz.ui.shared import session

bench = session.bench()
machine.heading()
chosen = sections.device_choice(bench)
machine.machine(bench, chosen)
live.show(bench, chosen)
roofs.show(bench, chosen)
roofs.history(bench, chosen)
machine.run_times(bench, chosen)
