"""Method: how numbers are made, what stands behind each, and what the instrument's own test found here."""

from __future__ import annotations

from kernelviz.ui.method import sections, selftest
from kernelviz.ui.shared import session

bench = session.bench()
sections.heading()
device = sections.device_choice(bench)
asked = selftest.asked_for(bench)
last = bench.last_selftest(device.id)
sections.device_cold(device, last)
selftest.section(bench, device, last, asked)
sections.figures()
sections.verdicts()
sections.trust_line(sections.example(bench))
sections.roofs(bench.roofs(device.id))
sections.refused()
