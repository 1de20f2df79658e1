"""`kernelviz.best`: the fastest own variant among those that the rule of an op prefers, bound to a caller's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner
from kernelviz.bench.best import Best, best_of_problem
from kernelviz.bench.best import best as best_of
from kernelviz.bench.measured_choice import MeasuredChoice, chosen
from kernelviz.core import BadField, DeviceError, Direction, KernelvizError, Problem, UsageError
from kernelviz.ops import Launch, Op, op_named, refresh
from kernelviz.ops.catalog.called import problem_of_tensors
from kernelviz.text.best import describe_unmeasured

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops import Tensors


UNAVAILABLE = (ImportError, DeviceError, UsageError)
"""What a variant raises that does not take these tensors, or cannot run on this machine. Runs call such a case unavailable."""


@dataclass(frozen=True, slots=True)
class BestCall:
    """A variant bound to tensors: each call runs the op once on what these tensors hold then, and returns its output or outputs.

    The outputs have the same memory in each call. The call of a backward pass first runs the forward pass that it reads from.
    `measured`: the times by which it was chosen; None if the rule alone chose it, and `not_measured` says why. `passed_over`:
    variants that came before it, and why they were not bound. `changes`: inputs that a call changes, such as
    the first one of `scatter_add`. `inputs` are held here, because a kernel of CUDA C++ has only their addresses.
    """

    variant: str
    rule: str
    problem: Problem
    passed_over: Mapping[str, str]
    changes: tuple[str, ...]
    launch: Launch
    inputs: tuple[Tensor, ...]
    measured: MeasuredChoice | None = None
    not_measured: str = ""

    def __call__(self) -> Tensor | Tensors:
        refresh(self.launch)
        return self.launch()

    def __repr__(self) -> str:
        return f"<kernelviz {self.problem.key}: {self.variant}>"


def best(
    op: str,
    *inputs: Tensor,
    compute: str | None = None,
    direction: Direction = "forward",
    measure: bool = True,
    **sizes: int,
) -> BestCall:
    """The fastest of up to five own variants for these tensors of one GPU, bound to them; call it to run the op.

    >>> softmax = kv.best("softmax", x)  # doctest: +SKIP
    >>> y = softmax()  # doctest: +SKIP

    The rule of the op puts its own variants in order by sizes, number format and card. The first call for a problem on a GPU
    measures up to the first five of them: some seconds in a worker process, which checks the outputs, needs memory for tensors of
    its own, and keeps up to a third of the GPU's memory until this process ends. The run is stored, and later calls use it, until
    the source of one of these variants, the driver or a compiler changes. Where nothing can be measured, the rule decides
    (`not_measured`). measure: False: use a stored run if there is one, but make none.

    inputs: those of the op in order, for a backward pass followed by the gradients of its outputs. sizes: of axes that
    no tensor has as a dimension, such as ``k=8`` of ``topk``. A variant that these tensors do not allow, for example by
    their alignment, is passed over. Errors: UnknownName for the op; BadField for tensors that do not fit, or that no
    own variant takes.
    """
    bench = use_cases.current()
    known = op_named(op, bench.ops())
    problem = problem_of_tensors(known, inputs, sizes, compute=compute, direction=direction)
    devices = {str(tensor.device) for tensor in inputs}
    if len(devices) != 1:
        raise BadField("inputs", ", ".join(sorted(devices)) or "no tensor", "give the tensors of one GPU")
    (device,) = devices
    by_rule = best_of_problem(bench, known, problem, bench.device(device))
    if measure:
        _wait_for(inputs[0])
    try:
        choice = chosen(bench, by_rule, measure=measure, owner=owner())
    except KernelvizError as error:  # such as a full disk: the op can be called all the same
        return bound(known, inputs, by_rule, not_measured=str(error))
    reason = "" if choice.reason is None else str(describe_unmeasured(choice.reason))
    return bound(known, inputs, choice.best, choice.measured, reason)


def _wait_for(tensor: Tensor) -> None:
    """Until the GPU of the tensor has done what this process gave it, because that would run beside the measurement."""
    import torch

    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


def bound(
    op: Op, inputs: tuple[Tensor, ...], choice: Best, measured: MeasuredChoice | None = None, not_measured: str = ""
) -> BestCall:
    """The first of the variants that can be bound to these tensors. Errors: that of the first variant, if none can."""
    of_direction = op.of(choice.problem)
    refused: dict[str, Exception] = {}
    for variant in choice.variants:
        of_tensors = of_direction.variant_named(variant.name)
        if measured is not None and variant.name in measured.configurations:
            of_tensors = of_tensors.configured(measured.configurations[variant.name])
        try:
            launch: Launch = of_tensors.bind(*inputs, **of_tensors.keywords(choice.problem))
            refresh(launch)
        except UNAVAILABLE as error:
            refused[variant.name] = error
            continue
        reasons = {name: str(error) for name, error in refused.items()}
        return BestCall(
            variant.name,
            choice.rule,
            choice.problem,
            reasons,
            of_tensors.mutates,
            launch,
            inputs,
            measured,
            not_measured,
        )
    raise next(iter(refused.values()))


def best_variant(
    op: str,
    sizes: Mapping[str, int | str],
    dtype: str | None = None,
    direction: Direction = "forward",
    device: str | None = None,
    *,
    compute: str | None = None,
    measure: bool = False,
) -> str:
    """The name of the own variant that a user should get for a problem. `kernelviz best` prints the same.

    device: a GPU of this machine, or a card of the recorded runs, such as ``H200``; by default the first GPU here, else
    the first of these cards. On a GPU of this machine, a stored run of the variants that the rule prefers decides, or one that
    is made now (``measure=True``); otherwise the rule alone, which needs no GPU. Errors: UnknownName and BadField, with what is
    allowed.
    """
    bench = use_cases.current()
    by_rule = best_of(bench, op, sizes, dtype, compute=compute, direction=direction, device=device)
    return chosen(bench, by_rule, measure=measure, owner=owner()).best.variant.name
