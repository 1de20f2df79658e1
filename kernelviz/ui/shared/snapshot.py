"""The form that saves a run, or its visible part, as a file with its own title and note."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.exported import encoded
from kernelviz.bench.history import NOTE_CHARACTERS, TITLE_CHARACTERS
from kernelviz.bench.snapshots import selected
from kernelviz.core import Run
from kernelviz.formats import Export, describe_unreadable, digest, exports
from kernelviz.text import format_sizes, format_variant
from kernelviz.ui.shared import download_button
from kernelviz.ui.shared.text import plain

_FIRST_FORMATS = ("html", "json")


@st.fragment
def save(bench: Bench, run: Run, variants: Sequence[str]) -> None:
    """The form: sizes, title, note, format, and the button that saves. `variants`: the visible ones."""
    stored = bench.load(run.id)
    st.markdown(f"**File**: the visible part of the run, {_describe_variants(stored, variants)}.")
    problems = {p.key: p for p in stored.plan.problems}
    left, right = st.columns(2)
    with left:
        export = format_box("save_format")
    sizes = right.multiselect(
        "Sizes",
        list(problems),
        key="save_sizes",
        placeholder=f"all {len(problems)} sizes" if len(problems) > 1 else "the only size",
        format_func=lambda k: format_sizes(problems[k]),
        disabled=len(problems) < 2,
    )
    chosen = [k for k in sizes if k in problems] or None
    title = st.text_input("Title", value=stored.title, max_chars=TITLE_CHARACTERS, key=f"save_title_{run.id}")
    note = st.text_area("Note", value=stored.note, max_chars=NOTE_CHARACTERS, key=f"save_note_{run.id}", height=70)
    part = selected(stored, variants=variants, problems=chosen, title=" ".join(title.split()), note=note.strip())
    caption = f"{len(part.results)} of {len(stored.plan.cases())} cases"
    sha256 = file_button(bench, part, export, key="save_selection", caption=caption)
    st.caption(f"SHA-256 of the content, verified on import: `{sha256}`")


def file_button(bench: Bench, run: Run, export: Export, *, key: str, caption: str) -> str:
    """The button that saves a run in a format, with the roofs that the pages show; returns the digest of the run."""
    sha256 = digest(run)
    download_button.button(
        partial(encoded, run, export, lambda: bench),
        f"kernelviz-{run.id}{export.suffix}",
        export.media_type,
        choice=(export.name, sha256, run.id, run.title, run.note, *(r.measured_at for r in bench.roofs_of(run))),
        key=key,
        icon=":material/save:",
        caption=caption,
        warning=partial(describe_unreadable, export.name),
    )
    return sha256


def format_box(key: str) -> Export:
    """The box for the file format."""
    formats = exports()
    names = [n for n in _FIRST_FORMATS if n in formats] + [n for n in formats if n not in _FIRST_FORMATS]
    return formats[st.selectbox("Format", names, key=key, format_func=lambda n: formats[n].label or n)]


def _describe_variants(run: Run, names: Sequence[str]) -> str:
    if len(names) == len(run.plan.variants):
        return f"all {len(names)} variants" if len(names) > 1 else "its only variant"
    return plain(", ".join(map(format_variant, names)))
