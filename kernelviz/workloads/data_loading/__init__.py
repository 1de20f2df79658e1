"""Workload: loading images with worker processes, as torch's DataLoader does."""

from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)


def _workers(count: int, *, by_default: bool = True) -> WorkloadVariant:
    return WorkloadVariant(
        name=f"workers_{count}",
        caption=f"{count} worker process{'es' if count > 1 else ''}, two batches prefetched by each.",
        idea="Workers decode beside the training process and beside each other."
        if count == 1
        else "More workers decode more batches at once, as long as there are cores for them.",
        by_default=by_default,
    )


WORKLOADS = (
    Workload(
        name="data_loading",
        title="Data loading",
        summary="JPEG images decoded, cropped and batched by torch's DataLoader: images per second by the number of "
        "workers, how long "
        "the first batch takes, and how long a training step of stated length would wait.",
        runner="kernelviz.workloads.data_loading.torch_runner:measure",
        axes=(
            WorkloadAxis(name="images", title="Images", help="Images of an epoch.", maximum=1_000_000),
            WorkloadAxis(
                name="files",
                title="Files",
                help="So many different JPEG files are made; an epoch reads them again and again.",
                maximum=20_000,
            ),
            WorkloadAxis(
                name="pixels", title="Pixels", help="Pixels on a side of a stored image.", minimum=32, maximum=8192
            ),
            WorkloadAxis(name="crop", title="Crop", help="Pixels on a side of a crop.", minimum=16, maximum=8192),
            WorkloadAxis(name="batch", title="Batch", help="Images in a batch.", maximum=4096),
            WorkloadAxis(
                name="step_ms",
                title="Step",
                help="For how long the host waits for a training step between two batches; 0: loading alone.",
                unit="ms",
                minimum=0,
                maximum=60_000,
            ),
        ),
        presets=(
            WorkloadPreset(
                name="imagenet_like",
                title="1,024 images of 400 × 400, alone and beside a step of 40 ms",
                device_kinds=("cuda",),
                values={
                    "images": (1024,),
                    "files": (256,),
                    "pixels": (400,),
                    "crop": (224,),
                    "batch": (32,),
                    "step_ms": (0, 40),
                },
            ),
            WorkloadPreset(
                name="small",
                title="64 images of 128 × 128",
                device_kinds=("cpu",),
                values={
                    "images": (64,),
                    "files": (32,),
                    "pixels": (128,),
                    "crop": (112,),
                    "batch": (8,),
                    "step_ms": (0,),
                },
            ),
            WorkloadPreset(
                name="published",
                title="10,000 images of 400 × 400",
                values={
                    "images": (10_000,),
                    "files": (512,),
                    "pixels": (400,),
                    "crop": (224,),
                    "batch": (64,),
                    "step_ms": (0,),
                },
            ),
        ),
        variants=(
            WorkloadVariant(
                name="workers_0_one_thread",
                caption="No worker: the training process decodes, with one thread for operations of torch.",
                idea="One thread, as a worker has, so that the gain of workers is theirs alone.",
            ),
            WorkloadVariant(
                name="workers_0",
                caption="No worker, with a thread for each core for operations of torch.",
                idea="What DataLoader does unless it is told otherwise. Stacking a batch then wakes a thread on each core, "
                "which can take longer than one thread would.",
            ),
            *(_workers(count, by_default=count <= 4) for count in (1, 2, 4, 8, 16)),
            WorkloadVariant(
                name="workers_4_persistent",
                caption="4 workers that live from epoch to epoch.",
                idea="Workers are started once, so that the first batch of each later epoch does not wait for them.",
            ),
            WorkloadVariant(
                name="workers_4_prefetch_8",
                caption="4 persistent workers, eight batches prefetched by each.",
                idea="A longer queue hides batches that take longer than others.",
            ),
            WorkloadVariant(
                name="workers_4_pinned",
                caption="4 persistent workers, batches in pinned memory.",
                idea="The copy engine reads pinned memory directly, so that the copy to the GPU need not wait.",
                needs=("cuda",),
            ),
        ),
        baseline="workers_0_one_thread",
        figures=(
            WorkloadFigure(
                name="images_per_s",
                title="Image rate",
                unit="1/s",
                better="higher",
                headline=True,
                help="Images of an epoch over its time, with the start of the workers and with the steps between batches.",
            ),
            WorkloadFigure(
                name="epoch_s", title="Epoch", unit="s", better="lower", help="From asking for batches to the end."
            ),
            WorkloadFigure(
                name="first_batch_s",
                title="First batch",
                unit="s",
                better="lower",
                help="From asking for batches to the first one, with the start of the workers.",
            ),
            WorkloadFigure(
                name="starved",
                title="Starved share",
                unit="fraction",
                better="lower",
                help="Share of the time after the first batch in which the loop waits for the next one.",
            ),
            WorkloadFigure(
                name="cpu_use",
                title="CPU use",
                unit="fraction",
                help="Processor time of this process and its workers over the time of the epoch and the number of cores.",
            ),
        ),
        chart=WorkloadChart(kind="bars", figures=("images_per_s", "first_batch_s", "starved")),
        limits=(
            WorkloadLimit(
                name="page_cache",
                text="The files were written just before and are in the page cache, so that no disk is measured.",
            ),
            WorkloadLimit(
                name="decoder",
                text="Images are decoded by Pillow on the CPU; other decoders (Pillow-SIMD, libjpeg-turbo by "
                "torchvision, nvJPEG) have "
                "other rates.",
            ),
            WorkloadLimit(
                name="waiting_step",
                text="A step is a wait of the host, as for a GPU; a step that needs the CPU would share its cores with "
                "the workers.",
            ),
        ),
        budget_s=1.0,
        most_s=300.0,
    ),
)
