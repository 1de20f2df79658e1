"""The report of a part of the GPU suite: where it ran, what each test said, kernels' entries and figures; and joining them.

    python tests/gpu/join_reports.py gpu-reports/*.json

Imports no torch at its top.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ops"))

import gpu_report  # noqa: E402
from parts import PARTS, pytest_command  # noqa: E402

SCHEMA = "kernelviz-gpu-part/1"
PACKAGES = ("torch", "triton", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")
CARD = ("device", "compute_capability", "driver", "python", "versions", "cuda")
"""Facts that must be the same in reports that are joined."""
OUTCOMES = ("passed", "failed", "skipped", "unfinished")


class JoinError(Exception):
    """Reports that do not belong together: which, and what differs."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one test said: ``passed``, ``failed``, ``skipped`` or, where the part ended within it, ``unfinished``.

    `message`: of a failure, or the reason of a skip. `key`: a digest of all that decides whether it passes, where it has one
    (on_record.py).
    """

    outcome: str
    seconds: float
    message: str = ""
    key: str = ""


class Phase(Protocol):
    """What pytest tells of the setup, the call and the teardown of a test."""

    duration: float

    @property
    def when(self) -> str | None: ...
    @property
    def passed(self) -> bool: ...
    @property
    def failed(self) -> bool: ...


def name_of(nodeid: str) -> str:
    """The name of a test without the group (`xdist_group`) that pytest-xdist's processes append, so that it is the same in every
    report, and as it is collected.

    >>> name_of("test_product.py::test_a_hang@gpu"), name_of("test_x.py::test_y[m@n=1]")
    ('test_product.py::test_a_hang', 'test_x.py::test_y[m@n=1]')
    """
    return re.sub(r"@\w+$", "", nodeid)


def told_with(before: Told | None, phase: Phase, message: str) -> Told:
    """What a test said up to and with this phase: a failure of any phase counts, and it has passed when its call has."""
    seconds = phase.duration + (before.seconds if before else 0.0)
    known = before or Told("unfinished", 0.0)
    if known.outcome == "failed" or (phase.passed and phase.when != "call"):
        return replace(known, seconds=seconds)
    if phase.passed:
        return Told("passed", seconds)
    return Told("failed" if phase.failed else "skipped", seconds, message)


def environment() -> dict[str, Any]:
    """The card and the software of this machine, and the commit where git knows it."""
    import torch

    if not torch.cuda.is_available():
        return {**dict.fromkeys(CARD), "commit": _commit()}
    return {
        "device": torch.cuda.get_device_name(),
        "compute_capability": list(torch.cuda.get_device_capability()),
        "driver": _driver(),
        "python": platform.python_version(),
        "versions": {p: _version(p) for p in PACKAGES},
        "cuda": torch.version.cuda,
        "commit": _commit(),
    }


def _driver() -> str | None:
    from kernelviz.hardware.discovery import discover

    return next((d.driver for d in discover() if d.kind == "cuda"), None)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """What KERNELVIZ_COMMIT says, else git: a copied tree may hold the history of an earlier commit."""
    named = os.environ.get("KERNELVIZ_COMMIT")
    if named:
        return named
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


@dataclass(frozen=True, kw_only=True)
class PartReport:
    """`ended`: every chosen test was run; a part that was interrupted or reached its limit has the tests so far. `on_record`: how
    many tests were not run, because the card's report says that they passed with this very code (on_record.py)."""

    part: str
    began_at: str
    seconds: float
    ended: bool
    environment: dict[str, Any]
    tests: dict[str, Told]
    kernels: list[gpu_report.Entry] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    on_record: int = 0

    @classmethod
    def of(
        cls,
        part: str,
        *,
        began_s: float,
        seconds: float,
        ended: bool,
        environment: dict[str, Any],
        tests: Mapping[str, Told],
        work: Path,
        on_record: int = 0,
    ) -> PartReport:
        """With the kernels' entries (``kernels.json``) and the figures (``figures/*.json``) that the tests left in `work`."""
        return cls(
            part=part,
            began_at=datetime.fromtimestamp(began_s, UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 1),
            ended=ended,
            environment=environment,
            tests={name: replace(t, seconds=round(t.seconds, 2)) for name, t in sorted(tests.items())},
            kernels=list(gpu_report.read(work / "kernels.json").values()),
            figures={f.stem: json.loads(f.read_text()) for f in sorted((work / "figures").glob("*.json"))},
            on_record=on_record,
        )

    @property
    def counts(self) -> Counter[str]:
        return Counter(t.outcome for t in self.tests.values())

    def summary(self) -> str:
        counts = self.counts
        told = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
        told += f", {self.on_record} on record" if self.on_record else ""
        end = "" if self.ended else ", ended early"
        return f"part {self.part}: {told or 'no tests'}, {self.seconds:.0f} s{end}"

    def write(self, folder: Path) -> Path:
        """Write the report to ``PART.json``; a report of the same part that is there gets a number behind its name."""
        folder.mkdir(parents=True, exist_ok=True)
        names = (f"{self.part}{f'-{n}' if n > 1 else ''}.json" for n in range(1, 1000))
        file = next(path for path in (folder / name for name in names) if not path.exists())
        document = {"schema": SCHEMA, **asdict(self)}
        file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        return file

    @classmethod
    def read(cls, file: Path) -> PartReport:
        """Raises JoinError for a file that is no such report."""
        try:
            found = json.loads(file.read_text())
            if found.pop("schema") != SCHEMA:
                raise JoinError(f"{file}: not a report of a part of the GPU suite ({SCHEMA})")
            found["tests"] = {name: Told(**told) for name, told in found["tests"].items()}
            found["kernels"] = [gpu_report.Entry(**entry) for entry in found["kernels"]]
            return cls(**found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise JoinError(f"{file}: not a report of a part of the GPU suite: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Reports of parts that belong together. Of a test that ran several times, the last one counts."""

    environment: dict[str, Any]
    parts: dict[str, dict[str, Any]]
    kernels: list[gpu_report.Entry]
    figures: dict[str, Any]


def join(reports: Mapping[str, PartReport]) -> Joined:
    """Join reports, by the names of their files.

    Raises JoinError for reports of different cards, drivers or versions, and where two tested another source of one variant.
    """
    if not reports:
        raise JoinError("no reports were given")
    in_order = sorted(reports.items(), key=lambda named: named[1].began_at)
    first_file, first = in_order[0]
    for file, report in in_order:
        for fact in CARD:
            here, there = first.environment.get(fact), report.environment.get(fact)
            if here is None and fact == "device":
                raise JoinError(f"{first_file}: it ran without a GPU")
            if here != there:
                raise JoinError(
                    f"{first_file} and {file} cannot be joined: {fact} is {here!r} in the first and {there!r} in the second; "
                    "join the reports of each card and each installation by themselves"
                )
    return Joined(
        environment={fact: first.environment.get(fact) for fact in CARD},
        parts=_parts([report for _, report in in_order]),
        kernels=_kernels(in_order),
        figures={name: figure for _, report in in_order for name, figure in report.figures.items()},
    )


def _kernels(in_order: Sequence[tuple[str, PartReport]]) -> list[gpu_report.Entry]:
    known: dict[gpu_report.Key, tuple[str, gpu_report.Entry]] = {}
    for file, report in in_order:
        for entry in report.kernels:
            earlier_file, earlier = known.get(entry.key, (file, entry))
            if entry.source_digest != earlier.source_digest:
                raise JoinError(
                    f"{earlier_file} and {file} cannot be joined: they tested different sources of {entry.op} {entry.variant} "
                    f"{entry.dtype} (digest {earlier.source_digest} and {entry.source_digest}); leave out the older report"
                )
            known[entry.key] = file, entry
    return [entry for _, entry in known.values()]


def _parts(in_order: Iterable[PartReport]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for report in in_order:
        before = found.get(report.part, {"seconds": 0.0, "tests": {}})
        commit = report.environment.get("commit")
        tests = before["tests"] | {name: {**asdict(told), "commit": commit} for name, told in report.tests.items()}
        found[report.part] = {
            "began_at": report.began_at,
            # Of a part that was begun again in part, the longest: what the part takes in one piece.
            "seconds": max(before["seconds"], report.seconds),
            "commit": commit,
            "ended": report.ended or before.get("ended", False),
            "tests": tests,
        }
    return found


def report_file(device: str, docs: Path = ROOT / "docs") -> Path:
    """The committed report of that card: ``gpu-report.json`` is the first card's, every other card has a file by its name.

    >>> report_file("NVIDIA H100 80GB HBM3").name
    'gpu-report-nvidia-h100-80gb-hbm3.json'
    """
    first = docs / "gpu-report.json"
    if not first.is_file() or json.loads(first.read_text()).get("device") == device:
        return first
    return docs / f"gpu-report-{re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')}.json"


def write(joined: Joined, file: Path, tests_by_part: Mapping[str, Sequence[str]]) -> None:
    """Put what was joined into a committed report. What did not run again is kept, except tests that are no longer in their part.

    `tests_by_part`: the names of all tests of each part (`suite`). Raises JoinError when the file is another card's.
    """
    before = json.loads(file.read_text()) if file.is_file() else {}
    device = joined.environment["device"]
    if before.get("device") not in (None, device):
        raise JoinError(f"{file} is the report of {before['device']}, these are reports of {device}; name another file")
    there = {name: set(tests) for name, tests in tests_by_part.items()}
    parts = {
        name: {**part, "tests": {test: told for test, told in part["tests"].items() if test in there.get(name, ())}}
        for name, part in before.get("parts", {}).items()
        if name in PARTS
    }
    for name, part in joined.parts.items():
        earlier = parts.get(name, {"seconds": 0.0, "tests": {}})
        kept = {test: told for test, told in earlier["tests"].items() if test not in part["tests"]}
        seconds = max(part["seconds"], earlier["seconds"]) if kept else part["seconds"]
        parts[name] = _short({**part, "seconds": seconds, "tests": kept | part["tests"]})
    gpu_report.write(file, joined.kernels, {**joined.environment, "parts": parts})


def suite() -> dict[str, list[str]]:
    """The names of all tests of each part, as pytest collects them here (a few seconds).

    Raises JoinError where a file of tests cannot be collected: its tests would be missing.
    """
    done = subprocess.run(pytest_command("--list-parts"), cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    # pytest ends with 5 because it runs none of the tests that it lists.
    if len(lines) != 1 or done.returncode not in (0, 5):
        raise JoinError(f"the tests of the GPU suite cannot be listed: {(done.stdout + done.stderr)[-2000:]}")
    found: dict[str, list[str]] = json.loads(lines[0])
    return found


def _short(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part without the words of tests that passed."""
    tests = {
        name: {key: t[key] for key in ("outcome", "seconds", "message", "commit", "key") if t.get(key)}
        for name, t in part["tests"].items()
    }
    return {**part, "tests": tests}


BY_OP = ("one_click", "one_click_one_size", "ncu_every_variant", "resources_by_driver")
"""Figures by op, case or variant; a part that ran for some ops has only theirs."""


def write_figures(joined: Joined, file: Path) -> None:
    """Put the figures in place of those of the same names in docs/gpu-figures.json; those by op, op by op."""
    document = json.loads(file.read_text()) if file.is_file() else {"figures": {}}
    figures = document["figures"]
    for name, figure in joined.figures.items():
        figures[name] = figures.get(name, {}) | figure if name in BY_OP else figure
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
