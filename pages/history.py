"""History: every run kept here, found, opened, named, deleted and brought back, downloaded and uploaded."""

from __future__ import annotations

from kernelviz.ui import history_list, history_run, session, upload

bench = session.bench()
upload.heading(bench)
history_run.undo_bar(bench)
search = history_list.search_box()
history_list.show(bench, search)
history_list.shipped(bench)
history_list.deleted(bench)
