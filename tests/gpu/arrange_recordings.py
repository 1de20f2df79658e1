"""Put recorded runs where the package, its further recordings and their archive have them.

    kernelviz record --with-code --output FOLDER …          on a GPU
    python tests/gpu/arrange_recordings.py FOLDER…          here
    python tests/gpu/arrange_recordings.py --archive kernelviz-recordings.zip     for a release, of what is arranged

Runs of the reference card go to kernelviz/shipped, those of other cards to docs/recordings. Their code goes to
docs/recordings/code, in a file for each op, where two cards share it. Then the indices are derived again, and
kernelviz/shipped/recordings-file.json, which says where the archive of docs/recordings will be and which SHA-256 it has.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

import kernelviz
from kernelviz.bench import recording
from kernelviz.core import Run
from kernelviz.core.recordings import RecordingsFile
from kernelviz.formats import code_file, compact, recordings_file, shipped_runs
from kernelviz.formats.recordings_file import CODE, DESCRIPTION, NAME

ROOT = Path(__file__).parents[2]
SHIPPED, FURTHER = ROOT / "kernelviz" / "shipped", ROOT / "docs" / "recordings"
REFERENCE = "NVIDIA H200"
KINDS = ("source", "ttir", "ttgir", "ptx", "cubin")
"""The order in a file of code: what is alike is packed best side by side."""
ADDRESS = f"https://github.com/kernelviz/kernelviz/releases/download/v{kernelviz.__version__}/{NAME}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="write the archive of docs/recordings")
    asked = parser.parse_args(arguments)
    arrange(asked.folders, SHIPPED, FURTHER)
    if asked.archive is not None:
        asked.archive.write_bytes(recordings_file.pack(FURTHER))
    return 0


def arrange(folders: Iterable[Path], shipped: Path, further: Path) -> None:
    """Take in the runs of these folders, then derive the indices and the description of the archive again."""
    for folder in folders:
        for name in shipped_runs.names_in(folder):
            run = shipped_runs.load_from(folder, name)
            contents = compact.code_of((folder / f"{name}{recording.ENDING}").read_bytes())
            to = shipped if run.environment.device.name == REFERENCE else further
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{name}{recording.ENDING}").write_bytes(
                compact.encode(msgspec.structs.replace(run, code=msgspec.UNSET))
            )
            if contents:
                _add_code(run, contents, further / CODE, (shipped, further))
    recording.write_indices(shipped)
    if further.is_dir():
        if shipped_runs.names_in(further):
            recording.write_indices(further)
        (shipped / DESCRIPTION).write_bytes(
            msgspec.json.format(msgspec.json.encode(described(further)), indent=1) + b"\n"
        )


def _add_code(run: Run, contents: dict[str, bytes], folder: Path, of_runs: tuple[Path, ...]) -> None:
    """Put the contents that the run names into the file of its op, and take out what no run of the file names any more.

    `of_runs`: the folders of these runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{run.plan.op}{code_file.ENDING}"
    known = file.read_bytes() if file.is_file() else code_file.encode({}, ())
    runs = dict.fromkeys((*code_file.head_of(known).runs, run.id))
    named = {
        artifact.digest
        for one in (
            shipped_runs.load_from(of, name)
            for name in runs
            for of in of_runs
            if (of / f"{name}{recording.ENDING}").is_file()
        )
        for result in one.results
        for code in result.code or ()
        for artifact in code.artifacts
    }
    earlier = {digest: data for digest, data in code_file.contents_of(known).items() if digest in named}
    artifacts = {a.digest: a for result in run.results for code in result.code or () for a in code.artifacts}
    kinds = {digest: KINDS.index(artifact.kind) for digest, artifact in artifacts.items()}
    together = earlier | contents
    order = [*earlier, *sorted((d for d in contents if d not in earlier), key=lambda digest: kinds[digest])]
    file.write_bytes(code_file.encode({digest: together[digest] for digest in order}, runs))


def described(further: Path) -> RecordingsFile:
    """What the package says of the archive of that folder."""
    data = recordings_file.pack(further)
    runs = [shipped_runs.load_from(further, name) for name in shipped_runs.names_in(further)]
    heads = [code_file.head_of(file.read_bytes()) for file in (further / CODE).glob(f"*{code_file.ENDING}")]
    return RecordingsFile(
        url=ADDRESS,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        runs=len(runs),
        code_of=len({run for head in heads for run in head.runs}),
        cards=tuple(dict.fromkeys(run.environment.device.name for run in runs)),
    )


if __name__ == "__main__":
    sys.exit(main())
