"""Parts of a script on a GPU: each for itself and for a limited time, with checks printed and stored as soon as they are known.

A part that raises or is too late costs its own checks. FOLDER/summary-SCRIPT.json has the checks of every part so far.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.core import LIVING
from kernelviz.core.workload import WorkloadCaseDone, WorkloadRun
from kernelviz.metrics.workloads import number

Check = tuple[str, bool]
LEAST_S = 15.0
"""A part is not begun with less time left."""
TOTAL_S = 560.0
"""For all parts of a call, unless --most-s says otherwise: a call on a lent GPU ends after ten minutes."""
_POLL_S, _END_S = 2.0, 30.0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201


def arguments_of(document: str | None, known: Collection[str], given: Sequence[str]) -> tuple[Path, list[str], float]:
    """The folder (made if it is missing), the names of the parts (all of them by default), and the seconds of a script's call."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"among {', '.join(known)}")
    parser.add_argument("--most-s", type=float, default=TOTAL_S, metavar="SECONDS")
    of = parser.parse_args(given)
    if unknown := set(of.parts) - set(known):
        parser.error(f"no part {', '.join(sorted(unknown))}; choose among {', '.join(known)}")
    of.folder.mkdir(parents=True, exist_ok=True)
    return of.folder, of.parts or [*known], of.most_s


@dataclass
class Parts:
    """The parts of one call of a script. `total_s`: for all of them together."""

    folder: Path
    script: str
    total_s: float
    began_s: float = field(default_factory=time.monotonic)
    checks: dict[str, list[Check]] = field(default_factory=dict)

    def left_s(self) -> float:
        """Seconds that are left for all parts."""
        return self.total_s - (time.monotonic() - self.began_s)

    def run(self, name: str, work: Callable[[float], Iterator[Check]], most_s: float) -> None:
        """Do a part. `work` gets the moment (`time.monotonic`) at which it should end, and yields its checks."""
        given_s = min(most_s, self.left_s())
        if given_s < LEAST_S:
            self._note(name, ("there was no time left for it", False))
            return
        began_s = time.monotonic()
        try:
            for check in work(began_s + given_s):
                self._note(name, check)
        except Exception as error:
            traceback.print_exc()
            self._note(name, (f"it raised {type(error).__name__}: {error}", False))
        say(f"{name}: {time.monotonic() - began_s:.0f} s of {given_s:.0f} s, {self.left_s():.0f} s left")

    def _note(self, name: str, check: Check) -> None:
        text, holds = check
        say(f"{'ok    ' if holds else 'FAILED'} {name}: {text}")
        self.checks.setdefault(name, []).append(check)
        facts = {of: [{"text": t, "holds": h} for t, h in checks] for of, checks in self.checks.items()}
        (self.folder / f"summary-{self.script}.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")

    def summed_up(self) -> int:
        """Print how many checks of each part hold, and those that do not; returns the exit code."""
        say("")
        failed = 0
        for name, checks in self.checks.items():
            wrong = [text for text, holds in checks if not holds]
            failed += len(wrong)
            say(f"{name}: {len(checks) - len(wrong)} of {len(checks)} checks hold")
            for text in wrong:
                say(f"  FAILED {text}")
        return 1 if failed or not self.checks else 0


def measured_workload(bench: Bench, run_id: str, until_s: float) -> WorkloadRun:
    """Follow a run of a workload and print each result; cancel it at that moment. Returns what there is."""
    seen, cancelled = 0, False
    while bench.workloads.progress(run_id).status in LIVING:
        if not cancelled and time.monotonic() > until_s:
            say(f"{run_id}: out of time, cancelled")
            bench.workloads.cancel(run_id)
            cancelled = True
        if cancelled and time.monotonic() > until_s + _END_S:
            break
        for event_number, event in bench.workloads.follow(run_id, seen, timeout_s=_POLL_S):
            seen = event_number
            if isinstance(event, WorkloadCaseDone):
                result = event.result
                values = ", ".join(f"{name} {number(value):.5g}" for name, value in result.values.items())
                say(f"{result.case.key}: {result.failure or values}")
                for note in result.notes:
                    say(f"  note {note}")
            if time.monotonic() > until_s:
                break
    return bench.workloads.load(run_id)


def followed(bench: Bench, run_id: str, until_s: float) -> bool:
    """Wait for a run of an op or a calibration until that moment, and cancel it then; returns whether it ended by itself."""
    seen = 0
    while bench.progress(run_id).status in LIVING:
        if time.monotonic() > until_s:
            say(f"{run_id}: out of time, cancelled")
            bench.cancel(run_id)
            return False
        for event_number, _ in bench.follow(run_id, seen, timeout_s=_POLL_S):
            seen = event_number
            if time.monotonic() > until_s:
                break
    return True
