"""Device: what this machine is, what it reports now, its roofs against its data sheet, and how they moved."""

from __future__ import annotations

from kernelviz.ui import device, device_live, device_roofs, method, session

bench = session.bench()
device.heading()
chosen = method.device_choice(bench)
device.machine(bench, chosen)
device_live.show(bench, chosen)
device_roofs.show(bench, chosen)
device_roofs.history(bench, chosen)
device.run_times(bench, chosen)
