"""Text about the code of a kernel and about the difference of two kernels."""

from kernelviz.core.code_listing import CodeListing, LinesUnknown, ListingKind, MissingListing, MissingReason
from kernelviz.core.machine_code import ControlCodes
from kernelviz.core.units import counted
from kernelviz.metrics.line_diff import LineDiff
from kernelviz.text.text import Text, sentence_case

KIND_NAMES: dict[ListingKind, str] = {
    "source": "Source",
    "ttir": "TTIR",
    "ttgir": "TTGIR",
    "ptx": "PTX",
    "sass": "SASS",
    "main-loop": "Main loop",
}
KIND_MEANINGS: dict[ListingKind, str] = {
    "source": "what a person or torch.compile wrote",
    "ttir": "Triton's own language, before the layout of tensors is chosen",
    "ttgir": "Triton's own language, with the layouts of tensors",
    "ptx": "NVIDIA's virtual instructions",
    "sass": "the instructions that the GPU runs, read from the cubin by nvdisasm",
    "main-loop": "the instructions of the loop that does most of the work",
}
CONTROL_LEGEND = (
    "control codes: cycles to stall, Y the scheduler prefers another warp, w and r the barrier that is set when the result is "
    "written and the operands are read, after a colon the barriers it waits for"
)
HINT = "Point at a line, or move to it by the arrow keys, to see the lines that come from the same source line."
NO_PLACE = "no source line is known"
_NORMALISED = (
    "Normalised: registers are numbered anew within each instruction, and addresses, labels and line directives are left out, "
    "because they differ between any two compilations."
)
_NORMALISED_MLIR = (
    "Normalised: the source locations are left out, because their numbers differ between any two compilations."
)
_LINES_UNKNOWN: dict[LinesUnknown, str] = {
    "no_line_table": "the compiler wrote no line numbers, so its lines cannot be linked (NVRTC and nvcc need -lineinfo)",
    "other_files": "its line numbers are those of files whose text is not among the artifacts, so it cannot be linked with the "
    "source",
}
_MISSING: dict[MissingReason, str] = {
    "not_captured": "no compiler made it for this kernel, or it was not captured",
    "not_here": "its content is not on this machine",
    "no_tool": "nvdisasm is not installed",
    "unreadable": "the cubin cannot be read",
    "too_large": "the cubin is larger than what is shown (2 MiB)",
    "no_main_loop": "this kernel has no loop through data",
    "no_machine_code": "the code is for a CPU, for which no PTX and no cubin are made",
}


def describe_lines_unknown(listing: CodeListing) -> Text:
    """Why no line of a listing is linked with the source; empty if lines are.

    >>> print(describe_lines_unknown(CodeListing(kind="ptx", lines=())))
    <BLANKLINE>
    """
    if listing.lines_unknown is None:
        return Text("")
    if listing.kind == "source":
        if listing.lines_unknown == "no_line_table":
            return Text("")  # the other texts say it
        files = (
            "the compiler's line numbers are those of other files, so these lines cannot be linked with the other texts"
        )
        return sentence_case(f"{files}.")
    return sentence_case(f"{_LINES_UNKNOWN[listing.lines_unknown]}.")


def describe_normalised(kind: ListingKind) -> str:
    """What a normalised difference leaves out.

    >>> describe_normalised("ttgir")
    'Normalised: the source locations are left out, because their numbers differ between any two compilations.'
    """
    return _NORMALISED_MLIR if kind in ("ttir", "ttgir") else _NORMALISED


def describe_missing_listing(missing: MissingListing) -> Text:
    """Why a text is not there, and what to do.

    >>> print(describe_missing_listing(MissingListing(kind="main-loop", reason="no_main_loop")))
    No main loop: this kernel has no loop through data.
    """
    remedy = f" ({missing.message})" if missing.message else ""
    name = KIND_NAMES[missing.kind]
    return Text(
        f"No {name.lower() if missing.kind in ('source', 'main-loop') else name}: {_MISSING[missing.reason]}{remedy}."
    )


def format_listing(listing: CodeListing) -> Text:
    """The name of a text and its number of lines.

    >>> print(format_listing(CodeListing(kind="ptx", lines=())))
    PTX, 0 lines
    """
    count = len(listing.lines)
    return Text(f"{KIND_NAMES[listing.kind]}, {count:,} line{'' if count == 1 else 's'}")


def format_control(codes: ControlCodes) -> str:
    """The control codes of an instruction in a fixed width; `CONTROL_LEGEND` explains them.

    >>> format_control(ControlCodes(stall_cycles=2, yields=True, write_barrier=0, read_barrier=None, wait_barriers=(1, 2),
    ...                             reused_operands=()))
    ' 2 Y w0    :12'
    """
    write = "  " if codes.write_barrier is None else f"w{codes.write_barrier}"
    read = "  " if codes.read_barrier is None else f"r{codes.read_barrier}"
    waits = f":{''.join(map(str, codes.wait_barriers))}" if codes.wait_barriers else ""
    return f"{codes.stall_cycles:>2} {'Y' if codes.yields else ' '} {write} {read} {waits}".rstrip()


def describe_line_diff(diff: LineDiff) -> Text:
    """How many lines of two texts differ.

    >>> from kernelviz.metrics.line_diff import line_diff
    >>> print(describe_line_diff(line_diff(["x", "y"], ["x", "z", "w"])))
    1 line is equal, 1 is only in A, 2 are only in B.
    >>> print(describe_line_diff(line_diff(["x"], ["x"])))
    Both texts are the same.
    """
    if not diff.changes:
        return Text("Both texts are the same.")
    equal = counted(diff.equal, "line")
    parts = [f"{equal} {'is' if diff.equal == 1 else 'are'} equal", _only(diff.removed, "A"), _only(diff.added, "B")]
    return Text(f"{', '.join(parts)}.")


def _only(count: int, side: str) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'} only in {side}"
