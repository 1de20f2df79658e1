"""A variant (one implementation of an op), its launch, and the decorator `variant` that makes one of a bind function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kernelviz.core.backends import BACKENDS
from kernelviz.core.configuration import base_name, configured_name
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.machine_code import Technique
from kernelviz.core.problem import Direction, Problem
from kernelviz.core.reasons import NoCompute, NoDirection, NoDtype, NotAdmitted, Refusal, SizeTooLarge
from kernelviz.ops.catalog.digest import source_digest
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

Launch: TypeAlias = "Callable[[], Tensor | Tensors]"
"""A bound call: it runs the op once on the tensors that it is bound to, and returns the output (or the outputs, in order)."""
Configuration = Mapping[str, int]
"""One value of each parameter of a variant's space: ``{"block": 1024, "warps": 8}``."""
Admits = Callable[[Configuration, Problem], "str | None"]
"""Why a configuration is not measured for a problem (for example a tile larger than the matrix), or None."""


Need = Literal["cuda", "cpu", "triton", "nvrtc", "cxx", "inductor", "liger", "sm_89", "sm_90", "sm_90a"]
"""What a variant needs: an NVIDIA GPU, the processor, the triton package, NVRTC with its headers, a C++ compiler with Python's
headers, torch.compile's backend (triton and a C compiler on a GPU, a C++ compiler on a CPU), the package liger-kernel, a GPU of
compute capability 8.9 or later (products of 8-bit floats), 9.0 or later (thread-block clusters, TMA), one of exactly 9.0 (wgmma).
A backend that needs a Python package of its own (`kernelviz.core.backends`) adds a need of its name."""
TARGETS = ("sm_80", "sm_90", "sm_100")
"""Architectures that a kernel compiles for unless its variant says otherwise: A100, H100 and H200, B200."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedGain:
    """How many times as fast as the variant `over` a source measured the idea of this variant to be, on `gpu`."""

    factor: float
    over: str
    gpu: str
    source: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A launch whose call reads what an untimed pass over the inputs wrote: a backward pass that follows its forward pass.

    `forward()` is called whenever the inputs hold other numbers. It writes to the same memory each time, because a captured
    `call` reads those addresses.
    """

    forward: Callable[[], object]
    call: Launch

    def __call__(self) -> Tensor | Tensors:
        return self.call()


def refresh(launch: Launch) -> None:
    """Run the forward pass of a staged launch again, because the inputs hold other numbers now; do nothing for other launches."""
    if isinstance(launch, Staged):
        launch.forward()


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One implementation of an op: a function that binds inputs and returns a launch.

    `bind(*inputs)` or, if it has a parameter ``compute``, `bind(*inputs, compute="tf32")`. Allocate and compile in the bind
    function or in the first call; the launch itself must be the op and nothing else.
    `slow_compile`: preparing it takes seconds, so it is measured after the other variants.
    `searches`: a library tries its kernels when it is bound; that time is a figure of its own.
    `only_when_named`: a plan includes it only if the plan names it, because it is known to be wrong or slow (for example a
    published variant).
    `largest`: by axis, the largest size that it takes; it is left out of plans by default where no problem is small enough.
    `mutates`: names of inputs that the call changes; they are restored before each call.
    `targets`: GPU architectures that its own kernels compile for; empty if it has no kernels of its own.
    `techniques`: what its machine code must show on each target that has it; a test reads it from there.
    `published`: the gain that a source reports for its idea, to be compared with the gain that is measured here.
    `backward(*inputs, *grads of the outputs)`: the bind function of the backward pass. Its launch is `Staged` if it reads
    what the forward pass wrote. `space`: the values of each keyword of `bind` that can be tuned, the default first. `admits`
    says which configurations make no sense for a problem. `configuration`: the values that this variant is bound with; None if it
    has no space or no configuration was chosen (then the defaults apply).
    """

    name: str
    backend: str
    bind: Callable[..., Launch]
    summary: str
    op: str | None = None
    needs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] | None = None
    computes: tuple[str, ...] | None = None
    directions: tuple[Direction, ...] = ("forward",)
    largest: Mapping[str, int] = field(default_factory=dict)
    mutates: tuple[str, ...] = ()
    slow_compile: bool = False
    searches: bool = False
    only_when_named: bool = False
    targets: tuple[str, ...] = ()
    techniques: tuple[Technique, ...] = ()
    published: PublishedGain | None = None
    backward: Callable[..., Launch] | None = None
    space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    admits: Admits | None = None
    configuration: Configuration | None = None

    @property
    def default(self) -> dict[str, int]:
        """The configuration without tuning: the first value of each parameter."""
        return {key: values[0] for key, values in self.space.items()}

    def configured(self, configuration: Configuration) -> Variant:
        """This variant with these values of its parameters (and the default of all others), under its own name.

        Errors: UnknownName for a parameter that it does not have, BadField for a value that is not in its space.
        """
        for key, value in configuration.items():
            if key not in self.space:
                raise UnknownName("parameter", key, self.space, of=f"variant {self.name!r}")
            if value not in self.space[key]:
                known = ", ".join(map(str, self.space[key]))
                raise BadField(f"{key} of {self.name}", value, f"its space has {known}")
        return replace(self, configuration={**self.default, **configuration})

    def named(self, configuration: Configuration) -> Variant:
        """`configured`, under the name ``name[key=value,…]`` with the keys in the order of the space. Errors: as `configured`."""
        configured = self.configured(configuration)
        return replace(configured, name=configured_name(self.name, configured.configuration or {}))

    def of_backward(self) -> Variant:
        """The variant whose `bind` binds the backward pass: this one itself if its `bind` already does."""
        return replace(self, bind=self.backward, backward=None) if self.backward else self

    def source_digest(self) -> str:
        """SHA-256 (16 hex digits) of the code that `bind` runs; for that of the backward pass, ask `of_backward()`."""
        return source_digest(self.bind, base_name(self.name))

    def keywords(self, problem: Problem) -> dict[str, str | int | None]:
        """The keyword arguments of `bind`: those of its parameters that are the compute precision, sizes of axes, or its
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
        for axis, most in self.largest.items():
            size = problem.sizes.get(axis, 0)  # an offset that is not stated is 0
            if size > most:
                return SizeTooLarge(axis=axis, size=size, most=most)
        if self.admits is not None and self.configuration not in (None, self.default):  # the default is always admitted
            text = self.admits(self.configuration, problem)
            return None if text is None else NotAdmitted(text=text)
        return None


def variant(
    *,
    backend: str,
    needs: tuple[str, ...] = (),
    op: str | None = None,
    dtypes: tuple[str, ...] | None = None,
    computes: tuple[str, ...] | None = None,
    directions: tuple[Direction, ...] = ("forward",),
    largest: Mapping[str, int] | None = None,
    mutates: tuple[str, ...] = (),
    slow_compile: bool = False,
    searches: bool = False,
    only_when_named: bool = False,
    targets: tuple[str, ...] | None = None,
    techniques: tuple[Technique, ...] = (),
    published: PublishedGain | None = None,
    backward: Callable[..., Launch] | None = None,
    space: Mapping[str, tuple[int, ...]] | None = None,
    admits: Admits | None = None,
) -> Callable[[Callable[..., Launch]], Variant]:
    """Make a Variant of a bind function. Its name is that of the function, its caption the first line of the docstring.

    `targets`: architectures that its kernels compile for, by default Ampere, Hopper and Blackwell (with the need ``sm_90`` only
    the latter two, with ``sm_90a`` only Hopper). A plug-in that has only a backward pass gives `directions=("backward",)`, and
    `bind` is that pass. Each key of `space` is a keyword of the function (or of `backward`), and the default of that keyword is
    the first in the space.
    Errors: ValueError for an unknown backend or need, a function without a docstring, or a space that does not fit it.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r}: there is only {', '.join(BACKENDS)}")
    unknown = [
        need for need in needs if need not in get_args(Need) and not (need in BACKENDS and BACKENDS[need].module)
    ]
    if unknown:
        raise ValueError(f"need {unknown[0]!r}: there is no such need")
    if targets is None and BACKENDS[backend].compiler is not None:
        targets = tuple(
            t for t in TARGETS if not ("sm_90" in needs and t == "sm_80") and ("sm_90a" not in needs or t == "sm_90")
        )
    if backward is not None and "backward" not in directions:
        directions = (*directions, "backward")

    def variant_of(bind: Callable[..., Launch]) -> Variant:
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
            largest=dict(largest or {}),
            mutates=mutates,
            slow_compile=slow_compile,
            searches=searches,
            only_when_named=only_when_named,
            targets=targets or (),
            techniques=techniques,
            published=published,
            backward=backward,
            space={key: tuple(values) for key, values in (space or {}).items()},
            admits=admits,
        )

    return variant_of


def _check_space(
    bind: Callable[..., Launch], backward: Callable[..., Launch] | None, space: Mapping[str, tuple[int, ...]]
) -> None:
    """Errors: ValueError."""
    known = [inspect.signature(function).parameters for function in (bind, backward) if function is not None]
    for key, values in space.items():
        parameters = [names[key] for names in known if key in names]
        where = f"variant {bind.__name__!r}, space[{key!r}]"
        if not parameters or not key.isidentifier():
            raise ValueError(f"{where}: the function has no keyword of that name")
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{where}: name each value once, and at least one")
        for parameter in parameters:
            if parameter.default not in (inspect.Parameter.empty, values[0]):
                raise ValueError(f"{where}: the function's default is {parameter.default!r}: put that first")
