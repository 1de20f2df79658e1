"""Measures training steps: proves the gradients of each variant, trains for the loss, and times steps in shared rounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from kernelviz.core.reasons import ErrorTooLarge, NotAdmitted, NotFinite
from kernelviz.core.result import Failure
from kernelviz.core.workload import WorkloadCase, WorkloadMeasurement, WorkloadNote, WorkloadValue
from kernelviz.workloads.amp_step.torch_step import (
    BATCHES,
    SEED,
    Precision,
    Shape,
    Trainer,
    batches,
    channels_last,
    reference_gradients,
)
from kernelviz.workloads.catalog import Series, WorkloadContext

PRECISIONS: Mapping[str, Precision] = {
    "fp32": Precision(),
    "tf32": Precision(tf32=True),
    "fp16_scaler": Precision(autocast="float16", scale=2.0**16),
    "bf16": Precision(autocast="bfloat16"),
    "bf16_channels_last": Precision(autocast="bfloat16", channels_last=True),
    "bf16_compiled": Precision(autocast="bfloat16", compiled=True),
    "bf16_checkpointed": Precision(autocast="bfloat16", checkpointed=True),
}
_BASELINE = "fp32"
Data = list[tuple[torch.Tensor, torch.Tensor]]


def largest_error(precision: Precision) -> float:
    """The largest relative error of gradients that counts as right. Measured of ResNet-50 on a CPU: fp32 1.3e-6, bf16 0.14; TF32
    and fp16 have three bits more than bf16. What leaves out a term of a gradient has an error near 1."""
    if precision.autocast == "bfloat16":
        return 0.4
    return 0.1 if precision.autocast == "float16" or precision.tf32 else 1e-3


@dataclass(frozen=True, slots=True)
class Trained:
    """A variant that is ready to be timed, with what was found before."""

    trainer: Trainer
    data: Data
    losses: tuple[float, ...]
    skipped: int
    peak_bytes: int | None
    error: float

    @property
    def loss(self) -> float:
        """The mean loss of the last steps, one of each batch."""
        return sum(self.losses[-BATCHES:]) / len(self.losses[-BATCHES:])


def measure(cases: Sequence[WorkloadCase], context: WorkloadContext) -> Iterator[WorkloadMeasurement]:
    """Measure variants at one shape."""
    values = cases[0].values
    shape = Shape(
        str(values["model"]), int(values["batch"]), int(values["size"]), int(values["layers"]), int(values["width"])
    )
    steps, device = int(values["steps"]), torch.device(context.torch_device)
    yield from _not_admitted(cases, shape)
    context.progress("preparing")
    data = batches(shape, device, seed=SEED + context.seed)
    reference = reference_gradients(shape, data[0])
    ready: dict[str, Trained] = {}
    for case in cases:
        with context.case(case):
            if admitted(case.variant, shape) is None:
                context.progress("compiling" if PRECISIONS[case.variant].compiled else "preparing", case.variant)
                ready[case.variant] = prepared(shape, PRECISIONS[case.variant], device, data, reference, steps)
    base_loss = None
    if _BASELINE in ready:
        base_loss = ready[_BASELINE].loss
    elif all(case.variant != _BASELINE for case in cases):  # a run goes on whose baseline has its result
        context.progress("preparing", _BASELINE)
        base_loss = prepared(shape, PRECISIONS[_BASELINE], device, data, reference, steps).loss
    by_variant = {case.variant: case for case in cases}
    series = context.rounds({name: _Sampled(one, context) for name, one in ready.items()}, baseline=_BASELINE)
    for name, of_variant in series.items():
        yield _measurement(by_variant[name], ready[name], of_variant, shape, base_loss, context)


def admitted(variant: str, shape: Shape) -> str | None:
    """Why a variant does not take a shape; None if it does."""
    if shape.model == "transformer" and PRECISIONS[variant].channels_last:
        return "a transformer has no images, so that there are no channels of a pixel"
    if shape.model == "resnet50" and shape.size < 32:
        return "ResNet-50 halves an image five times, so that it takes 32 pixels or more"
    return None


def _not_admitted(cases: Sequence[WorkloadCase], shape: Shape) -> Iterator[WorkloadMeasurement]:
    for case in cases:
        why = admitted(case.variant, shape)
        if why is not None:
            yield WorkloadMeasurement(case=case, failure=Failure(stage="unavailable", reasons=(NotAdmitted(text=why),)))


def prepared(
    shape: Shape, precision: Precision, device: torch.device, data: Data, reference: torch.Tensor, steps: int
) -> Trained:
    """Build a variant, compare its gradients with float64, train it for the loss, and read the memory of a step."""
    data = channels_last(data) if precision.channels_last else data
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device) if on_gpu else 0
    trainer = Trainer(shape, precision, device, data)
    error = trainer.error(reference)
    losses, skipped, scale = [], 0, trainer.scale
    for _ in range(steps):
        losses.append(float(trainer.step()))
        skipped += scale is not None and (trainer.scale or 0.0) < scale
        scale = trainer.scale
    peak = None
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
        trainer.step()
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device) - before
    return Trained(trainer, data, tuple(losses), int(skipped), peak, error)


class _Sampled:
    """A call of a round: a step, and a forward pass."""

    def __init__(self, trained: Trained, context: WorkloadContext) -> None:
        self._trainer, self._context = trained.trainer, context

    def __call__(self) -> Mapping[str, float]:
        step_s = self._context.timed(self._trainer.step)
        return {"step_s": step_s, "forward_s": self._context.timed(self._trainer.forward)}


def _measurement(
    case: WorkloadCase,
    trained: Trained,
    series: Series,
    shape: Shape,
    base_loss: float | None,
    context: WorkloadContext,
) -> WorkloadMeasurement:
    steps, again, rounds = series.samples["step_s"], series.again.get("step_s", ()), series.rounds
    rates, rates_again = ([shape.batch / s for s in of] for of in (steps, again))
    forward = series.samples["forward_s"]
    values: dict[str, WorkloadValue] = {
        "step_s": context.measured(steps, rounds=rounds, again=again),
        "samples_per_s": context.measured(rates, rounds=rounds, again=rates_again),
        "forward_s": context.measured(forward, rounds=rounds, again=series.again.get("forward_s", ())),
        "loss": context.counted(trained.loss),
        "gradient_error": context.counted(trained.error),
    }
    if base_loss:
        values["loss_difference"] = context.counted(abs(trained.loss - base_loss) / abs(base_loss))
    if trained.peak_bytes is not None:
        values["peak_bytes"] = context.counted(trained.peak_bytes, "allocator")
    notes = []
    if trained.skipped:
        notes.append(WorkloadNote(kind="steps_skipped", value=float(trained.skipped)))
    if trained.loss != trained.loss or trained.loss == float("inf"):
        notes.append(WorkloadNote(kind="diverged"))
    failure = refusal(trained.error, PRECISIONS[case.variant])
    return WorkloadMeasurement(case=case, values=values, notes=tuple(notes), failure=failure)


def refusal(error: float, precision: Precision) -> Failure | None:
    """The failure of a variant whose gradients are wrong; None if they are right.

    >>> refusal(1e-6, Precision()), refusal(0.5, Precision()).stage
    (None, 'wrong')
    """
    bound = largest_error(precision)
    if error <= bound:
        return None
    finite = error < float("inf")
    return Failure(stage="wrong", reasons=(ErrorTooLarge(of_bound=error / bound) if finite else NotFinite(elements=1),))
