"""Measure the layers of docs/model.md on one GPU, check what they must show, and write the files.

    python tests/gpu/model_runs.py FOLDER [PART...] [--most-s SECONDS]

PART: prefill, decode (the layer as one module: eager, compiled and by torch.profiler), ops-prefill, ops-decode (op by op), mix
(the document of both). Llama-3-8B, a prefill of 4,096 tokens and decoding 64 sequences of 8,192. Each part has a time limit of
its own, all together have --most-s: one call of ten minutes is `prefill decode`, another `ops-prefill ops-decode mix`. Without a
name: all of them, as far as the time goes. Writes as soon as each has ended:

    FOLDER/w-CARD-layer-PHASE.json.gz   belongs into kernelviz/shipped/workloads
    FOLDER/models/CARD/*.kvz            belongs into kernelviz/shipped/models
    FOLDER/model.md                     the sections for docs/model.md
    FOLDER/summary-model_runs.json      the checks of every part

Exit code 1 if a check fails. FOLDER/store keeps the runs, so that a second call goes on.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from limited_parts import Check, Parts, arguments_of, followed, measured_workload, say

from kernelviz.bench import Bench, model, model_report, model_runs, titled_runs
from kernelviz.bench.model_mix import traffic_mix
from kernelviz.core.workload import Measured, WorkloadResult
from kernelviz.formats import shipped_workloads
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.layer_truth import LARGE_SHARE, MOST_REST, kernel_rows, large_without_part, layer_time
from kernelviz.store import Store
from kernelviz.text.model import describe_truth

SIZES = {"prefill": (1, 4096), "decode": (64, 8192)}
DEVICE = "cuda:0"
MOST_S = {"prefill": 270, "decode": 270, "ops-prefill": 240, "ops-decode": 240, "mix": 60}
"""Seconds of each part, after which it is cut off."""
CALIBRATION_S = 60


def opened(bench: Bench, phase: str) -> model.Layer:
    preset, call = model.call_of("llama-3-8b", phase, *SIZES[phase], "bf16")
    return model.opened(bench, preset, call, model.source_named(bench, DEVICE))


def truth(bench: Bench, phase: str, folder: Path, card: str, until_s: float) -> Iterator[Check]:
    """Measure a layer as one module, write the file, and check it."""
    run = measured_workload(bench, model_runs.start_truth(bench, opened(bench, phase)), until_s)
    whole = run.status == "finished"
    file = folder / f"{'' if whole else 'incomplete-'}w-{card}-layer-{phase}.json.gz"
    file.write_bytes(shipped_workloads.packed(run))
    yield f"it is {run.status}: {file.name}", whole
    results = [result for result in run.results if not result.given_up]
    yield "eager and compiled have a result", {r.case.variant for r in results} == {"eager", "compiled"}
    for result in results:
        yield from checks_of_truth(result)
    rows = kernel_rows(results)
    yield f"{len(rows)} kernels", bool(rows)
    for row in rows:
        if row.share is not None and row.share > LARGE_SHARE:
            say(f"{row.variant}: {row.share * 100:.1f} % {'+'.join(row.parts) or 'no part'}: {row.name[:100]}")
    yield f"each above {LARGE_SHARE} belongs to a part", not large_without_part(rows)


def checks_of_truth(result: WorkloadResult) -> Iterator[Check]:
    """What a variant of the layer must show."""
    name = result.case.variant
    say(str(describe_truth(result)))
    yield f"{name}: it is right ({result.failure})", result.failure is None
    yield f"{name}: no notes {result.notes}", not result.notes
    share = result.values.get("rest_share")
    rest = f"{share.estimate:+.3f}" if isinstance(share, Measured) else "unknown"
    yield f"{name}: |rest| {rest} ≤ {MOST_REST}", isinstance(share, Measured) and abs(share.estimate) <= MOST_REST
    profiled, whole = result.values.get("profiler_s"), layer_time(result)
    if isinstance(profiled, Measured) and whole is not None:
        say(f"{name}: torch.profiler {profiled.estimate * 1e6:.1f} us, layer {whole.estimate * 1e6:.1f} us")
    by_part = [group.profiler_s is not None for group in result.known_groups]
    yield f"{name}: torch.profiler gave times by part", bool(by_part) and all(by_part)


def ops(bench: Bench, phase: str, folder: Path, card: str, until_s: float) -> Iterator[Check]:
    """Measure a layer op by op, a run after the other, and write the files of those that ended. Results that come with kernelviz
    do not count: they are what these runs replace."""
    layer = opened(bench, phase)
    newest = titled_runs.newest_by_title(bench, model_runs.TITLE, DEVICE)
    ended = {title for title, run in newest.items() if run.status == "finished"}
    runs = [run for run in model_runs.runs_of(layer) if run.title not in ended]
    for begun, run in enumerate(runs):
        if time.monotonic() > until_s:
            yield f"{len(runs) - begun} runs were not begun, the first is {run.title}", False
            break
        started = model_runs.start(bench, run, DEVICE)
        yield f"{run.title} ended in time", followed(bench, started, until_s)
    layer = opened(bench, phase)
    model_runs.record(bench, layer, folder / "models" / card)
    for part in layer.parts:
        yield f"{part.name} has times", part.part.problem is None or part.of("best") is not None


def document(bench: Bench, folder: Path) -> Iterator[Check]:
    """The sections of both layers and of their mix."""
    before, after = opened(bench, "prefill"), opened(bench, "decode")
    batch, context = SIZES["decode"]
    prefill = SIZES["prefill"][1]
    mix = traffic_mix(bench, before.preset, "bf16", before.source, batch=batch, context=context, prefill=prefill)
    text = model_report.markdown(before) + "\n" + model_report.markdown(after, mix)
    (folder / "model.md").write_text(text)
    changes = [(part.name, flip) for part in mix.parts for flip in part.flips]
    say("\n".join(f"{name}: {flip}" for name, flip in changes))
    yield "the mix has all ways", len(mix.ways) == len(("eager", "compiled", "best"))
    yield "the best variant of attention or of a product changes with the mix", bool(changes)


def main(arguments: list[str]) -> int:
    folder, names, total_s = arguments_of(__doc__, MOST_S, arguments)
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    parts = Parts(folder, "model_runs", total_s)
    bench = Bench(Store.open(home), discover(), lock_directory=home)
    card = re.sub(r"[^a-z0-9]+", "-", bench.device(DEVICE).name.removeprefix("NVIDIA ").lower()).strip("-")

    def calibrated(until_s: float) -> Iterator[Check]:
        yield "the roofs are measured", followed(bench, bench.calibrate(DEVICE), until_s)

    works: dict[str, Callable[[float], Iterator[Check]]] = {
        "prefill": lambda until_s: truth(bench, "prefill", folder, card, until_s),
        "decode": lambda until_s: truth(bench, "decode", folder, card, until_s),
        "ops-prefill": lambda until_s: ops(bench, "prefill", folder, card, until_s),
        "ops-decode": lambda until_s: ops(bench, "decode", folder, card, until_s),
        "mix": lambda until_s: document(bench, folder),
    }
    try:
        for name in names:
            if name.startswith("ops-") and not bench.roofs(DEVICE):
                parts.run("roofs", calibrated, CALIBRATION_S)
            parts.run(name, works[name], MOST_S[name])
    finally:
        bench.close()
    return parts.summed_up()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
