"""Method: how each number is measured, how reliable it is, and whether the selftest confirms that on this machine."""

from kernelviz.ui.method import sections, selftest
from kernelviz.ui.shared import session
from kernelviz.ui.shared.device_choice import device_choice

bench = session.bench()
sections.title()
device = device_choice(bench)
activity = selftest.followed_selftest(bench)
last = bench.last_selftest(device.id)  # after the activity: its last results are then in it

sections.device_cold(device, last)
selftest.selftest_section(bench, device, last, activity)
sections.timings()
sections.verdicts()
sections.measurement_quality(sections.quality_example(bench))
sections.roof_rules(bench.roofs(device.id))
sections.rejected_results()
