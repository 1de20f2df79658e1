"""Method: how numbers are made, what stands behind each, and what the instrument's own test found here."""

from __future__ import annotations

from kernelviz.ui import method, method_selftest, session

bench = session.bench()
method.heading()
device = method.device_choice(bench)
asked = method_selftest.asked_for(bench)
last = bench.last_selftest(device.id)
method.device_cold(device, last)
method_selftest.section(bench, device, last, asked)
method.figures()
method.verdicts()
method.trust_line(method.example(bench))
method.roofs(bench.roofs(device.id))
method.refused()
