"""Gallery: recorded runs by family, with a small chart and one sentence each, and the ops that can be measured here."""

from kernelviz.bench.gallery import gallery
from kernelviz.ui.gallery import choice, families
from kernelviz.ui.shared import session

bench = session.bench()
families.open_started_run()
choice.title()
chosen = choice.filters(bench)
shown = gallery(bench, family=chosen.family, op=chosen.op, device=chosen.device)
for family in shown:
    if family.recorded:
        families.recorded_family(bench, family)
families.ops_without_a_run(bench, shown)
