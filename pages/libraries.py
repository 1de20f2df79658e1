"""Libraries: own variants and the chosen one against every library, by op and size, the misses first."""

from kernelviz.bench.library_comparison import every_row, matching
from kernelviz.ui.libraries import choice, panels
from kernelviz.ui.shared import session

bench = session.bench()
choice.title()
every = every_row(bench)
chosen = choice.filters(bench, every)
rows = matching(bench, every, card=chosen.card, family=chosen.family, op=chosen.op)
if rows:
    panels.summary(rows)
    choice.take_click()
    clicked = panels.problems(rows)
    described = choice.problem(rows, clicked)
    if described is not None:
        panels.one_problem(bench, described)
    panels.as_file(rows)
else:
    panels.nothing_listed(every)
