"""The line in a terminal that asks for a plan again, to the last option."""

import shlex
from collections.abc import Sequence

from kernelviz.core.problem import QUICK, USUAL_FIGURES, Method, Plan, Problem, Search
from kernelviz.core.sizes import written


def commands(plan: Plan, method: Method) -> tuple[str, ...]:
    """`kernelviz run …` for the plan: one line, or several where its sizes are no product of lists (each then has its own).

    >>> add = Problem(op="add", sizes={"n": 4096}, dtype="fp32")
    >>> plan = Plan(problems=(add,), variants=("torch_eager",), baseline="torch_eager", device="cpu")
    >>> print(*commands(plan, Method(figures=("cold",))))
    kernelviz run add --variants torch_eager --baseline torch_eager --size n=4096 --dtype fp32 --budget-s 1.0 --clock burst \
--figures cold --device cpu
    """
    alike: dict[tuple[str | None, ...], list[Problem]] = {}
    for problem in plan.problems:
        alike.setdefault((problem.dtype, problem.compute, problem.direction, problem.data), []).append(problem)
    return tuple(line for group in alike.values() for line in _lines(plan, method, group))


def unsaid(method: Method) -> str:
    """What of a method no option asks for, in words; empty where the command says everything.

    >>> unsaid(Method(seeds=5)), unsaid(QUICK)
    ('no option asks for: seeds 5', '')
    """
    usual = QUICK if _is_quick(method) else Method()
    names = {"half_width": "half-width", "ratio_half_width": "half-width of ratios", "seeds": "seeds"}
    other = [f"{name} {getattr(method, n):g}" for n, name in names.items() if getattr(method, n) != getattr(usual, n)]
    return f"no option asks for: {', '.join(other)}" if other else ""


def _is_quick(method: Method) -> bool:
    return method == QUICK


def _lines(plan: Plan, method: Method, problems: Sequence[Problem]) -> list[str]:
    axes = tuple(problems[0].sizes)
    texts = written(axes, [p.sizes for p in problems])
    each = [texts] if texts is not None else [{a: str(p.sizes[a]) for a in axes} for p in problems]
    return [_line(plan, method, problems[0], sizes) for sizes in each]


def _line(plan: Plan, method: Method, like: Problem, sizes: dict[str, str]) -> str:
    if plan.search is not None:
        return _tune(plan, plan.search, method, like, sizes)
    arguments = ["kernelviz", "run", plan.op, "--variants", ",".join(plan.variants), "--baseline", plan.baseline]
    for axis, text in sizes.items():
        arguments += ["--size" if text.isdigit() else "--sweep", f"{axis}={text}"]
    arguments += ["--dtype", like.dtype, *_problem(like), *_method(method)]
    for path in plan.plugins:
        arguments += ["--with", path]
    return shlex.join([*arguments, "--device", plan.device])


def _tune(plan: Plan, search: Search, method: Method, like: Problem, sizes: dict[str, str]) -> str:
    arguments = [
        "kernelviz",
        "tune",
        plan.op,
        search.variant,
        *(w for a, t in sizes.items() for w in ("--size", f"{a}={t}")),
    ]
    arguments += ["--dtype", like.dtype, *_problem(like)]
    if search.seed is not None:
        arguments += ["--configurations", str(len(plan.variants)), "--seed", str(search.seed)]
    arguments += ["--budget-s", repr(method.budget_s)]
    for path in plan.plugins:
        arguments += ["--with", path]
    return shlex.join([*arguments, "--device", plan.device])


def _problem(like: Problem) -> list[str]:
    """Its options beside sizes and dtype, where they are not as usual."""
    arguments: list[str] = []
    for option, value, usual in (
        ("--compute", like.compute, None),
        ("--direction", like.direction, "forward"),
        ("--data", like.data, "normal"),
    ):
        arguments += [option, str(value)] if value != usual else []
    return arguments


def _method(method: Method) -> list[str]:
    if _is_quick(method):
        return ["--quick"]
    figures = [] if method.figures == USUAL_FIGURES else ["--figures", ",".join(method.figures)]
    return ["--budget-s", repr(method.budget_s), *(["--clock", method.clock] if method.clock else []), *figures]
