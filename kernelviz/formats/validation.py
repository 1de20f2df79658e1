"""Checks that the types of a document cannot express: quantities are possible, and each result belongs to a case of the plan."""

import math
from datetime import UTC, datetime

from kernelviz.core import DocumentError, Environment, Failure, Figure, Plan, Problem, Result, Roof, Run, Search
from kernelviz.core.sizes import least_size
from kernelviz.formats.code_validation import check_code
from kernelviz.formats.counter_validation import check_counters

MAX_SIZE = 2**63 - 1
LEAST_S, MOST_S = 1e-12, 1e9
"""Bounds of a time: light needs longer than 1 ps to cross a chip, and 1e9 s are thirty years."""
MAX_RATE = 1e24
MAX_COUNT = 2**100
MAX_CASES = 100_000
MAX_NAME = 2_000
"""Characters of an op, a variant, an axis, a dtype: C++ types in names are long, whole files are not names."""


def checked(run: Run) -> Run:
    """Return the same run. Errors: DocumentError with the path of the first field that has an impossible value."""
    check_moment(run.created_at, "$.created_at")
    _check_plan(run.plan)
    settings = ["budget_s", "half_width", "ratio_half_width"]
    settings += ["load_s"] if isinstance(run.method.load_s, float) else []
    settings += ["early_stop"] if isinstance(run.method.early_stop, float) else []
    check_fields(run.method, "$.method", 0.0, MOST_S, *settings)
    check_environment(run.environment, "$.environment")
    problems = {p.key: p for p in run.plan.problems}
    seen: set[str] = set()
    for i, result in enumerate(run.results):
        path, variant = f"$.results[{i}]", result.variant
        refuse(
            (problems.get(result.problem.key) != result.problem, "this problem is not in the plan", f"{path}.problem"),
            (variant not in run.plan.variants, f"variant {variant[:40]!r} is not in the plan", f"{path}.variant"),
            (result.case.key in seen, "this case has a result already", path),
        )
        seen.add(result.case.key)
        _check_result(result, path)
    check_code(run)
    return run


def refuse(*faults: tuple[bool, str, str]) -> None:
    """Errors: DocumentError for the first fault whose condition is true, with its text and the path of its field."""
    for there, text, path in faults:
        if there:
            raise DocumentError(text, path=path)


def check_moment(stamp: str, path: str) -> None:
    """Any text is allowed, because other tools write their own formats; a time with a zone must be one that UTC can express."""
    try:
        moment = datetime.fromisoformat(stamp)
        if moment.tzinfo is not None:
            moment.astimezone(UTC)
    except ValueError:
        return
    except OverflowError:
        raise DocumentError(
            f"{stamp[:40]!r} is outside the years 1 to 9999 in UTC; write it as 2026-11-21T10:42:00+00:00, or leave it empty "
            "if unknown",
            path=path,
        ) from None


def _check_plan(plan: Plan) -> None:
    refuse(
        (not plan.problems, "a plan has at least one problem", "$.plan.problems"),
        (not plan.variants, "a plan has at least one variant", "$.plan.variants"),
        (len(plan.problems) * len(plan.variants) > MAX_CASES, f"it has more than {MAX_CASES} cases", "$.plan"),
        (len(set(plan.variants)) < len(plan.variants), "a variant is named twice", "$.plan.variants"),
        *(_too_long(variant, f"$.plan.variants[{i}]") for i, variant in enumerate(plan.variants)),
        (
            plan.baseline not in plan.variants,
            f"the baseline {plan.baseline[:40]!r} is none of the variants",
            "$.plan.baseline",
        ),
    )
    if plan.search is not None:
        _check_search(plan.search)
    first = plan.problems[0]
    seen: set[str] = set()
    for i, problem in enumerate(plan.problems):
        path = f"$.plan.problems[{i}]"
        check_problem(problem, path)
        unlike = problem.op != first.op or list(problem.sizes) != list(first.sizes)
        refuse(
            (unlike, "all problems of a plan have the op and the axes of its first one", path),
            (problem.key in seen, "this problem is in the plan twice", path),
        )
        seen.add(problem.key)


def _check_search(search: Search) -> None:
    """Errors: DocumentError for a count that cannot be, and for a value of a parameter that no configuration has."""
    path = "$.plan.search"
    check_fields(search, path, 0, MAX_SIZE, "space", "admitted")
    count = sum(map(len, search.parameter_values.values()))
    many = f"it has {count:,} values of parameters; at most {MAX_CASES:,} are read"
    refuse(_too_long(search.variant, f"{path}.variant"), (count > MAX_CASES, many, f"{path}.parameters"))
    for key, values in search.parameter_values.items():
        refuse(_too_long(key, f"{path}.parameters"))
        for place, value in enumerate(values):
            inside = f"{path}.parameters.{key[:40]}[{place}]"
            if isinstance(value, str):
                refuse(_too_long(value, inside))
            else:
                check_between(value, -MAX_RATE, MAX_RATE, inside)


def check_problem(problem: Problem, path: str) -> None:
    """Errors: DocumentError for a name that is too long and for a size that no tensor has."""
    names = (problem.op, problem.dtype, problem.compute or "", *problem.sizes)
    refuse(
        *(_too_long(name, path) for name in names),
        *(
            (not least_size(a) <= n <= MAX_SIZE, f"{n} is no size", f"{path}.sizes.{a[:40]}")
            for a, n in problem.sizes.items()
        ),
    )


def _too_long(name: str, path: str) -> tuple[bool, str, str]:
    return len(name) > MAX_NAME, f"a name of {len(name)} characters; at most {MAX_NAME} are read", path


def check_environment(environment: Environment, path: str) -> None:
    """Errors: DocumentError for an impossible number of the device or of a roof. Pages divide the whole numbers, so each must
    fit into a float."""
    device = environment.device
    names = [name for name in device.__struct_fields__ if isinstance(getattr(device, name), int)]
    check_fields(device, f"{path}.device", 0, MAX_SIZE, *names)
    for number in device.compute_capability or ():
        check_between(number, 0, MAX_SIZE, f"{path}.device.compute_capability")
    for i, roof in enumerate(environment.roofs):
        check_roof(roof, f"{path}.roofs[{i}]")


def check_roof(roof: Roof, path: str) -> None:
    """Errors: DocumentError for a roof without its rate, and for an impossible rate, time or number of bytes."""
    rates = {
        "fma": "rate_flop_per_s", "matmul": "rate_flop_per_s", "mma": "rate_flop_per_s", "launch": "time_s",
    }  # fmt: skip
    has = rates.get(roof.name, "bandwidth_bytes_per_s")
    quantity = "time" if has == "time_s" else "rate"
    refuse((getattr(roof, has) is None, f"a roof {roof.name!r} has a {quantity}", path))
    check_fields(roof, path, 1.0, MAX_RATE, "bandwidth_bytes_per_s", "rate_flop_per_s", "clock_hz", "moved_bytes")
    check_fields(roof, path, *((LEAST_S, MOST_S) if has == "time_s" else (1.0, MAX_RATE)), "low", "high")
    check_fields(roof, path, LEAST_S, MOST_S, "time_s")


def _check_result(result: Result, path: str) -> None:
    check_fields(result.cost, f"{path}.cost", 0, MAX_COUNT, "work_flop", "read_bytes", "written_bytes")
    failed = isinstance(result.outcome, Failure)
    timing = result.outcome.timing if isinstance(result.outcome, Failure) else result.outcome
    figures = (
        {} if timing is None else timing.figures | {f"other_times.{n[:40]}": f for n, f in timing.other_times.items()}
    )
    for name, figure in figures.items():
        _check_figure(figure, f"{path}.outcome.{'timing.' if failed else ''}{name}")
    if timing is not None and timing.naive_timing is not None:
        naive = f"{path}.outcome.{'timing.' if failed else ''}naive"
        check_fields(timing.naive_timing, naive, 0.0, MOST_S, "first_s", "mean_s", "bind_and_first_s")
        check_between(timing.naive_timing.calls, 1, MAX_COUNT, f"{naive}.calls")
    for i, kernel in enumerate(result.kernels):
        check_fields(kernel, f"{path}.kernels[{i}]", 0.0, MOST_S, "duration_s")
    check_fields(result.preparation, f"{path}.preparation", 0.0, MOST_S, "bind_s", "first_call_s", "check_s")
    check_fields(result.peak_memory, f"{path}.memory", 0, MAX_COUNT, "bind_bytes", "call_bytes")
    if result.hardware_counters is not None:
        check_counters(result.hardware_counters, f"{path}.counters")


def _check_figure(figure: Figure, path: str) -> None:
    check_fields(figure, path, LEAST_S, MOST_S, "estimate", "low", "high")
    # Checking the samples one by one took nearly all of the time of checking a document, so their bounds are checked first.
    if figure.samples and not (
        min(figure.samples) >= LEAST_S and max(figure.samples) <= MOST_S and not math.isnan(sum(figure.samples))
    ):
        for i, sample in enumerate(figure.samples):
            check_between(sample, LEAST_S, MOST_S, f"{path}.samples[{i}]")
    if figure.buffers is not None:
        check_between(figure.buffers, 1, MAX_COUNT, f"{path}.places")
    blocks = figure.blocks or ()
    for i, block in enumerate(blocks):
        inside = f"{path}.blocks[{i}]"
        if block.size < 1:
            raise DocumentError(f"a block of {block.size} samples cannot be", path=f"{inside}.size")
        check_fields(block, inside, -MAX_RATE, MAX_RATE, "started_s")
        check_fields(block, inside, 0.0, MAX_RATE, "clock_hz")
    if isinstance(figure.percentiles_s, tuple):
        for i, percentile in enumerate(figure.percentiles_s):
            check_between(percentile, LEAST_S, MOST_S, f"{path}.percentiles_s[{i}]")
        ordered = sorted(figure.percentiles_s) == list(figure.percentiles_s)
        refuse((not ordered, "percentiles in falling order cannot be", f"{path}.percentiles_s"))
    if isinstance(figure.extent_s, tuple):
        for i, time_s in enumerate(figure.extent_s):
            check_between(time_s, LEAST_S, MOST_S, f"{path}.extent_s[{i}]")
        ordered = sorted(figure.extent_s) == list(figure.extent_s)
        refuse((not ordered, "a minimum, mean and maximum in falling order cannot be", f"{path}.extent_s"))
    given = len(figure.samples or ())
    in_blocks = len(blocks) if figure.by_block else sum(b.size for b in blocks)
    unlike = (figure.blocks is not None or figure.by_block) and in_blocks != given
    stand_for = "with one mean for each block, its blocks stand for" if figure.by_block else "its blocks hold"
    refuse((unlike, f"{stand_for} {in_blocks} samples, there are {given}", f"{path}.blocks"))


def check_fields(struct: object, path: str, low: float, high: float, *names: str) -> None:
    """Check that each known field is between two bounds. No field of None is known."""
    for name in names:
        value = getattr(struct, name, None)
        if value is not None:
            check_between(value, low, high, f"{path}.{name}")


def check_between(value: float, low: float, high: float, path: str) -> None:
    """The bounds are finite, so NaN and infinity are outside them. Whole numbers in JSON have no limit, floats do."""
    if not low <= value <= high:
        number = f"{value:.6g}" if isinstance(value, float) else str(value)[:40]
        raise DocumentError(f"{number} is outside {low:g} to {high:g}", path=path)
