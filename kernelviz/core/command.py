"""The commands that measure a plan again, with all options."""

import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core.problem import QUICK, USUAL_FIGURES, Method, Plan, Problem
from kernelviz.core.sizes import written


def commands(plan: Plan, method: Method) -> tuple[str, ...]:
    """`kernelviz run …` for the plan. Sizes that no expression describes have a line for each problem.

    >>> add = Problem(op="add", sizes={"n": 4096}, dtype="fp32")
    >>> plan = Plan(problems=(add,), variants=("torch_eager",), baseline="torch_eager", device="cpu")
    >>> print(*commands(plan, Method(figures=("cold",))))
    kernelviz run add --variants torch_eager --baseline torch_eager --size n=4096 --dtype fp32 --budget-s 1.0 --clock burst \
--figures cold --device cpu
    """
    alike: dict[tuple[str | None, ...], list[Problem]] = defaultdict(list)
    for problem in plan.problems:
        alike[problem.dtype, problem.compute, problem.direction, problem.data].append(problem)
    return tuple(_line(plan, method, group[0], sizes) for group in alike.values() for sizes in _sizes(group))


@dataclass(frozen=True, slots=True)
class ProfilerCommands:
    """Commands that run profilers on one call of a case: Nsight Compute (hardware counters of its kernels), Nsight Systems (a
    timeline), and kernelviz itself, which reads a stated set of counters with ncu."""

    ncu: str
    nsys: str
    counters: str


def profiler_commands(
    problem: Problem, variant: str, *, device: str | None = None, plugins: Sequence[str] = ()
) -> ProfilerCommands | None:
    """The commands for one case. `device`: its id if it is not the default one.

    None for a backward pass, which `kernelviz launch` does not offer, and for a problem of another tool. The profilers see only
    the call and not its preparation, because `kernelviz launch` tells them when it begins and ends (cudaProfilerStart, -Stop).

    >>> commands = profiler_commands(Problem(op="add", sizes={"n": 4096}, dtype="fp32"), "torch_eager")
    >>> print(commands.ncu)
    ncu --set full --profile-from-start off --clock-control none kernelviz launch add --variants torch_eager \
--size n=4096 --dtype fp32
    >>> print(commands.nsys)
    nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop kernelviz launch add --variants torch_eager --size \
n=4096 --dtype fp32
    >>> print(commands.counters)
    kernelviz counters add torch_eager --size n=4096 --dtype fp32
    """
    if problem.direction != "forward" or problem.data is None:
        return None
    case = launch_options(problem, device=device, plugins=plugins)
    launch = ["kernelviz", "launch", problem.op, "--variants", variant, *case]
    ncu = ["ncu", "--set", "full", "--profile-from-start", "off", "--clock-control", "none"]
    nsys = ["nsys", "profile", "--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    return ProfilerCommands(
        ncu=shlex.join([*ncu, *launch]),
        nsys=shlex.join([*nsys, *launch]),
        counters=shlex.join(["kernelviz", "counters", problem.op, variant, *case]),
    )


def launch_options(problem: Problem, *, device: str | None = None, plugins: Sequence[str] = ()) -> list[str]:
    """The options of `kernelviz launch` for a problem: sizes, number format and data where they are not as usual."""
    sizes = [argument for axis, size in problem.sizes.items() for argument in ("--size", f"{axis}={size}")]
    with_plugins = [argument for path in plugins for argument in ("--with", path)]
    on_device = [] if device is None else ["--device", device]
    return [*sizes, *_problem(problem), *with_plugins, *on_device]


def unsaid(method: Method) -> str:
    """The parts of a method for which there is no option. Empty if the command describes the whole method.

    >>> unsaid(Method(seeds=5)), unsaid(QUICK)
    ('no option asks for: seeds 5', '')
    """
    usual = QUICK if msgspec.structs.replace(method, ahead=True) == QUICK else Method()
    names = {"half_width": "half-width", "ratio_half_width": "half-width of ratios", "seeds": "seeds"}
    other = [f"{name} {getattr(method, n):g}" for n, name in names.items() if getattr(method, n) != getattr(usual, n)]
    return f"no option asks for: {', '.join(other)}" if other else ""


def _sizes(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """The sizes of each line."""
    axes = tuple(problems[0].sizes)
    texts = written(axes, [p.sizes for p in problems])
    return [texts] if texts is not None else [{a: str(p.sizes[a]) for a in axes} for p in problems]


def _line(plan: Plan, method: Method, like: Problem, sizes: dict[str, str]) -> str:
    search = plan.search
    if search is None:
        command = ["run", plan.op, "--variants", ",".join(plan.variants), "--baseline", plan.baseline]
        how = _method(method)
    else:
        command = ["tune", plan.op, search.variant]
        sample = (
            [] if search.seed is None else ["--configurations", str(len(plan.variants)), "--seed", str(search.seed)]
        )
        in_line = [] if method.ahead is not False else ["--no-compile-ahead"]
        to_the_end = [] if method.stop_factor is not None else ["--no-early-stop"]
        how = [*sample, "--budget-s", repr(method.budget_s), *in_line, *to_the_end]
    for axis, text in sizes.items():
        command += ["--size" if search or text.isdigit() else "--sweep", f"{axis}={text}"]
    plugins = [argument for path in plan.plugins for argument in ("--with", path)]
    return shlex.join(["kernelviz", *command, *_problem(like), *how, *plugins, "--device", plan.device])


def _problem(like: Problem) -> list[str]:
    """The options for everything but the sizes, where it is not as usual."""
    options = (
        ("--dtype", like.dtype, None),
        ("--compute", like.compute, None),
        ("--direction", like.direction, "forward"),
        ("--data", like.data, "normal"),
    )
    return [argument for option, value, usual in options if value != usual for argument in (option, str(value))]


def _method(method: Method) -> list[str]:
    in_line = [] if method.ahead is not False else ["--no-compile-ahead"]
    if msgspec.structs.replace(method, ahead=True) == QUICK:
        return ["--quick", *in_line]
    clock = ["--clock", method.clock] if method.clock else []
    clock += ["--load-seconds", f"{method.load_s:g}"] if isinstance(method.load_s, float) else []
    figures = [] if method.figures == USUAL_FIGURES else ["--figures", ",".join(method.figures)]
    return ["--budget-s", repr(method.budget_s), *clock, *figures, *in_line]
