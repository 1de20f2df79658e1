"""Workload: a training step in fp32, TF32 and mixed precision, with its memory, its speed and its loss."""

from kernelviz.core.run import DeviceKind
from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)

_AXES = (
    WorkloadAxis(
        name="model",
        title="Model",
        kind="choice",
        choices=("resnet50", "transformer"),
        help="ResNet-50 (25.6 million parameters), or a decoder with as many layers as `layers` says. Weights are random.",
    ),
    WorkloadAxis(name="batch", title="Batch", help="Images or sequences in a step.", maximum=4096),
    WorkloadAxis(
        name="size",
        title="Size",
        minimum=8,
        maximum=8192,
        help="Pixels on a side of an image (at least 32), or tokens of a sequence.",
    ),
    WorkloadAxis(name="layers", title="Layers", help="Layers of the transformer. ResNet-50 ignores it.", maximum=96),
    WorkloadAxis(
        name="width",
        title="Width",
        minimum=64,
        maximum=16384,
        help="Width of the transformer, with a head for each 64. ResNet-50 ignores it.",
    ),
    WorkloadAxis(
        name="steps",
        title="Steps of the loss",
        minimum=4,
        maximum=1000,
        help="After so many steps from the same weights on the same data, the loss is compared with that of fp32.",
    ),
)
_FIGURES = (
    WorkloadFigure(
        name="step_s",
        title="Step",
        unit="s",
        better="lower",
        headline=True,
        help="Forward pass, backward pass and optimizer's step on data that are on the device already.",
    ),
    WorkloadFigure(
        name="samples_per_s",
        title="Sample rate",
        unit="1/s",
        better="higher",
        help="The batch divided by the time of a step.",
    ),
    WorkloadFigure(
        name="forward_s",
        title="Forward pass",
        unit="s",
        better="lower",
        help="A forward pass in training mode, which keeps what the backward pass needs.",
    ),
    WorkloadFigure(
        name="peak_bytes",
        title="Peak memory",
        unit="B",
        better="lower",
        origin="counted",
        help="The most that torch's allocator gave during a step for weights, gradients, optimizer and activations. The data, "
        "the CUDA context and what the allocator keeps in reserve are not counted, so that nvidia-smi shows more.",
    ),
    WorkloadFigure(
        name="loss",
        title="Loss",
        unit="number",
        origin="counted",
        help="Mean loss of the last four of the steps (one of each batch).",
    ),
    WorkloadFigure(
        name="loss_difference",
        title="Loss against fp32",
        unit="fraction",
        better="lower",
        origin="counted",
        help="By what share of fp32's loss the loss differs after the same steps from the same weights on the same data.",
    ),
    WorkloadFigure(
        name="gradient_error",
        title="Error of the gradient",
        unit="fraction",
        better="lower",
        origin="counted",
        help="Norm of the difference from the gradients in float64 over their norm, before the first step, on at most "
        "16 samples.",
    ),
)


def _preset(
    name: str,
    title: str,
    kind: DeviceKind,
    *,
    model: str,
    batch: int,
    size: int,
    layers: int = 1,
    width: int = 64,
    steps: int,
) -> WorkloadPreset:
    values = {"batch": (batch,), "size": (size,), "layers": (layers,), "width": (width,), "steps": (steps,)}
    return WorkloadPreset(name=name, title=title, device_kinds=(kind,), values={"model": (model,), **values})


WORKLOADS = (
    Workload(
        name="amp_step",
        title="Training step by precision",
        summary="One training step of ResNet-50 or of a small transformer on synthetic data: what a lower precision "
        "saves in time "
        "and memory, and what it does to the loss.",
        runner="kernelviz.workloads.amp_step.torch_runner:measure",
        axes=_AXES,
        presets=(
            _preset(
                "resnet50",
                "ResNet-50, 256 images of 224 × 224",
                "cuda",
                model="resnet50",
                batch=256,
                size=224,
                steps=20,
            ),
            _preset(
                "transformer",
                "Transformer of 12 layers of 768, 16 sequences of 1,024 tokens",
                "cuda",
                model="transformer",
                batch=16,
                size=1024,
                layers=12,
                width=768,
                steps=20,
            ),
            _preset(
                "small_transformer",
                "Transformer of 2 layers of 128, 4 sequences of 64 tokens",
                "cpu",
                model="transformer",
                batch=4,
                size=64,
                layers=2,
                width=128,
                steps=8,
            ),
            _preset(
                "small_resnet50", "ResNet-50, 8 images of 64 × 64", "cpu", model="resnet50", batch=8, size=64, steps=4
            ),
        ),
        variants=(
            WorkloadVariant(
                name="fp32",
                caption="Everything in fp32, matrix products too.",
                idea="No tensor cores. torch itself allows TF32 in convolutions unless it is told otherwise; here it is off.",
            ),
            WorkloadVariant(
                name="tf32",
                caption="fp32 with TF32 inside of matrix products and convolutions.",
                idea="Tensor cores multiply numbers that are rounded to 10 bits of mantissa. Memory stays fp32.",
                needs=("cuda",),
            ),
            WorkloadVariant(
                name="fp16_scaler",
                caption="torch.autocast to fp16, with a GradScaler.",
                idea="Activations take half the bytes. Gradients below fp16's range are lost unless the loss is scaled.",
            ),
            WorkloadVariant(
                name="bf16",
                caption="torch.autocast to bf16.",
                idea="bf16 has fp32's range, so that no scaler is needed, at 3 bits less of mantissa than fp16.",
            ),
            WorkloadVariant(
                name="bf16_channels_last",
                caption="bf16 with the channels of a pixel beside each other.",
                idea="Tensor cores read channels together, so that convolutions need no transposition.",
            ),
            WorkloadVariant(
                name="bf16_compiled",
                caption="bf16 by torch.compile.",
                idea="Normalisation, activation and additions become one kernel instead of several.",
                needs=("inductor",),
            ),
            WorkloadVariant(
                name="bf16_checkpointed",
                caption="bf16 with activation checkpointing of each block.",
                idea="Only inputs of blocks are kept, and the rest is computed again: less memory for about a third more work.",
            ),
        ),
        baseline="fp32",
        figures=_FIGURES,
        chart=WorkloadChart(kind="bars", figures=("step_s", "peak_bytes")),
        limits=(
            WorkloadLimit(
                name="synthetic_data",
                text="Data and labels are random, so that the loss shows how a format follows fp32, and not how well a "
                "model learns.",
            ),
            WorkloadLimit(name="no_loading", text="The data are on the device already; a real step may wait for them."),
            WorkloadLimit(
                name="cpu_memory",
                text="torch counts no memory of a CPU, so that peak memory stays unknown.",
                when="cpu",
            ),
        ),
        budget_s=4.0,
        most_s=400.0,
    ),
)
