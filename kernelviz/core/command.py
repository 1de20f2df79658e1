"""The commands that measure a plan again, with all options."""

import re
import shlex
from collections import defaultdict
from collections.abc import Sequence

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


def profile_command(problem: Problem, variant: str, kernel: str = "") -> str | None:
    """`ncu … kernelviz launch …` for one case, so that a profiler reads the hardware counters of `kernel` in one call.

    None for a backward pass, which `kernelviz launch` does not offer.

    >>> profile_command(Problem(op="add", sizes={"n": 4096}, dtype="fp32"), "torch_eager", "void at::vec_add<4, float>(int)")
    'ncu --set full -k vec_add -c 1 kernelviz launch add --variants torch_eager --size n=4096 --dtype fp32'
    """
    if problem.direction != "forward":
        return None
    # ncu matches the name of the function alone, without namespaces, template arguments and parameters.
    name = re.split(r"[<(]", kernel, maxsplit=1)[0].split("::")[-1].split(" ")[-1]
    only = ["-k", name, "-c", "1"] if re.fullmatch(r"\w+", name) else []
    sizes = [argument for axis, size in problem.sizes.items() for argument in ("--size", f"{axis}={size}")]
    launch = ["kernelviz", "launch", problem.op, "--variants", variant, *sizes, *_problem(problem)]
    return shlex.join(["ncu", "--set", "full", *only, *launch])


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
        how = [*sample, "--budget-s", repr(method.budget_s), *in_line]
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
    figures = [] if method.figures == USUAL_FIGURES else ["--figures", ",".join(method.figures)]
    return ["--budget-s", repr(method.budget_s), *clock, *figures, *in_line]
