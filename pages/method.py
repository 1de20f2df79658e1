"""Method: how each number is measured, how reliable it is, and whether the selftest confirms that on this machine."""

from kernelviz.ui.method import sections, selftest
from kernelviz.ui.shared import live_progress, session, view_filters

bench = session.bench()
sections.title()
device = view_filters.device_choice(bench)
activity = live_progress.activity_to_show(bench, selftest.PARAM)
last = bench.last_selftest(device.id)  # after the activity: its last results are then in it

sections.device_cold(device, last)
selftest.selftest_section(bench, device, last, activity)
sections.timings()
sections.naive_protocol(device)
sections.verdicts()
sections.measurement_quality(sections.quality_example(bench))
sections.roof_rules(bench.roofs(device.id))
sections.rejected_results()
