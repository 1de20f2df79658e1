"""Save what the page Code shows: each artifact as the compiler made it, and SASS as text."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.code import CaseArtifact
from kernelviz.bench.code_page import code_document
from kernelviz.text.code_listings import KIND_NAMES
from kernelviz.ui.code.choice import Side
from kernelviz.ui.shared import download_button

_SUFFIXES = {"ttir": "ttir", "ttgir": "ttgir", "ptx": "ptx", "sass": "sass", "cubin": "cubin"}
_NAMES = {str(kind): name for kind, name in KIND_NAMES.items()} | {"cubin": "Cubin"}


_PAGE = "Page that opens offline"


def artifacts(bench: Bench, sides: Sequence[Side]) -> None:
    """A box with every artifact of the shown kernels and the whole page, and a button that saves one."""
    popover = st.popover("Download", icon=":material/download:", key="code_download_popover", on_change="rerun")
    if not popover.open:
        return
    with popover:
        offered: dict[str, CaseArtifact] = {}
        for name, side in zip(("A", "B"), sides, strict=False):
            for artifact in _of(bench, side):
                label = f"{_NAMES[artifact.kind]}{f' {artifact.name}' if artifact.name else ''}"
                label += f" of {name}" if len(sides) > 1 else ""
                offered.setdefault(label, artifact)
        going_on = any(side.going_on for side in sides)
        names = [*([] if going_on else [_PAGE]), *offered]
        if not names:
            st.markdown("There is nothing to save.")
            return
        chosen = st.selectbox("File", names, key="code_artifact")
        if chosen == _PAGE:
            cases = [side.case for side in sides]
            download_button.button(
                partial(code_document, bench, *cases), f"kernelviz-code-{'-'.join(s.variant for s in sides)}.html", "text/html",
                choice=tuple((side.run.id, side.variant, side.problem, side.kernel) for side in cases),
                key="save_code_page", icon=":material/save:", caption="Every text, and all facts, in one file.",
            )  # fmt: skip
            return
        artifact = offered[chosen]
        download_button.button(
            partial(_content, artifact), _file_name(artifact), "application/octet-stream",
            choice=(artifact.digest, artifact.kind, artifact.name), key="save_artifact", icon=":material/save:",
            caption="The bytes as the compiler made them." if artifact.kind != "sass" else "As nvdisasm prints the cubin.",
        )  # fmt: skip


def _of(bench: Bench, side: Side) -> list[CaseArtifact]:
    code = bench.history.code
    listed = code.of_case(side.run, side.variant, problem=side.problem.key, kernel=side.kernel)
    has_sass = "sass" in side.kinds
    return [
        *listed,
        *(
            code.of_case(side.run, side.variant, problem=side.problem.key, kernel=side.kernel, kind="sass")
            if has_sass
            else ()
        ),
    ]


def _content(artifact: CaseArtifact) -> bytes:
    return artifact.content()


def _file_name(artifact: CaseArtifact) -> str:
    """A name that tells variants apart; a source keeps its own name."""
    if artifact.kind == "source":
        suffix = "py" if artifact.code.compiler in ("triton", "inductor") else "cu"
        return artifact.name or f"{artifact.variant}.{suffix}"
    return f"{artifact.variant}-{artifact.digest[:8]}.{_SUFFIXES[artifact.kind]}"
