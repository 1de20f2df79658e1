"""Facts that are derived from runs: figures, verdicts, quality, winners, comparisons, trends, tunings."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

from characterisation import adapter
from characterisation.common import (
    NIGHTS,
    RUNS,
    SHIPPED,
    TEXT_COLUMNS,
    command,
    opened,
    source,
    stored_runs,
    told,
    without_text,
)
from characterisation.facts import columns, plain, series
from characterisation.sampling import taken

from kernelviz.bench import backup
from kernelviz.bench.library_comparison import library_records
from kernelviz.metrics.library_comparison import comparison_rows


def of_run(run: Any) -> dict[str, Any]:
    """Everything that is derived from one run, without charts and files."""
    results = list(run.results)
    found: dict[str, Any] = {
        "fastest": run.fastest,
        "frame": columns(run.to_frame().to_dict("records"), TEXT_COLUMNS),
        "failures": sorted(run.failures),
        "seal": adapter.seal(json.dumps(run.document).encode()),
        "occupancies": [adapter.occupancies(r, run) for r in results],
        "spreads": columns([{"case": r.case.key, **adapter.spreads(r)} for r in results[:12]]),
        "samples": {k: series(list(v)) for k, v in run.samples().to_dict("list").items() if k != "variant"},
    }
    for l2 in ("cold", "warm"):
        qualities = [adapter.quality(r, l2, run.method.clock) for r in results]
        found[l2] = {
            "rows": columns(adapter.rows(run, l2)),
            "summary": plain(adapter.summary(run, l2)),
            "winners": columns(run.winners(l2).to_dict("records"), TEXT_COLUMNS),
            "quality": columns(
                [{"case": r.case.key, **(q or {"level": None})} for r, q in zip(results, qualities, strict=True)]
            ),
            "limiters": columns([{"case": r.case.key, **adapter.limiter(r, run, l2)} for r in results]),
        }
    return found


def runs_of_tests() -> dict[str, Any]:
    return {name: of_run(opened(name)) for name in taken("runs", RUNS)}


def shipped() -> dict[str, Any]:
    return {name: of_run(source(name)) for name in SHIPPED}


def comparisons() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with stored_runs(("before", "after", "after_wrong", "after_other_device", "after_sustained", "mixed")):
        for b in ("after", "after_wrong", "after_other_device", "after_sustained", "mixed", "h200-rmsnorm", "before"):
            for l2 in ("cold", "warm"):
                found[f"before {b} {l2}"] = told("compare", "before", b, "--l2", l2)
        for limit in ("0%", "2%", "6%", "50%"):
            for b in ("after", "after_wrong"):
                found[f"before {b} {limit}"] = command("compare", "before", b, "--fail-slower-than", limit)[0]
        for variant_a, variant_b in itertools.permutations(("torch_eager", "triton_persistent"), 2):
            pair = ("--variant-a", variant_a, "--variant-b", variant_b)
            found[f"before {variant_a} {variant_b}"] = told("compare", "before", "before", *pair)
        for run, one, other in (
            ("h200-softmax", "torch_eager", "triton_persistent"),
            ("h200-add", "torch_eager", "cuda_vec16"),
            ("h200-matmul", "torch_eager", "cuda_naive"),
            ("h200-copy", "torch_eager", "triton_block"),
            ("h200-rmsnorm", "composite_eager", "torch_compile"),
        ):
            pair = ("--variant-a", one, "--variant-b", other)
            found[f"{run} {one} {other}"] = told("compare", run, run, *pair)
            found[f"{run} {other} {one} exit"] = command("compare", run, run, "--variant-a", other, "--variant-b", one)[
                0
            ]
        for a, b in itertools.permutations(SHIPPED[:3], 2):
            found[f"{a} {b}"] = told("compare", a, b)
    return found


def stores() -> dict[str, Any]:
    """What the commands say of a store: runs, trends, regressions, tunings, rooflines."""
    import kernelviz as kv

    found: dict[str, Any] = {}
    with stored_runs((*NIGHTS, "mixed", "tuning-1")) as bench:
        for name, arguments in {
            "trends": ("trends",),
            "trends of an op": ("trends", "rmsnorm"),
            "trends of a variant": ("trends", "rmsnorm", "--variant", "triton_persistent"),
            "trends warm": ("trends", "--l2", "warm"),
            "regressions": ("trends", "--regressions"),
            "runs": ("runs",),
            "runs found": ("runs", "--search", "night"),
            "runs shipped": ("runs", "--shipped"),
            "roofline of shipped": ("roofline", *SHIPPED),
            "roofline warm": ("roofline", *SHIPPED, "--level", "l2"),
            "roofline of the data sheet": ("roofline", *SHIPPED, "--roofs", "datasheet"),
            "roofline of a precision": ("roofline", "h200-matmul", "--precision", "bf16"),
            "roofline of planted": ("roofline", "mixed", "night-00"),
        }.items():
            found[name] = told(*arguments)
        trends = kv.trends()
        found["changes"] = [
            [case.variant, [(c.index, c.ratio, len(c.because)) for c in case.trend.changes]] for case in trends
        ]
        made = adapter.tuning_report(bench, "tuning-1")
        found["tuning"] = {
            "best": made.best,
            "kept": adapter.attribute(made, "tuning", "kept") is not None,
            "failures": sorted(len(v) for v in made.failures.values()),
            "frame": columns(made.to_frame().to_dict("records"), TEXT_COLUMNS),
            "record": without_text(made.record),
        }
        found["tunings keep"] = command("tunings", "keep", "tuning-1")[0]
        found["tunings"] = told("tunings")
        found["tunings"]["rows"]["created_at"] = "now"  # a name of a column stays a fact
        found["delete"] = [
            command("runs", "delete", "--yes", "night-03")[0],
            told("runs", "--deleted")["exit"],
            command("runs", "restore", "night-03")[0],
            command("runs", "rename", "night-03", "a name")[0],
            command("runs", "delete", "--yes", "h200-add")[0],
        ]
    return plain(found)


def library_comparison() -> dict[str, Any]:
    """Own kernels against libraries, from the runs that docs/kernels.md is made of."""
    file = str(Path("docs") / "h200-ladders.jsonl.gz")
    found = told("ladders", file)
    # The command sorts the misses first; the stored facts are in the order of the ops.
    rows_by_op = comparison_rows(backup.runs(Path(file)))
    found |= {"rows": columns(library_records(rows_by_op), TEXT_COLUMNS)}
    code, out = command("ladders", file, "--markdown")
    rows = [line for line in out.splitlines() if line.startswith("|")]
    cells = [re.findall(r"\d[\d,.]*", line) for line in rows[2:]]
    return found | {"markdown_exit": code, "markdown": cells}
