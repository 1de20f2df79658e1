"""Measure the layers of docs/model.md on one GPU, check what they must show, and write the files.

    python tests/gpu/model_runs.py FOLDER [prefill | decode | mix]...

Without a name: all three, in under eight minutes on an H200. `prefill` is Llama-3-8B with one sequence of 4,096 tokens, `decode`
with 64 sequences of 8,192; each is measured op by op and as one module, eager, compiled and by torch.profiler. `mix` writes the
document of both. Writes as soon as each has ended:

    FOLDER/w-CARD-layer-PHASE.json.gz   belongs into kernelviz/shipped/workloads
    FOLDER/models/CARD/*.kvz            belongs into kernelviz/shipped/models
    FOLDER/model.md                     the sections for docs/model.md

Exit code 1 if a check fails. FOLDER/store keeps the runs, so that a second call goes on.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from kernelviz.bench import Bench, model, model_report, model_runs
from kernelviz.bench.model_mix import traffic_mix
from kernelviz.core.workload import Measured
from kernelviz.formats import shipped_workloads
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.layer_truth import LARGE_SHARE, MOST_REST, kernel_rows, large_without_part, layer_time
from kernelviz.store import Store
from kernelviz.text.model import describe_truth

SIZES = {"prefill": (1, 4096), "decode": (64, 8192)}
DEVICE = "cuda:0"
Check = tuple[str, bool]


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def opened(bench: Bench, phase: str) -> model.Layer:
    preset, call = model.call_of("llama-3-8b", phase, *SIZES[phase], "bf16")
    return model.opened(bench, preset, call, model.source_named(bench, DEVICE))


def measured(bench: Bench, phase: str, folder: Path, card: str) -> Iterator[Check]:
    """Measure a layer as one module and op by op, write the files, and check them."""
    began_s = time.monotonic()
    layer = opened(bench, phase)
    run_id = model_runs.start_truth(bench, layer)
    for _ in bench.workloads.follow(run_id, timeout_s=600):
        pass
    run = bench.workloads.load(run_id)
    (folder / f"w-{card}-layer-{phase}.json.gz").write_bytes(shipped_workloads.packed(run))
    say(f"{phase}: the whole layer after {time.monotonic() - began_s:.0f} s, {run.status}")
    for started in model_runs.start_all(bench, layer):
        for _ in bench.follow(started, timeout_s=600):
            pass
        say(f"{phase}: {bench.history.summary(started).name} after {time.monotonic() - began_s:.0f} s")
    layer = opened(bench, phase)
    model_runs.record(bench, layer, folder / "models" / card)
    yield from checks_of(phase, layer)


def checks_of(phase: str, layer: model.Layer) -> Iterator[Check]:
    """What the layer must show."""
    variants = {result.case.variant: result for result in layer.truth}
    yield f"{phase}: eager and compiled have a result", set(variants) == {"eager", "compiled"}
    for name, result in variants.items():
        say(str(describe_truth(result)))
        yield f"{phase} {name}: it is right ({result.failure})", result.failure is None
        yield f"{phase} {name}: no notes {result.notes}", not result.notes
        share = result.values.get("rest_share")
        known = isinstance(share, Measured)
        rest = f"{share.estimate:+.3f}" if isinstance(share, Measured) else "unknown"
        yield f"{phase} {name}: |rest| {rest} ≤ {MOST_REST}", known and abs(share.estimate) <= MOST_REST  # type: ignore[union-attr]
        profiled = result.values.get("profiler_s")
        whole = layer_time(result)
        if isinstance(profiled, Measured) and whole is not None:
            say(f"{phase} {name}: torch.profiler {profiled.estimate * 1e6:.1f} us, layer {whole.estimate * 1e6:.1f} us")
        yield (
            f"{phase} {name}: torch.profiler gave times by part",
            all(group.profiler_s is not None for group in result.known_groups),
        )
    rows = kernel_rows(layer.truth)
    yield f"{phase}: {len(rows)} kernels", bool(rows)
    yield f"{phase}: each above {LARGE_SHARE} belongs to a part", not large_without_part(rows)
    for part in layer.parts:
        yield f"{phase}: {part.name} has times", part.part.problem is None or part.of("best") is not None


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
    parts = arguments[1:] or ["prefill", "decode", "mix"]
    if not arguments or set(parts) - {*SIZES, "mix"}:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    folder = Path(arguments[0])
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    bench = Bench(Store.open(home), discover(), lock_directory=home)
    card = re.sub(r"[^a-z0-9]+", "-", bench.device(DEVICE).name.removeprefix("NVIDIA ").lower()).strip("-")
    failed = 0
    try:
        if not bench.roofs(DEVICE):
            for _ in bench.follow(bench.calibrate(DEVICE), timeout_s=300):
                pass
        for part in parts:
            checks = document(bench, folder) if part == "mix" else measured(bench, part, folder, card)
            for text, holds in checks:
                say(f"{'ok    ' if holds else 'FAILED'} {text}")
                failed += not holds
    finally:
        bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
