"""One training step in several precisions: the models, their synthetic data, the step, and the proof of its gradients.

Weights and data come from a generator on the CPU with a fixed seed, so that every variant starts from the same numbers.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from kernelviz.workloads.amp_step.torch_resnet import ResNet50
from kernelviz.workloads.amp_step.torch_transformer import Transformer

SEED = 20261127
BATCHES = 4
"""So many different batches are trained on in turn."""
CLASSES = 1000
LEARNING_RATES = {"resnet50": 0.003, "transformer": 0.1}
"""By model. So small that the loss falls in each of the first steps."""
HEAD_WIDTH = 64
PROOF_BATCH = 16
"""Gradients are compared with float64 on at most so many samples."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How a variant computes. `autocast`: the format that torch.autocast casts to; None: no autocast. `tf32`: fp32 matrix
    products and convolutions may round their inputs to TF32. `scale`: with which a GradScaler begins; None: without one."""

    autocast: str | None = None
    tf32: bool = False
    scale: float | None = None
    channels_last: bool = False
    compiled: bool = False
    checkpointed: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What is trained. `model`: ``resnet50`` (`size`: pixels on a side) or ``transformer`` (`size`: tokens of a sequence)."""

    model: str
    batch: int
    size: int
    layers: int = 12
    width: int = 768


def vocabulary_of(shape: Shape) -> int:
    """How many tokens a transformer of that width knows: eight for each feature, so that its head stays a part of the whole."""
    return 8 * shape.width


def build(shape: Shape, *, checkpointed: bool = False, seed: int = SEED) -> nn.Module:
    """The model on the CPU in fp32, with the same weights for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if shape.model == "resnet50":
            return ResNet50(CLASSES, checkpointed=checkpointed)
        return Transformer(
            layers=shape.layers,
            width=shape.width,
            heads=max(1, shape.width // HEAD_WIDTH),
            vocabulary=vocabulary_of(shape),
            length=shape.size,
            checkpointed=checkpointed,
        )


def batches(
    shape: Shape, device: torch.device, count: int = BATCHES, seed: int = SEED
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets of `count` batches: normal images with random classes, or random tokens with the next one as target."""
    generator = torch.Generator().manual_seed(seed + 1)
    data = []
    for _ in range(count):
        if shape.model == "resnet50":
            inputs = torch.randn(shape.batch, 3, shape.size, shape.size, generator=generator)
            targets = torch.randint(CLASSES, (shape.batch,), generator=generator)
        else:
            tokens = torch.randint(vocabulary_of(shape), (shape.batch, shape.size + 1), generator=generator)
            inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        data.append((inputs.to(device), targets.to(device)))
    return data


def channels_last(data: list[tuple[torch.Tensor, torch.Tensor]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The batches with the channels of a pixel beside each other."""
    return [(inputs.to(memory_format=torch.channels_last), targets) for inputs, targets in data]


@contextlib.contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Whether fp32 products may use TF32 inside, of cuBLAS and of cuDNN. Without effect on a CPU."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.allow_tf32)
    matmul.allow_tf32, cudnn.allow_tf32 = allowed, allowed
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


class Trainer:
    """A model with its optimizer and data, whose `step` is what is timed. `data`: in the memory format of the precision."""

    def __init__(
        self,
        shape: Shape,
        precision: Precision,
        device: torch.device,
        data: list[tuple[torch.Tensor, torch.Tensor]] | None = None,
    ) -> None:
        self.precision, self.device = precision, device
        self.model = build(shape, checkpointed=precision.checkpointed).to(device)
        if precision.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self._data = data if data is not None else batches(shape, device)
        self._call: Callable[[torch.Tensor], torch.Tensor] = self.model
        if precision.compiled:
            self._call = torch.compile(self.model, dynamic=False)
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATES[shape.model], momentum=0.9)
        self._scaler = torch.amp.GradScaler(
            device.type, init_scale=precision.scale or 1.0, enabled=precision.scale is not None
        )
        self._next = 0

    @contextlib.contextmanager
    def _in_precision(self) -> Iterator[None]:
        dtype = None if self.precision.autocast is None else getattr(torch, self.precision.autocast)
        with (
            tf32(self.precision.tf32),
            torch.autocast(self.device.type, dtype or torch.bfloat16, enabled=dtype is not None),
        ):
            yield

    def forward(self, inputs: torch.Tensor | None = None) -> torch.Tensor:
        """The logits, of the first batch by default."""
        with self._in_precision():
            return self._call(self._data[0][0] if inputs is None else inputs)

    def step(self) -> torch.Tensor:
        """Train on the next batch: forward and backward pass and the optimizer's step. Returns the loss, without waiting
        for it."""
        inputs, targets = self._data[self._next]
        self._next = (self._next + 1) % len(self._data)
        self._optimizer.zero_grad(set_to_none=True)
        with self._in_precision():
            loss = loss_of(self._call(inputs), targets)
        with tf32(self.precision.tf32):
            self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return loss.detach()

    @property
    def scale(self) -> float | None:
        """By what the GradScaler multiplies the loss; None without one."""
        return float(self._scaler.get_scale()) if self.precision.scale is not None else None

    def gradients(self, samples: int | None = PROOF_BATCH, *, compiled: bool = False) -> torch.Tensor:
        """The gradients of the loss of the first samples (None: of the whole batch), as one vector in fp32. `compiled`: by the
        call that `step` makes; otherwise by the model itself, because another number of samples would be compiled anew. The
        model's state is not changed, except for running means of normalisations, which training does not read. Where the scale of
        the GradScaler is too large for the format, it is halved until the gradients are finite, as it is in training."""
        inputs, targets = (part[:samples] for part in self._data[0])
        call, factor = self._call if compiled else self.model, self.scale or 1.0
        while True:
            gradients = self._backward(call, inputs, targets, factor)
            if factor <= 1.0 or bool(torch.isfinite(gradients).all()):
                return gradients / factor
            factor /= 2

    def _backward(
        self, call: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor, factor: float
    ) -> torch.Tensor:
        """The gradients of `factor` times the loss, as one vector in fp32."""
        for parameter in self.model.parameters():
            parameter.grad = None
        with self._in_precision():
            loss = loss_of(call(inputs), targets)
        with tf32(self.precision.tf32):
            (loss * factor).backward()
        return torch.cat([p.grad.detach().float().flatten() for p in self.model.parameters() if p.grad is not None])

    def error(self, reference: torch.Tensor) -> float:
        """The relative error of the gradients. `reference`: those of the first samples in float64. Of a compiled step also the
        difference from the same step without compiling on the whole batch; the larger one counts."""
        error = relative_error(self.gradients(), reference)
        if not self.precision.compiled:
            return error
        return max(error, relative_error(self.gradients(None, compiled=True), self.gradients(None)))


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in fp32."""
    return functional.cross_entropy(logits.flatten(0, -2).float(), targets.flatten())


def reference_gradients(
    shape: Shape, data: tuple[torch.Tensor, torch.Tensor], samples: int = PROOF_BATCH
) -> torch.Tensor:
    """The gradients of the loss of the first samples in float64, as one vector on the device of the data."""
    inputs, targets = (part[:samples] for part in data)
    model = build(shape).to(inputs.device, torch.float64)
    logits = model(inputs.double() if inputs.is_floating_point() else inputs)
    functional.cross_entropy(logits.flatten(0, -2), targets.flatten()).backward()
    return torch.cat([p.grad.detach().flatten() for p in model.parameters() if p.grad is not None])


def relative_error(gradients: torch.Tensor, reference: torch.Tensor) -> float:
    """The norm of the difference over the norm of the reference, in float64; infinite if something is not finite."""
    error = float(torch.linalg.vector_norm(gradients.double() - reference.double()))
    norm = float(torch.linalg.vector_norm(reference.double()))
    return error / norm if norm > 0 and error == error else float("inf")
