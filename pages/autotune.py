"""Autotune: search the configurations of a variant, follow the search, and see what each parameter is worth."""

from kernelviz.ui.autotune import choice, form, measuring, panels, stored
from kernelviz.ui.shared import session

bench = session.bench()
panels.title()
measuring.open_started_run()
tunings = choice.tunings_here(bench)
if choice.mode(bench, tunings) == "new":
    form.new_tuning(bench)
else:
    run = choice.run_box(bench, tunings)
    if run is None:
        panels.nothing_tuned(bench)
    else:
        measuring.controls(bench, run)
        panels.of_run(bench, run)
stored.tunings(bench)
