"""The recorded runs and the code beside those of the package, in text."""

from pathlib import Path

from kernelviz.core import units
from kernelviz.core.recordings import RecordingsFile
from kernelviz.text.roofs import format_bytes
from kernelviz.text.text import Text


def describe_contents(archive: RecordingsFile) -> Text:
    """What the file adds to the recorded runs of the package.

    >>> file = RecordingsFile(url="", sha256="", size_bytes=9_400_000, runs=81, code_of=162, cards=("NVIDIA H100",))
    >>> str(describe_contents(file))
    'code of 162 recorded runs (sources and what compilers made of them, in part), and 81 further runs, on NVIDIA H100'
    """
    runs = units.counted(archive.code_of, "recorded run")
    code = f"code of {runs} (sources and what compilers made of them, in part)" if archive.code_of else ""
    further = units.counted(archive.runs, "further run" if code else "further recorded run")
    on_cards = f"{further}, on {units.enumerated(archive.cards)}" if archive.runs else ""
    return Text(", and ".join(filter(None, (code, on_cards))))


def describe_no_folder(named: Path) -> Text:
    """That the environment variable KERNELVIZ_RECORDINGS names no folder that can be read."""
    return Text(f"KERNELVIZ_RECORDINGS names {named}, which is no folder that can be read; it is not used")


def describe_recordings(archive: RecordingsFile | None, folder: Path | None) -> Text:
    """Whether the further recordings are here, and what fetches them.

    >>> str(describe_recordings(None, None))
    'all recorded runs and their code come with this version of the package'
    """
    if archive is None:
        return Text("all recorded runs and their code come with this version of the package")
    contents = describe_contents(archive)
    if folder is not None:
        return Text(f"here, in {folder}: ") + contents
    return (
        Text("not here: ")
        + contents
        + f". `kernelviz recordings fetch` fetches them from {archive.url} ({format_bytes(archive.size_bytes)})"
    )
