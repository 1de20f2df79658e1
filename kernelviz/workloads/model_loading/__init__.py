"""Workload: from a file of weights to the first call of a model, in several ways."""

from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)


def _variant(name: str, caption: str, idea: str) -> WorkloadVariant:
    return WorkloadVariant(name=name, caption=caption, idea=idea, fresh_process=True)


WORKLOADS = (
    Workload(
        name="model_loading",
        title="Model loading",
        summary="From a file of weights to the result of the first call: how long it takes, and how much memory of the "
        "host it needs, "
        "if weights are read at once, mapped, assigned, or loaded layer by layer. Each in a new process.",
        runner="kernelviz.workloads.model_loading.torch_runner:measure",
        axes=(
            WorkloadAxis(name="layers", title="Layers", help="Linear layers of the model.", maximum=1024),
            WorkloadAxis(
                name="width",
                title="Width",
                help="Features. A layer has 4 × width² bytes of weights in fp32.",
                minimum=16,
                maximum=65536,
            ),
            WorkloadAxis(
                name="cache",
                title="Page cache",
                kind="choice",
                choices=("warm", "dropped"),
                help="Whether the file's pages are in memory before, or were dropped by posix_fadvise (which is checked).",
            ),
        ),
        presets=(
            WorkloadPreset(
                name="gigabyte",
                title="1 GiB (16 layers of 4,096), page cache warm and dropped",
                device_kinds=("cuda",),
                values={"layers": (16,), "width": (4096,), "cache": ("warm", "dropped")},
            ),
            WorkloadPreset(
                name="small",
                title="16 MiB (16 layers of 512), page cache warm",
                device_kinds=("cpu",),
                values={"layers": (16,), "width": (512,), "cache": ("warm",)},
            ),
            WorkloadPreset(
                name="published",
                title="1 GiB (16 layers of 4,096), page cache warm",
                values={"layers": (16,), "width": (4096,), "cache": ("warm",)},
            ),
        ),
        variants=(
            _variant(
                "eager",
                "torch.load, then load_state_dict.",
                "The usual way: the model and the file's weights are in memory.",
            ),
            _variant(
                "mmap",
                "torch.load with mmap=True, then load_state_dict.",
                "The file's weights are mapped, so that only the model has its own copy.",
            ),
            _variant(
                "meta_assign",
                "The model on the meta device; mapped weights are assigned.",
                "Nothing is initialised and nothing is copied: weights are pages of the file until they are written.",
            ),
            _variant(
                "lazy",
                "Each layer takes its mapped weights at its own first call.",
                "A model is ready at once. What is not called is never read.",
            ),
            _variant(
                "sharded",
                "One file for each four layers, loaded one after another.",
                "Besides the model only one shard is in memory. Shards can also be loaded by several processes.",
            ),
        ),
        baseline="eager",
        figures=(
            WorkloadFigure(
                name="first_call_s",
                title="First call",
                unit="s",
                better="lower",
                headline=True,
                help="From the beginning of loading to the result of the first call, in a process that has imported torch.",
            ),
            WorkloadFigure(
                name="load_s",
                title="Loading",
                unit="s",
                better="lower",
                help="From the beginning of loading to a model that can be called.",
            ),
            WorkloadFigure(
                name="peak_bytes",
                title="Peak resident memory",
                unit="B",
                better="lower",
                help="The most physical memory that the process had until the end of the first call, with its runtime "
                "and with mapped "
                "pages of files.",
            ),
            WorkloadFigure(
                name="start_bytes",
                title="Resident after loading",
                unit="B",
                better="lower",
                help="Physical memory of the process before the first call, with its runtime.",
            ),
            WorkloadFigure(
                name="called_bytes",
                title="Resident after the first call",
                unit="B",
                better="lower",
                help="Physical memory of the process after the first call, with its runtime.",
            ),
            WorkloadFigure(
                name="mapped_bytes",
                title="Of it mapped files",
                unit="B",
                help="Pages of files in that memory. The system may take them back without writing them anywhere.",
            ),
            WorkloadFigure(
                name="runtime_bytes",
                title="Runtime",
                unit="B",
                help="Physical memory of the process before loading: Python, torch, and the CUDA context.",
            ),
            WorkloadFigure(
                name="file_bytes",
                title="Weights",
                unit="B",
                origin="counted",
                help="Bytes of the weights in the file or files.",
            ),
            WorkloadFigure(
                name="cached",
                title="In the page cache before",
                unit="fraction",
                help="Share of the file's pages that were in memory before loading, as the system says (mincore).",
            ),
        ),
        chart=WorkloadChart(kind="memory", figures=("peak_bytes", "start_bytes", "called_bytes")),
        limits=(
            WorkloadLimit(
                name="runtime_in_memory",
                text="Every figure of resident memory contains the runtime (Python, torch, and on a GPU its context), so that "
                "gains of memory are small beside a small model; the figure Runtime says how much that is.",
            ),
            WorkloadLimit(
                name="disk",
                text="With a dropped page cache the disk of this machine is part of the time; a disk that is shared or "
                "remote has caches "
                "of its own, which are not dropped.",
            ),
            WorkloadLimit(name="linear_layers", text="The model is a stack of linear layers with random weights."),
        ),
        budget_s=6.0,
        most_s=300.0,
    ),
)
