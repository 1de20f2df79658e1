"""The words of the catalogue: an op (what), its variants (how), and the tensors that it takes and gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kernelviz.core.configuration import base_name, configured_name, parted
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import Cost, Data, Direction, Problem
from kernelviz.core.reasons import NoCompute, NoDirection, NoDtype, NotAdmitted, Refusal
from kernelviz.ops.catalog.digest import source_digest

if TYPE_CHECKING:
    from torch import Tensor

Sizes = Mapping[str, int]
Tensors: TypeAlias = "tuple[Tensor, ...]"
Launch: TypeAlias = "Callable[[], Tensor | Tensors]"
"""A bound call: runs the op once on the tensors it was bound to and returns its output (or outputs, in order)."""
Configuration = Mapping[str, int]
"""One value of each parameter of a variant's space: ``{"block": 1024, "warps": 8}``."""
Admits = Callable[[Configuration, Problem], "str | None"]
"""Why a configuration is not tried on a problem (a tile larger than the matrix, say), or None."""

Backend = Literal["torch", "inductor", "triton", "cuda", "cpp", "library"]
Need = Literal["cuda", "cpu", "triton", "nvrtc", "cxx", "inductor", "liger", "sm_90"]
"""What a variant needs: an NVIDIA GPU, the processor, the triton package, NVRTC with its headers, a C++ compiler with Python's
headers, torch.compile's backend (triton and a C compiler on a GPU, a C++ compiler on a CPU), the package liger-kernel, a GPU of
compute capability 9.0 or later (thread-block clusters, TMA)."""
Ids = Literal["permutation", "labels"]
"""How whole numbers below an axis' size are drawn. ``permutation``: a shuffled row of all of them, begun again where it is
too short, so that exactly min(count, size) different ones occur (sorted where the data are ``sorted``). ``labels``: each drawn
for itself."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A launch whose call reads what an untimed pass over the inputs left behind: a backward pass behind its forward.

    `forward()` is called whenever the inputs hold other numbers; it writes where the last one wrote, since a captured
    `call` reads those addresses.
    """

    forward: Callable[[], object]
    call: Launch

    def __call__(self) -> Tensor | Tensors:
        return self.call()


def refresh(launch: Launch) -> None:
    """Let a staged launch take notice of inputs that hold other numbers now; nothing for any other."""
    if isinstance(launch, Staged):
        launch.forward()


TARGETS = ("sm_80", "sm_90", "sm_100")
"""Architectures that a kernel compiles for unless its variant says otherwise: A100, H100 and H200, B200."""


def sizes_named(function: Callable[..., object], problem: Problem) -> dict[str, int]:
    """The sizes of those axes that the function names as parameters: k of top-k, which is no dimension of its input."""
    wanted = inspect.signature(function).parameters
    return {axis: size for axis, size in problem.sizes.items() if axis in wanted}


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A named dimension. `default` is the sweep that a page offers first, `cpu_default` the one for a machine without a GPU."""

    name: str
    caption: str
    default: str
    cpu_default: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor of a problem: its dimensions by axis name (or whole numbers), its dtype (None: the problem's).

    `below` and `ids`: whole numbers from 0 to less than the size of the axis `below`, drawn as `ids` says.
    `data`: what it always holds, whatever data the problem names.

    >>> TensorSpec(name="x_MN", axes=("m", "n")).shape({"m": 2, "n": 3})
    (2, 3)
    >>> TensorSpec(name="counts", axes=(256,), dtype="int64").shape({"n": 3})
    (256,)
    """

    name: str
    axes: tuple[str | int, ...]
    dtype: str | None = None
    below: str | None = None
    ids: Ids = "permutation"
    data: Data | None = None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(a if isinstance(a, int) else sizes[a] for a in self.axes)

    def elements(self, sizes: Sizes) -> int:
        return prod(self.shape(sizes))

    def size_bytes(self, sizes: Sizes, dtype: str) -> int:
        return self.elements(sizes) * dtype_named(self.dtype or dtype).itemsize_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Named sizes of a model: every axis as text, as one would type it."""

    name: str
    caption: str
    sizes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How: one function that binds inputs and returns a launch.

    `bind(*inputs)` or, where it names a parameter ``compute``, `bind(*inputs, compute="tf32")`. Allocation and
    compiling belong into the bind or the first call; the launch itself must be the op and nothing else.
    `late`: preparing it takes seconds, so it joins after the others have been measured.
    `only_when_named`: a plan includes it only if it names it, because it is known to be wrong or slow (a published variant, say).
    `mutates`: names of inputs that the call changes; they are restored before each call.
    `targets`: GPU architectures that its own kernels compile for; empty where it has no kernels of its own.
    `backward(*inputs, *grads of the outputs)`: the bind of the backward pass, whose launch is a `Staged` one where it reads
    what the forward pass leaves. `space`: values of each keyword of `bind` that may be tuned; its default comes first. `admits`
    says which configurations make no sense for a problem. `configuration`: the values that this one is bound with; None where the
    variant has no space, or nobody has chosen yet (then the defaults).
    """

    name: str
    backend: Backend
    bind: Callable[..., Launch]
    summary: str
    op: str | None = None
    needs: tuple[Need, ...] = ()
    dtypes: tuple[str, ...] | None = None
    computes: tuple[str, ...] | None = None
    directions: tuple[Direction, ...] = ("forward",)
    mutates: tuple[str, ...] = ()
    late: bool = False
    only_when_named: bool = False
    targets: tuple[str, ...] = ()
    backward: Callable[..., Launch] | None = None
    space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    admits: Admits | None = None
    configuration: Configuration | None = None

    @property
    def default(self) -> dict[str, int]:
        """The configuration that nobody has tuned: the first value of each parameter."""
        return {key: values[0] for key, values in self.space.items()}

    def configured(self, configuration: Configuration) -> Variant:
        """This variant with these values of its parameters (others: the default), under its own name.

        Errors: UnknownName for a parameter that it has not, BadField for a value that is not in its space.
        """
        for key, value in configuration.items():
            if key not in self.space:
                raise UnknownName("parameter", key, self.space, of=f"variant {self.name!r}")
            if value not in self.space[key]:
                known = ", ".join(map(str, self.space[key]))
                raise BadField(f"{key} of {self.name}", value, f"its space has {known}")
        return replace(self, configuration={**self.default, **configuration})

    def named(self, configuration: Configuration) -> Variant:
        """The same as a variant of its own, called ``name[key=value,…]`` in the order of the space. Errors: as `configured`."""
        made = self.configured(configuration)
        return replace(made, name=configured_name(self.name, made.configuration or {}))

    def of_backward(self) -> Variant:
        """The variant as it binds the backward pass; itself where its bind is that pass."""
        return replace(self, bind=self.backward, backward=None) if self.backward else self

    def source_digest(self) -> str:
        """SHA-256 (16 hex digits) of the code that `bind` runs (`digest`): that of the backward pass is `of_backward`'s own."""
        return source_digest(self.bind, base_name(self.name))

    def keywords(self, problem: Problem) -> dict[str, str | int | None]:
        """What `bind` is given beside the inputs, as far as it names it: the compute precision, the sizes of axes, and its
        configuration."""
        given = {
            "compute": problem.compute,
            **problem.sizes,
            **(self.default if self.configuration is None else self.configuration),
        }
        return {key: value for key, value in given.items() if key in inspect.signature(self.bind).parameters}

    def refuses(self, problem: Problem) -> Refusal | None:
        """Why this variant cannot solve the problem on any machine, or None."""
        if self.dtypes is not None and problem.dtype not in self.dtypes:
            return NoDtype(dtype=problem.dtype, has=self.dtypes)
        if problem.compute is not None and self.computes is not None and problem.compute not in self.computes:
            return NoCompute(compute=problem.compute, has=self.computes)
        if problem.direction not in self.directions:
            return NoDirection(direction=problem.direction)
        if self.admits is not None and self.configuration not in (None, self.default):  # the default always is
            text = self.admits(self.configuration, problem)
            return None if text is None else NotAdmitted(text=text)
        return None


def variant(
    *,
    backend: Backend,
    needs: tuple[Need, ...] = (),
    op: str | None = None,
    dtypes: tuple[str, ...] | None = None,
    computes: tuple[str, ...] | None = None,
    directions: tuple[Direction, ...] = ("forward",),
    mutates: tuple[str, ...] = (),
    late: bool = False,
    only_when_named: bool = False,
    targets: tuple[str, ...] | None = None,
    backward: Callable[..., Launch] | None = None,
    space: Mapping[str, tuple[int, ...]] | None = None,
    admits: Admits | None = None,
) -> Callable[[Callable[..., Launch]], Variant]:
    """Make a Variant of a bind function. Its name is the function's, its caption the docstring's first line.

    `targets`: architectures that its kernels compile for, by default Ampere, Hopper and Blackwell (with the need ``sm_90`` the
    latter two). A plug-in with a backward pass only says `directions=("backward",)`, and `bind` is that pass. Each key of `space`
    is a keyword of the function (or of `backward`), and what that has as its default comes first in the space. Errors: ValueError
    when the function has no docstring or a space does not fit it.
    """
    if targets is None and backend in ("triton", "cuda"):
        targets = tuple(t for t in TARGETS if "sm_90" not in needs or t != "sm_80")
    if backward is not None and "backward" not in directions:
        directions = (*directions, "backward")

    def made(bind: Callable[..., Launch]) -> Variant:
        doc = inspect.getdoc(bind)
        if not doc:
            raise ValueError(f"variant {bind.__name__!r} needs a docstring: its first line is its caption")
        _check_space(bind, backward, space or {})
        return Variant(
            name=bind.__name__,
            backend=backend,
            bind=bind,
            summary=doc.splitlines()[0],
            op=op,
            needs=needs,
            dtypes=dtypes,
            computes=computes,
            directions=directions,
            mutates=mutates,
            late=late,
            only_when_named=only_when_named,
            targets=targets or (),
            backward=backward,
            space={key: tuple(values) for key, values in (space or {}).items()},
            admits=admits,
        )

    return made


def _check_space(
    bind: Callable[..., Launch], backward: Callable[..., Launch] | None, space: Mapping[str, tuple[int, ...]]
) -> None:
    """Errors: ValueError."""
    known = [inspect.signature(function).parameters for function in (bind, backward) if function is not None]
    for key, values in space.items():
        found = [parameters[key] for parameters in known if key in parameters]
        where = f"variant {bind.__name__!r}, space[{key!r}]"
        if not found or not key.isidentifier():
            raise ValueError(f"{where}: the function has no keyword of that name")
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{where}: name each value once, and at least one")
        for parameter in found:
            if parameter.default not in (inspect.Parameter.empty, values[0]):
                raise ValueError(f"{where}: the function's default is {parameter.default!r}: put that first")


CostModel = Callable[[Sizes, int], Cost]
Bound = Callable[[Problem, Tensors, Tensors], Tensors]


@dataclass(frozen=True, kw_only=True)
class Backward:
    """The backward pass of an op: from its inputs and the gradients of its outputs to the gradients of some of its inputs.

    `inputs` are those of the op, in order, then the gradients of its outputs. `cost` counts what a backward pass must move
    at least: what the forward pass saved and the gradients, read once, and the new gradients, written once. The callables are
    those of `Op`; `reference` gets all `inputs`, in float64.
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
    """What is computed. Everything here is free of torch at import; the callables import it when called.

    cost(sizes, itemsize_bytes): flop and minimal bytes. reference(*inputs): the outputs in float64 from float64 inputs
    (whole numbers stay what they are). bound(problem, inputs, outputs): the largest allowed |error| of each output element,
    float64, from the same float64 tensors. `rule` is that bound in words. `slab`: an axis along whose first dimension inputs
    and outputs can be cut, so that the reference of a large problem is computed in pieces. `variants` in ladder order.
    `shown(inputs, outputs)`: what of a call's outputs is compared with the reference, where that is not the outputs
    themselves: the values that the returned indices point to, the share of elements that a dropout kept; `shows` says what
    tensors these are. Indices may be anything, so it clamps them.
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
    shown: Callable[[Tensors, Tensors], Tensors] | None = None
    shows: tuple[TensorSpec, ...] = ()
    backward: Backward | None = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        return ("forward", "backward") if self.backward is not None else ("forward",)

    def of(self, problem: Problem) -> Op:
        """This op as the problem's direction has it: its backward pass as an op of its own, whose variants bind that pass."""
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
            shown=None,
            shows=(),
            backward=None,
            variants=tuple(v.of_backward() for v in self.variants),
        )

    def expected(self, problem: Problem, inputs: Tensors) -> Tensors:
        """The reference of these inputs, given the sizes that it names."""
        return self.reference(*inputs, **sizes_named(self.reference, problem))

    @property
    def compared(self) -> tuple[TensorSpec, ...]:
        """The tensors that the reference gives: the outputs, or what is shown of them."""
        return self.shows or self.outputs

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    def variant_named(self, name: str) -> Variant:
        """The variant of that name, which may say a configuration: ``triton_tuned[block=256]`` (others: its defaults).

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
            if axis not in sizes:
                raise BadField(
                    f"size {axis}", "", f"op {self.name!r} needs a size for each of {', '.join(self.axis_names)}"
                )
            if sizes[axis] < 1:
                raise BadField(f"size {axis}", sizes[axis], "give a whole number of at least 1")
        for axis in sizes:
            if axis not in self.axis_names:
                raise UnknownName("axis", axis, self.axis_names, of=f"op {self.name!r}")
        ordered = {a: int(sizes[a]) for a in self.axis_names}
        return Problem(op=self.name, sizes=ordered, dtype=dtype, compute=compute, direction=direction, data=data)  # type: ignore[arg-type]

    def cost_of(self, problem: Problem) -> Cost:
        return self.of(problem).cost(problem.sizes, dtype_named(problem.dtype).itemsize_bytes)

    def tensor_bytes(self, problem: Problem) -> int:
        """Bytes of the inputs and of two sets of outputs."""
        sizes, dtype, op = problem.sizes, problem.dtype, self.of(problem)
        given = sum(t.size_bytes(sizes, dtype) for t in op.inputs)
        return given + 2 * sum(t.size_bytes(sizes, dtype) for t in op.outputs)

    def needed_bytes(self, problem: Problem) -> int:
        """Device memory that measuring the problem takes: inputs, two sets of outputs, and the float64 reference.

        The reference of an op with a slab axis is computed in pieces of at most 256 MiB a tensor.
        """
        sizes, op = problem.sizes, self.of(problem)
        tensors = (*op.inputs, *op.outputs)
        wide = sum(t.elements(sizes) * 8 for t in tensors)
        if op.slab:
            rows = sizes[op.slab]
            whole = sum(t.elements(sizes) * 8 for t in tensors if t.axes and t.axes[0] == op.slab)
            piece = max(whole // rows, min(whole, len(tensors) * 256 * 2**20))
            wide = wide - whole + piece
        return self.tensor_bytes(problem) + 2 * wide

    def plus(self, extra: tuple[Variant, ...]) -> Op:
        """This op with more variants behind its own. Errors: BadField for a name that is taken."""
        for added in extra:
            if any(v.name == added.name for v in self.variants):
                raise BadField(
                    "variant", added.name, f"op {self.name!r} already has one of that name; rename the function"
                )
        return replace(self, variants=(*self.variants, *extra))
