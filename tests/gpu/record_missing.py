"""Record what the gallery lacks of this card, in the time that there is.

    python tests/gpu/record_missing.py FOLDER --since 2026-11-30 --most-s 560 [--part 1/2] [--first attention] [--list]

Lacking is a pass of an op of which no recorded run with all variants, in kernelviz/shipped or docs/recordings, was measured on
this card on that day or later. FOLDER gets the runs with their code, which `arrange_recordings.py FOLDER` puts in place, and
FOLDER/recorded.tar.NN, the runs that this call added, in files of at most 15 MB. The same command goes on where it ended, as long
as the machine is the same; elsewhere it begins with what is not arranged yet. Parts for several GPUs need a FOLDER each. A pass
whose name a recorded run with another purpose has (a few sizes, say) is left out, and named: rename that run first.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from kernelviz import bench as use_cases
from kernelviz.bench import recording
from kernelviz.bench.recording import ENDING, OpPass
from kernelviz.core.problem import Direction
from kernelviz.formats import shipped_runs

PART_BYTES = 15 * 10**6
LEAST_S = 20.0
"""With less left, no further command begins."""
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")


def lacking(
    every: Sequence[OpPass], lines: Iterable[shipped_runs.Line], card: str, since: str, first: Sequence[str] = ()
) -> list[OpPass]:
    """Of these passes, those without a recorded run with all variants on that card since that day; ops of `first` go first."""
    recorded = {line.title for line in lines if line.device == card and line.created_at[:10] >= since}
    left = [one for one in every if title_on(one, card) not in recorded]
    return sorted(left, key=lambda one: one.op not in first)


def named_otherwise(every: Sequence[OpPass], lines: Iterable[shipped_runs.Line], card: str) -> list[OpPass]:
    """Of these passes, those whose name a recorded run of that card has that is not one with all variants."""
    titles = {line.id: line.title for line in lines if line.device == card}
    names = {one: recording.name_on(card, one.op, one.direction) for one in every}
    return [one for one in every if titles.get(names[one], title_on(one, card)) != title_on(one, card)]


def title_on(one: OpPass, card: str) -> str:
    """The title of a recorded run of a pass with all variants."""
    return f"{one}, all variants, on {card}"


def pack(files: Sequence[Path], folder: Path) -> None:
    """Write these files as recorded.tar.00 and so on, in place of those of an earlier call."""
    for part in folder.glob("recorded.tar.*"):
        part.unlink()
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for file in files:
            archive.add(file, file.name)
    whole = data.getvalue()
    for number, at in enumerate(range(0, len(whole), PART_BYTES)):
        (folder / f"recorded.tar.{number:02}").write_bytes(whole[at : at + PART_BYTES])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--since", required=True, metavar="DATE")
    parser.add_argument("--most-s", type=float, required=True)
    parser.add_argument("--part", default="1/1", metavar="I/N")
    parser.add_argument("--first", nargs="*", default=[], metavar="OP")
    parser.add_argument("--budget-s", type=float, default=recording.BUDGET_S)
    parser.add_argument("--most-code-mb", type=float, default=0.2)
    parser.add_argument("--list", action="store_true", help="only say what is lacking")
    given = parser.parse_args(arguments)
    until_s = time.monotonic() + given.most_s
    with closing(use_cases.current()) as bench:
        device = bench.device(bench.default_device())
        every = [OpPass(name, one) for name, op in bench.ops().items() for one in DIRECTIONS if one in op.directions]
        lines = tuple(shipped_runs.lines().values())
        taken = named_otherwise(every, lines, device.name)
        left = [one for one in lacking(every, lines, device.name, given.since, given.first) if one not in taken]
        calibrated = bool(bench.roofs(device.id))
    print(f"{len(left)} of {len(every)} are lacking on {device.name}: {', '.join(map(str, left))}")  # noqa: T201
    if taken:
        print(f"another recorded run has the name of: {', '.join(map(str, taken))}")  # noqa: T201
    if given.list:
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    before = set(given.folder.glob(f"*{ENDING}"))
    try:
        return _record(given, left, until_s, calibrated=calibrated)
    finally:
        pack(sorted(set(given.folder.glob(f"*{ENDING}")) - before), given.folder)


def _record(given: argparse.Namespace, left: Sequence[OpPass], until_s: float, *, calibrated: bool) -> int:
    command = [sys.executable, "-m", "kernelviz"]
    if not calibrated:
        subprocess.run([*command, "device", "--calibrate"], check=True)
    code = 0
    # Few commands, because each starts a worker: forward passes, then backward ones.
    for direction in DIRECTIONS:
        ops = [one.op for one in left if one.direction == direction]
        left_s = until_s - time.monotonic()
        if not ops or left_s < LEAST_S:
            continue
        numbers = {"--budget-s": given.budget_s, "--most-code-mb": given.most_code_mb, "--most-s": left_s}
        limits = [text for name, number in numbers.items() for text in (name, str(number))]
        chosen = ["--direction", direction, "--part", given.part, "--with-code"]
        done = subprocess.run([*command, "record", "-o", str(given.folder), *chosen, *limits, *ops], check=False)
        code = code or done.returncode
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
