"""Carry docs/gpu-report.json over from the state of the code that it was made from, where the code has not changed since.

    git worktree add ../before COMMIT
    python tests/ops/carry_report.py ../before

An entry stays where the variant's digest in that checkout is the entry's own and the code there is the code here. The entry's own
digest may be the one that the checkout itself computes, or the one by the rules of `kernelviz.ops.catalog.digest`. An entry that
stays gets today's digest. All others are removed; the tests name them until they have passed on a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from gpu_report import Entry, path, read, replace_all

ROOT = Path(__file__).parents[2]
Digests = dict[tuple[str, str, str], tuple[str, str]]
"""By op, variant and direction: what that version of the code says itself, and the digest by today's rules."""
FLAT = ("catalogue", "op", "model_rows", "outcome", "rounding", "space")
"""What declared variants when all modules that families share lay in `kernelviz/ops` itself."""


def _print_digests(tree: str) -> None:
    """In a process whose `kernelviz` is that of the checkout `tree`."""
    sys.path.insert(0, str(ROOT / "kernelviz" / "ops" / "catalog"))
    ops_folder = Path(tree).resolve() / "kernelviz" / "ops"
    from kernelviz.ops import catalogue

    sys.modules["kernelviz.ops.catalog.source_code"] = __import__("source_code")
    import digest

    flat = not (ops_folder / "catalog").is_dir()
    headers = Path("headers") if flat else digest.HEADERS
    rows = []
    for op in catalogue().values():
        for variant in op.variants:
            for direction in variant.directions:
                bound = variant.of_backward() if direction == "backward" else variant
                closure = digest.Closure(root=ops_folder, declaring=FLAT if flat else digest.DECLARING, headers=headers)
                rows.append([op.name, variant.name, direction, bound.source_digest(), closure.digest(bound.bind)])
    sys.stdout.write(json.dumps(rows))


def digests(tree: Path) -> Digests:
    """Of every variant of a checkout, in each direction."""
    done = subprocess.run(
        [sys.executable, __file__, "--print", str(tree)],
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {(op, variant, direction): (own, today) for op, variant, direction, own, today in json.loads(done.stdout)}


def carried(entries: list[Entry], before: Digests, now: Digests) -> list[Entry]:
    """The entries whose code is the same before and now, with today's digest."""
    kept = []
    for entry in entries:
        key = (entry.op, entry.variant, entry.direction)
        if key in before and key in now and entry.source_digest in before[key] and before[key][1] == now[key][1]:
            kept.append(replace(entry, source_digest=now[key][1]))
    return kept


if __name__ == "__main__":
    if sys.argv[1] == "--print":
        _print_digests(sys.argv[2])
    else:
        entries = list(read(path()).values())
        kept = carried(entries, digests(Path(sys.argv[1]).resolve()), digests(ROOT))
        replace_all(path(), kept)
        sys.stdout.write(
            f"{len(kept)} of {len(entries)} entries are of code that is the same today; the others are removed\n"
        )
