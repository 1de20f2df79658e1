"""The words of the catalogue: an op (what), its variants (how), and the tensors that it takes and gives."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import Cost, Data, Direction, Problem

if TYPE_CHECKING:
    from torch import Tensor

Sizes = Mapping[str, int]
Tensors: TypeAlias = "tuple[Tensor, ...]"
Launch: TypeAlias = "Callable[[], Tensor | Tensors]"
"""A bound call: runs the op once on the tensors it was bound to and returns its output (or outputs, in order)."""

Backend = Literal["torch", "inductor", "triton", "cuda", "cpp", "library"]
Need = Literal["cuda", "cpu", "triton", "nvrtc", "cxx", "inductor"]
"""What a variant needs: an NVIDIA GPU, the processor, the triton package, NVRTC with its headers, a C++ compiler with Python's
headers, torch.compile's backend (triton and a C compiler on a GPU, a C++ compiler on a CPU)."""


TARGETS = ("sm_80", "sm_90", "sm_100")
"""Architectures that a kernel compiles for unless its variant says otherwise: A100, H100 and H200, B200."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A named dimension. `default` is the sweep that a page offers first, `cpu_default` the one for a machine without a GPU."""

    name: str
    caption: str
    default: str
    cpu_default: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor of a problem: its dimensions by axis name, its dtype (None: the problem's).

    >>> TensorSpec(name="x_MN", axes=("m", "n")).shape({"m": 2, "n": 3})
    (2, 3)
    """

    name: str
    axes: tuple[str, ...]
    dtype: str | None = None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(sizes[a] for a in self.axes)

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
    `mutates`: names of inputs that the call changes; they are restored before each call.
    `targets`: GPU architectures that its own kernels compile for; empty where it has no kernels of its own.
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
    sources: tuple[Path, ...] = ()
    targets: tuple[str, ...] = ()

    def source_digest(self) -> str:
        """SHA-256 (16 hex digits) over the bind function and the kernel files that it names; of a plug-in over its whole file.

        A plug-in's kernels stand in the same file, outside the function: runs with other kernels must not count as of one source.
        """
        digest = hashlib.sha256()
        try:
            digest.update(inspect.getsource(self.bind).encode())
            if not self.bind.__module__.startswith("kernelviz.ops."):
                digest.update(Path(inspect.getfile(self.bind)).read_bytes())
        except (OSError, TypeError):
            digest.update(self.name.encode())
        for path in self.sources:
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def keywords(self, problem: Problem) -> dict[str, str | None]:
        """What `bind` is given beside the inputs."""
        return {"compute": problem.compute} if "compute" in inspect.signature(self.bind).parameters else {}

    def refuses(self, problem: Problem) -> str | None:
        """Why this variant cannot solve the problem on any machine, or None."""
        if self.dtypes is not None and problem.dtype not in self.dtypes:
            return f"has no {problem.dtype} kernel (it has {', '.join(self.dtypes)})"
        if problem.compute is not None and self.computes is not None and problem.compute not in self.computes:
            return f"computes in {', '.join(self.computes)} only, not in {problem.compute}"
        if problem.direction not in self.directions:
            return f"has no {problem.direction} pass"
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
    sources: tuple[str, ...] = (),
    targets: tuple[str, ...] | None = None,
) -> Callable[[Callable[..., Launch]], Variant]:
    """Make a Variant of a bind function. Its name is the function's, its caption the docstring's first line.

    `sources` are kernel files beside the function's own file, part of the source digest. `targets`: architectures that they
    compile for, by default Ampere, Hopper and Blackwell. Errors: ValueError when the function has no docstring.
    """

    def made(bind: Callable[..., Launch]) -> Variant:
        doc = inspect.getdoc(bind)
        if not doc:
            raise ValueError(f"variant {bind.__name__!r} needs a docstring: its first line is its caption")
        folder = Path(inspect.getfile(bind)).parent
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
            sources=tuple(folder / s for s in sources),
            targets=targets if targets is not None else TARGETS if backend in ("triton", "cuda") else (),
        )

    return made


@dataclass(frozen=True, kw_only=True)
class Op:
    """What is computed. Everything here is free of torch at import; the callables import it when called.

    cost(sizes, itemsize_bytes): flop and minimal bytes. reference(*inputs): the outputs in float64 from float64 inputs.
    bound(problem, inputs, outputs): the largest allowed |error| of each output element, float64, from the same float64
    tensors. `rule` is that bound in words. `slab`: an axis along whose first dimension inputs and outputs can be cut, so
    that the reference of a large problem is computed in pieces. `variants` in ladder order.
    """

    name: str
    family: str
    summary: str
    formula: str
    axes: tuple[Axis, ...]
    dtypes: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    cost: Callable[[Sizes, int], Cost]
    reference: Callable[..., Tensors]
    bound: Callable[[Problem, Tensors, Tensors], Tensors]
    rule: str
    baseline: str
    variants: tuple[Variant, ...]
    first: tuple[str, ...] = ()
    computes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    presets: tuple[Preset, ...] = ()
    slab: str | None = None
    directions: tuple[Direction, ...] = ("forward",)

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    def variant_named(self, name: str) -> Variant:
        """The variant of that name; raises UnknownName."""
        for candidate in self.variants:
            if candidate.name == name:
                return candidate
        raise UnknownName("variant", name, [v.name for v in self.variants], of=f"op {self.name!r}")

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
        return self.cost(problem.sizes, dtype_named(problem.dtype).itemsize_bytes)

    def tensor_bytes(self, problem: Problem) -> int:
        """Bytes of the inputs and of two sets of outputs."""
        sizes, dtype = problem.sizes, problem.dtype
        given = sum(t.size_bytes(sizes, dtype) for t in self.inputs)
        return given + 2 * sum(t.size_bytes(sizes, dtype) for t in self.outputs)

    def needed_bytes(self, problem: Problem) -> int:
        """Device memory that measuring the problem takes: inputs, two sets of outputs, and the float64 reference.

        The reference of an op with a slab axis is computed in pieces of at most 256 MiB a tensor.
        """
        sizes = problem.sizes
        tensors = (*self.inputs, *self.outputs)
        wide = sum(t.elements(sizes) * 8 for t in tensors)
        if self.slab:
            rows = sizes[self.slab]
            whole = sum(t.elements(sizes) * 8 for t in tensors if t.axes and t.axes[0] == self.slab)
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
