"""A run, or what is shown of it, saved as a file with a title and a note of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.history import NOTE_CHARACTERS, TITLE_CHARACTERS
from kernelviz.bench.snapshots import selected
from kernelviz.core.run import Run
from kernelviz.formats import Export, digest, exports
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.ui.shared import download_button
from kernelviz.ui.shared.text import plain

_WORDS = {"json": "document (.json)", "html": "page (.html), opens offline"}
_FIRST = ("html", "json")


@st.fragment
def save(bench: Bench, run: Run, variants: Sequence[str]) -> None:
    """The form: sizes, title, note, format, and the button that saves. `variants`: those shown."""
    stored = bench.load(run.id)
    st.markdown(f"**A file** of what is shown: {_variants(stored, variants)}.")
    problems = {p.key: p for p in stored.plan.problems}
    left, right = st.columns(2)
    with left:
        to = format_box("save_format")
    with right:
        sizes = st.multiselect(
            "Sizes",
            list(problems),
            key="save_sizes",
            placeholder=f"all {len(problems)}" if len(problems) > 1 else "the one size",
            format_func=lambda k: size_words(problems[k]),
            disabled=len(problems) < 2,
        )
    chosen = [k for k in sizes if k in problems] or None
    title = st.text_input("Title", value=stored.title, max_chars=TITLE_CHARACTERS, key=f"save_title_{run.id}")
    note = st.text_area("Note", value=stored.note, max_chars=NOTE_CHARACTERS, key=f"save_note_{run.id}", height=70)
    made = selected(stored, variants=variants, problems=chosen, title=" ".join(title.split()), note=note.strip())
    facts = digest(made)
    download_button.button(
        partial(to.encode, made),
        f"kernelviz-{made.id}{to.suffix}",
        to.media_type,
        choice=(to.name, facts, made.id, made.title, made.note),
        key="save_selection",
        icon=":material/save:",
        words=f"{len(made.results)} of {len(stored.plan.cases())} cases",
    )
    st.caption(f"Digest of its facts, which is checked when the document is opened: `{facts}`")


def format_box(key: str) -> Export:
    """The format that somebody chooses to save a run in."""
    known = exports()
    names = [n for n in _FIRST if n in known] + [n for n in known if n not in _FIRST]
    return known[st.selectbox("Format", names, key=key, format_func=lambda n: _format_words(known[n]))]


def _variants(run: Run, names: Sequence[str]) -> str:
    if len(names) == len(run.plan.variants):
        return f"all {len(names)} variants" if len(names) > 1 else "its variant"
    return plain(", ".join(map(variant_words, names)))


def _format_words(export: Export) -> str:
    return _WORDS.get(export.name) or getattr(export, "words", "") or export.name


def query(view: Sequence[str]) -> Mapping[str, str]:
    """What the address says of the view."""
    return {name: st.query_params[name] for name in view if name in st.query_params}
