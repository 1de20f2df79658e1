"""Gallery: recorded runs by family, with a small chart and one sentence each, and the ops that can be measured here."""

from kernelviz.bench.gallery import gallery, layout
from kernelviz.ui.gallery import choice, families, further
from kernelviz.ui.shared import session

bench = session.bench()
families.open_started_run()
choice.title()
chosen = choice.filters(bench)
found = gallery(bench, family=chosen.family, op=chosen.op, device=chosen.device)
shown = layout(found)
choice.summary(shown)
for name, cards in shown.cards:
    families.cards(bench, name, cards)
families.lists(shown.lists)
further.section()
families.ops_without_a_run(bench, found)
