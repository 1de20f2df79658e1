"""What is to be measured: problems, variants, the method, and the plan that contains them."""

from typing import Literal

import msgspec

from kernelviz.core.configuration import Value
from kernelviz.core.sizes import OFFSET_AXES

Direction = Literal["forward", "backward"]
Data = Literal["normal", "uniform", "zeros", "small_integers", "one_value", "sorted", "outliers"]
"""What the inputs hold. ``sorted``: as normal, with ids in ascending order. ``outliers``: as normal, with a few numbers that are
32 times larger (measure.session.inputs)."""
TIMED_SEED = 0
"""The timed inputs are filled with this seed."""
RANDOM_DATA = frozenset({"normal", "sorted"})
"""The data with which a wrong kernel is seen. With zeros, ones, small integers or outliers alone, the output of a wrong kernel
can be right (a product of zeros is zero, whatever the kernel reads), so it is also checked with normal data."""
Clock = Literal["burst", "sustained"]
PASSES, STEADY_S = 3, 1.0
"""Under sustained load: the number of passes over all variants, and, unless a method says otherwise, the seconds of its own load
before a variant is measured. The power cap applies after 0.1 s; the temperature follows for minutes."""
FigureName = Literal["cold", "warm", "call", "graph", "loop", "energy", "naive"]
USUAL_FIGURES: tuple[FigureName, ...] = ("cold", "warm", "call", "graph", "loop")
"""What a run measures by default: device time cold and warm, one eager call, one call as a graph, and eager calls back to back.
Energy takes two seconds for each case and the naive protocol a new process, so they are measured on request."""


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all stored types: immutable, with keyword arguments only. Readers ignore unknown fields."""


class Problem(Struct, frozen=True, kw_only=True):
    """An op with sizes, dtype, compute precision, direction and input data. `direction` and `data` are None where another
    tool's file does not say them, and `sizes` is empty where its benchmark has none.

    `compute` is the precision of the arithmetic where the dtype leaves a choice: ``ieee`` or ``tf32`` for an fp32
    matrix product, ``fast_accumulation`` or ``fp32_accumulation`` for one of 8-bit floats; None where there is no choice.

    >>> Problem(op="add", sizes={"n": 1024}, dtype="fp32").key
    'add fp32 n=1024'
    """

    op: str
    sizes: dict[str, int]
    dtype: str
    compute: str | None = None
    direction: Direction | None = "forward"
    data: Data | None = "normal"

    @property
    def key(self) -> str:
        """One line that is equal for equal problems, for dictionaries and for people."""
        # An offset of 0 is the same problem whether it is stated or not.
        sizes = " ".join(f"{axis}={size}" for axis, size in self.sizes.items() if size or axis not in OFFSET_AXES)
        extra = [
            text
            for text, default in ((self.compute, None), (self.direction, "forward"), (self.data, "normal"))
            if text is not None and text != default
        ]
        return " ".join([self.op, self.dtype, *([sizes] if sizes else []), *extra])

    @property
    def precision(self) -> str:
        """The precision that decides which compute roof applies: ``tf32`` for tf32 arithmetic, else the dtype."""
        return "tf32" if self.compute == "tf32" else self.dtype


def problem_of_seed(problem: Problem, seed: int) -> Problem:
    """The problem with the data of the fill of this seed: its own data for the timed seed, normal data for all others, unless its
    own data are random (RANDOM_DATA).

    >>> zeros = Problem(op="add", sizes={"n": 4}, dtype="fp32", data="zeros")
    >>> problem_of_seed(zeros, TIMED_SEED).data, problem_of_seed(zeros, 1).data
    ('zeros', 'normal')
    """
    if seed == TIMED_SEED or problem.data is None or problem.data in RANDOM_DATA:
        return problem
    return msgspec.structs.replace(problem, data="normal")


class Case(Struct, frozen=True, kw_only=True):
    """One problem solved by one variant."""

    problem: Problem
    variant: str

    @property
    def key(self) -> str:
        return case_key(self.problem, self.variant)


def case_key(problem: Problem, variant: str) -> str:
    """One line that is equal for equal cases.

    >>> case_key(Problem(op="add", sizes={"n": 1024}, dtype="fp32"), "torch_eager")
    'add fp32 n=1024 | torch_eager'
    """
    return f"{problem.key} | {variant}"


class Cost(Struct, frozen=True, kw_only=True):
    """The least work of a problem: flop, and bytes if each input is read once and each output is written once.

    >>> Cost(work_flop=1024, read_bytes=8192, written_bytes=4096).moved_bytes
    12288
    """

    work_flop: int
    read_bytes: int
    written_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes


class Method(Struct, frozen=True, kw_only=True):
    """How times are measured. Whether the headline is cold or warm is not part of it; that is chosen when results are shown.

    `budget_s`: the most device time a case may take. `half_width`: relative half-width of the 95 % interval at which measuring
    stops early; at 0.5 % five fresh processes differed by ±0.6 % on a 3.6 µs kernel (docs/measuring.md). `ratio_half_width`:
    the same for a comparison that stays undecided. `decided_is_enough`: the measurement ends when all comparisons are decided,
    however wide the single intervals are (for live mode). `judge`: True if each variant was measured in a process of its own
    and checked by a judge process (`untrusted`); otherwise the field is left out of documents. `ahead`: False if the worker
    compiled every kernel itself (`compiles_ahead`); otherwise the field is left out, too. `seeds`: how many fills of the inputs
    the correctness gate checks. `load_s`: under sustained load, the seconds of its own load before each variant of a pass, if
    they are not STEADY_S. `early_stop`: a variant of which every call of the first block takes more than this many times as
    long as the fastest variant beside it gets no further blocks, unless it is the baseline (`stop_factor`); left out where
    every variant is measured to the end. `figures`: what is measured; documents that do not say have device cold only. For the
    times of another tool, `figures` is empty, `clock` is None, and all numbers are 0."""

    clock: Clock | None = "burst"
    budget_s: float = 1.0
    half_width: float = 0.0025
    ratio_half_width: float = 0.002
    decided_is_enough: bool = False
    seeds: int = 3
    figures: tuple[FigureName, ...] = ("cold",)
    judge: bool | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="untrusted")
    ahead: bool | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="compile_ahead")
    load_s: float | msgspec.UnsetType = msgspec.UNSET
    early_stop: float | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.judge is False:
            msgspec.structs.force_setattr(self, "judge", msgspec.UNSET)
        if self.ahead is True:
            msgspec.structs.force_setattr(self, "ahead", msgspec.UNSET)
        if self.load_s == STEADY_S:
            msgspec.structs.force_setattr(self, "load_s", msgspec.UNSET)

    @property
    def steady_s(self) -> float:
        """The seconds of its own load before a variant is measured; 0 in bursts.

        >>> Method().steady_s, Method(clock="sustained").steady_s, Method(clock="sustained", load_s=10.0).steady_s
        (0.0, 1.0, 10.0)
        """
        if self.clock != "sustained":
            return 0.0
        return STEADY_S if self.load_s is msgspec.UNSET else self.load_s

    def longest_s(self, variants: int) -> float:
        """About how long the device works for so many variants of a problem at most: their budgets, and under sustained load the
        load before each of them and the baseline's second series in each pass."""
        return self.budget_s * variants + PASSES * self.steady_s * (variants + 1)

    @property
    def stop_factor(self) -> float | None:
        """The factor of the early stop; None if every variant is measured to the end."""
        return None if self.early_stop is msgspec.UNSET else self.early_stop

    @property
    def untrusted(self) -> bool:
        """Whether the variants were measured as code that is not trusted."""
        return self.judge is True

    @property
    def compiles_ahead(self) -> bool:
        """Whether kernels are compiled before they are measured, in processes of their own. Untrusted variants never are."""
        return self.ahead is not False and not self.untrusted


QUICK = Method(budget_s=0.02, half_width=0.005, ratio_half_width=0.005, decided_is_enough=True)
"""The method of live mode: device cold only, until every comparison is decided, at most 0.02 s for each case. The correctness
gate is the same."""


class Search(Struct, frozen=True, kw_only=True):
    """The search of a tuning. The variants of its plan are configurations of `variant`; the baseline is the default one.

    `space`: the number of configurations in the space of the variant. `admitted`: how many of them the variant admits for these
    problems; None if the file of another tool does not say. `seed`: the seed of the random sample that the plan contains; None:
    the plan contains all. `parameters`: the values of each parameter in the space; left out of documents of before 2026-11-27.
    """

    variant: str
    space: int
    admitted: int | None
    seed: int | None = None
    parameters: dict[str, tuple[Value, ...]] | msgspec.UnsetType = msgspec.UNSET

    @property
    def parameter_values(self) -> dict[str, tuple[Value, ...]]:
        """The values of each parameter in the space; empty if they are not known."""
        return {} if self.parameters is msgspec.UNSET else self.parameters


class Plan(Struct, frozen=True, kw_only=True):
    """Problems × variants on one device. `baseline` is the variant that speed-ups divide by.

    `plugins`: paths of files with a user's own variants, imported in the worker only. `search`: set where the plan is a tuning.
    """

    problems: tuple[Problem, ...]
    variants: tuple[str, ...]
    baseline: str
    device: str
    plugins: tuple[str, ...] = ()
    search: Search | None = None

    def cases(self) -> list[Case]:
        """Every case, problem by problem, in the order in which results are listed."""
        return [Case(problem=p, variant=v) for p in self.problems for v in self.variants]

    @property
    def op(self) -> str:
        return self.problems[0].op
