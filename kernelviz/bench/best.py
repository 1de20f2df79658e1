"""Use case: the own variant that a user should get for a problem (`auto`), and the rule that chooses it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernelviz.bench.bench import Bench
from kernelviz.core import BadField, Device, Direction, Problem, UnknownName
from kernelviz.core.sizes import expand
from kernelviz.formats import shipped_runs
from kernelviz.ops import Op, Variant, op_named
from kernelviz.ops.catalog.best import Card
from kernelviz.ops.catalog.choice import candidates, rule_of


@dataclass(frozen=True, slots=True)
class Best:
    """The variants for a problem on a device, the best first, and the op's rule in one sentence."""

    problem: Problem
    device: Device
    rule: str
    variants: tuple[Variant, ...]

    @property
    def variant(self) -> Variant:
        return self.variants[0]

    @property
    def record(self) -> dict[str, object]:
        """The choice as plain values. `then`: the variants that follow if the first cannot be bound."""
        problem = self.problem
        return {
            "op": problem.op,
            **problem.sizes,
            "dtype": problem.dtype,
            "compute": problem.compute,
            "direction": problem.direction,
            "device": self.device.name,
            "variant": self.variant.name,
            "rule": self.rule,
            "then": [variant.name for variant in self.variants[1:]],
        }


def best(
    bench: Bench,
    op: str,
    sizes: Mapping[str, int | str],
    dtype: str | None = None,
    *,
    compute: str | None = None,
    direction: Direction = "forward",
    device: str | None = None,
) -> Best:
    """What a user should get for one problem. `device`: one of this machine, or the name of a card of the recorded runs. By
    default it is the first GPU here, else the first of these cards.

    Errors: UnknownName and BadField for the op, sizes, number format and device, and where no own variant solves the problem.
    """
    known = op_named(op, bench.ops())
    texts = {axis: str(size) for axis, size in sizes.items()}
    # An offset need not be stated; every other size is asked for by `Op.problem`.
    every = expand(tuple(axis for axis in known.axis_names if axis in texts), texts)
    unknown = next((axis for axis in texts if axis not in known.axis_names), None)
    if unknown is not None:
        raise UnknownName("axis", unknown, known.axis_names, of=f"op {op!r}")
    if len(every) != 1:
        raise BadField("sizes", f"{len(every)} problems", "give one size for each axis")
    problem = known.problem(every[0], dtype or known.dtypes[0], compute=compute, direction=direction)
    return best_of_problem(bench, known, problem, _device(bench, device))


def best_of_problem(bench: Bench, op: Op, problem: Problem, device: Device) -> Best:
    """The same for a problem. A variant that needs what a device of this machine lacks is passed over. Errors: BadField."""
    usable = candidates(op, problem, card_of(device))
    if is_here(bench, device):
        lacking = {offer.variant.name for offer in bench.offers(op.name, device.id) if offer.lack is not None}
        usable = tuple(v for v in usable if v.name not in lacking)
    if not usable:
        raise BadField(
            "op", op.name, f"no own variant solves {problem.key} on {device.name}; choose a library's variant"
        )
    return Best(problem, device, rule_of(op), usable)


def is_here(bench: Bench, device: Device) -> bool:
    """Whether the device is one of this machine, and no card of a recorded run."""
    return device in bench.devices()


def card_of(device: Device) -> Card:
    """The facts of a device that rules use. Errors: BadField for a device that is no GPU, or whose facts are unknown."""
    card = known_card(device)
    if card is None:
        raise BadField("device", device.name, "the rules are of GPUs; name a GPU of this machine or of a recorded run")
    return card


def known_card(device: Device) -> Card | None:
    """The same; None for a device that is no GPU, or whose facts are unknown."""
    capability, multiprocessors = device.compute_capability, device.multiprocessors
    if device.kind != "cuda" or capability is None or multiprocessors is None:
        return None
    l2_bytes = device.last_level_cache_bytes or 0
    return Card(compute_capability=capability, multiprocessors=multiprocessors, l2_bytes=l2_bytes)


def auto_names(bench: Bench, problem: Problem, device: Device) -> tuple[str, ...]:
    """The names of the own variants for a problem of a run, the best first; none for a problem of another tool, or no GPU."""
    op = bench.ops().get(problem.op)
    if op is None or problem.direction not in op.directions or not op.has_axes_of(problem.sizes):
        return ()
    card = known_card(device)
    if problem.dtype not in op.dtypes or card is None:
        return ()
    return tuple(v.name for v in candidates(op, problem, card))


def _device(bench: Bench, name: str | None) -> Device:
    here = {device.id: device for device in bench.devices()}
    recorded = recorded_cards()
    if name is None:
        own = bench.device(bench.default_device())
        return own if own.kind == "cuda" else next(iter(recorded.values()))
    if name in here:
        return here[name]
    wanted = name.casefold()
    of_name = next((d for d in recorded.values() if wanted in (d.name.casefold(), *d.name.casefold().split())), None)
    if of_name is None:
        raise UnknownName("device", name, (*here, *recorded))
    return of_name


@lru_cache(maxsize=1)
def recorded_cards() -> dict[str, Device]:
    """The GPUs of the recorded runs by name."""
    first: dict[str, str] = {}
    for run_id, line in shipped_runs.lines().items():
        first.setdefault(line.device, run_id)
    return {name: shipped_runs.load(run_id).environment.device for name, run_id in first.items()}
