"""An op: what is computed, what it costs, what its results are compared with, and its variants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from kernelviz.core.configuration import parted
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import Cost, Data, Direction, Problem
from kernelviz.core.sizes import OFFSET_AXES, least_size
from kernelviz.ops.catalog.best import Rule
from kernelviz.ops.catalog.fusion import Fusion
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.variant import Variant

CostModel = Callable[[Sizes, int], Cost]
Bound = Callable[[Problem, Tensors, Tensors], Tensors]


def sizes_named(function: Callable[..., object], problem: Problem) -> dict[str, int]:
    """The sizes of those axes that the function has as parameters, for example k of top-k, which is no dimension of its input."""
    wanted = inspect.signature(function).parameters
    return {axis: size for axis, size in problem.sizes.items() if axis in wanted}


@dataclass(frozen=True, kw_only=True)
class Backward:
    """The backward pass of an op: from its inputs and the gradients of its outputs to the gradients of some of its inputs.

    `inputs` are those of the op, in order, then the gradients of its outputs. `cost` counts the least bytes that a backward pass
    must move: it reads what the forward pass saved and the gradients once, and writes the new gradients once. The functions are
    the same as those of `Op`; `reference` gets all `inputs` in float64.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    cost: CostModel
    reference: Callable[..., Tensors]
    bound: Bound
    rule: str
    slab: str | None = None


@dataclass(frozen=True, kw_only=True)
class Op:
    """A computation with its axes, tensors, cost, reference and variants. Nothing here imports torch before it is called.

    cost(sizes, itemsize_bytes): flop and minimal bytes. reference(*inputs): the outputs in float64 from float64 inputs
    (whole numbers are passed unchanged). bound(problem, inputs, outputs): the largest allowed |error| of each output element,
    in float64, from the same float64 tensors. `rule`: that bound as text. `slab`: inputs and outputs whose first dimension is
    this axis can be cut along it, so that the reference of a large problem is computed in pieces. `variants`: in ladder order.
    `compared(inputs, outputs)`: the values that are compared with the reference, if these are not the outputs themselves, for
    example the values that returned indices point to, or the share of elements that a dropout keeps. `compared_outputs` describes
    these tensors. Returned indices may have any value, so `compared` clamps them. `check(sizes)` raises BadField for sizes
    that do not go together, for example query heads that are no multiple of the key heads. `fusion`: which of the variants are
    fused, and the steps of those that are not (its forward pass). `best`: which own variant a user should get for a problem.
    """

    name: str
    family: str
    summary: str
    formula: str
    axes: tuple[Axis, ...]
    dtypes: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    cost: CostModel
    reference: Callable[..., Tensors]
    bound: Bound
    rule: str
    baseline: str
    variants: tuple[Variant, ...]
    first: tuple[str, ...] = ()
    computes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    presets: tuple[Preset, ...] = ()
    slab: str | None = None
    compared: Callable[[Tensors, Tensors], Tensors] | None = None
    compared_outputs: tuple[TensorSpec, ...] = ()
    backward: Backward | None = None
    check: Callable[[Sizes], None] | None = None
    fusion: Fusion | None = None
    best: Rule | None = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        return ("forward", "backward") if self.backward is not None else ("forward",)

    def of(self, problem: Problem) -> Op:
        """This op, or for a backward problem its backward pass as an op of its own, whose variants bind that pass."""
        back = self.backward
        if problem.direction != "backward" or back is None:
            return self
        return replace(
            self,
            inputs=back.inputs,
            outputs=back.outputs,
            cost=back.cost,
            reference=back.reference,
            bound=back.bound,
            rule=back.rule,
            slab=back.slab,
            compared=None,
            compared_outputs=(),
            backward=None,
            variants=tuple(v.of_backward() for v in self.variants),
        )

    def expected(self, problem: Problem, inputs: Tensors) -> Tensors:
        """The outputs that the reference returns for these inputs."""
        return self.reference(*inputs, **sizes_named(self.reference, problem))

    @property
    def reference_outputs(self) -> tuple[TensorSpec, ...]:
        """The tensors that the reference returns: those that `compared` returns, or else the outputs."""
        return self.compared_outputs or self.outputs

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of what a variant is bound to: the inputs, and the sizes that are no dimension of an input (k of top-k)."""
        return tuple(inspect.signature(self.reference).parameters)

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    def has_axes_of(self, sizes: Sizes) -> bool:
        """Whether these are sizes of the op's axes, and of each of them but for offsets, which need not be stated."""
        stated, every = set(sizes), set(self.axis_names)
        return stated | (OFFSET_AXES & every) == every

    def variant_named(self, name: str) -> Variant:
        """The variant of that name, which may name a configuration: ``triton_tuned[block=256]`` (others: its defaults).

        Errors: UnknownName for a variant or a parameter, BadField for a value.
        """
        base, configuration = parted(name)
        for candidate in self.variants:
            if candidate.name == base:
                if configuration is None:
                    return candidate
                if not candidate.space:
                    raise BadField("variant", name, f"{base!r} has nothing to tune; write {base}")
                return candidate.named(configuration)
        raise UnknownName("variant", base, [v.name for v in self.variants], of=f"op {self.name!r}")

    def problem(
        self,
        sizes: Sizes,
        dtype: str,
        *,
        compute: str | None = None,
        direction: Direction = "forward",
        data: str = "normal",
    ) -> Problem:
        """A checked problem of this op. Errors: UnknownName for dtype, compute, data; BadField for sizes."""
        if dtype not in self.dtypes:
            raise UnknownName("dtype", dtype, self.dtypes, of=f"op {self.name!r}")
        allowed = self.computes.get(dtype, ())
        if compute is None and allowed:
            compute = allowed[0]
        if compute is not None and compute not in allowed:
            raise UnknownName("compute precision", compute, allowed, of=f"op {self.name!r} in {dtype}")
        if direction not in self.directions:
            raise UnknownName("direction", direction, self.directions, of=f"op {self.name!r}")
        if data not in get_args(Data):
            raise UnknownName("data", data, get_args(Data))
        if data == "sorted" and not any(t.below for t in self.inputs):
            raise BadField("data", data, f"op {self.name!r} has no input of ids that could be sorted; choose normal")
        for axis in self.axis_names:
            if axis not in sizes and axis in OFFSET_AXES:
                continue
            if axis not in sizes:
                raise BadField(
                    f"size {axis}", "", f"op {self.name!r} needs a size for each of {', '.join(self.axis_names)}"
                )
            if sizes[axis] < least_size(axis):
                raise BadField(f"size {axis}", sizes[axis], f"give a whole number of at least {least_size(axis)}")
        for axis in sizes:
            if axis not in self.axis_names:
                raise UnknownName("axis", axis, self.axis_names, of=f"op {self.name!r}")
        if self.check is not None:
            self.check(sizes)
        itemsize_bytes = dtype_named(dtype).itemsize_bytes
        for spec in self.inputs:
            if spec.offset is not None and spec.offset_bytes(sizes) % itemsize_bytes:
                remedy = f"numbers of {dtype} begin at multiples of {itemsize_bytes} bytes"
                raise BadField(f"size {spec.offset}", sizes[spec.offset], remedy)
        ordered = {a: int(sizes[a]) for a in self.axis_names if a in sizes}
        return Problem(op=self.name, sizes=ordered, dtype=dtype, compute=compute, direction=direction, data=data)  # type: ignore[arg-type]

    def cost_of(self, problem: Problem) -> Cost:
        return self.of(problem).cost(problem.sizes, dtype_named(problem.dtype).itemsize_bytes)

    def tensor_bytes(self, problem: Problem) -> int:
        """Bytes of the inputs and of two sets of outputs."""
        sizes, dtype, op = problem.sizes, problem.dtype, self.of(problem)
        inputs_bytes = sum(t.size_bytes(sizes, dtype) for t in op.inputs)
        return inputs_bytes + 2 * sum(t.size_bytes(sizes, dtype) for t in op.outputs)

    def needed_bytes(self, problem: Problem) -> int:
        """Device memory that measuring the problem takes: inputs, two sets of outputs, and the float64 reference.

        The reference of an op with a slab axis is computed in pieces of at most 256 MiB a tensor.
        """
        sizes, op = problem.sizes, self.of(problem)
        tensors = (*op.inputs, *op.outputs)
        wide = sum(t.elements(sizes) * 8 for t in tensors)
        if op.slab:
            rows = sizes[op.slab]
            whole = sum(t.elements(sizes) * 8 for t in tensors if (t.axes and t.axes[0] == op.slab) or t.as_stored)
            piece = max(whole // rows, min(whole, len(tensors) * 256 * 2**20))
            wide = wide - whole + piece
        return self.tensor_bytes(problem) + 2 * wide

    def plus(self, extra: tuple[Variant, ...]) -> Op:
        """This op with more variants after its own. Errors: BadField for a name that the op has already."""
        for added in extra:
            if any(v.name == added.name for v in self.variants):
                raise BadField(
                    "variant", added.name, f"op {self.name!r} already has one of that name; rename the function"
                )
        return replace(self, variants=(*self.variants, *extra))
