"""What fusing saves, in text: families, steps, predictions, their reasons, and where fusing pays."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from kernelviz.core import Problem, units
from kernelviz.core.fusion import FusionFamily, Step, StepKind
from kernelviz.metrics import fusion_reasons as why
from kernelviz.metrics.fusion import FusionRow, Payoff
from kernelviz.metrics.fusion_prediction import LaunchCost, LaunchSource, MissingFact, PredictionB
from kernelviz.metrics.statistics import Interval
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_size, format_sizes
from kernelviz.text.text import Template, Text, fill

FAMILIES: dict[FusionFamily, str] = {
    "pointwise": "Pointwise chain",
    "linear_activation": "Linear + activation",
    "conv_bias_activation": "Convolution + bias + activation",
    "norm_activation": "Normalisation + activation",
    "transpose_matmul": "Transpose + matmul",
    "reshape_elementwise": "Reshape + element-wise",
}
"""The titles of the families."""
STEPS: dict[StepKind, str] = {
    "product": "product",
    "sum": "sum",
    "difference": "difference",
    "square": "square",
    "mean": "mean",
    "relu": "relu",
    "gelu": "gelu",
    "silu": "silu",
    "chain_step": "product, sum and relu",
    "matrix_product": "matrix product",
    "matrix_product_with_bias": "matrix product with bias",
    "convolution": "convolution",
    "bias": "bias",
    "bias_relu": "bias and relu",
    "layer_normalisation": "layer normalisation",
    "batch_normalisation": "batch normalisation",
    "transposition": "transposition",
    "to_fp32": "conversion to fp32",
    "from_fp32": "conversion from fp32",
}
METHOD_A = (
    "Prediction A uses costs and measured roofs only. Each step takes the larger of its flop at the measured arithmetic roof and "
    "its bytes at the measured memory bandwidth; the speed-up is the sum over the steps divided by the same of the fused op."
)
METHOD_B = (
    "Prediction B uses the measured time of the steps. It subtracts the saved bytes divided by the marginal bandwidth (the extra "
    "bytes of the larger of two measured copies divided by its extra time; in the last-level cache, the bandwidth of a copy "
    "there), and the saved launches times the measured cost of a launch. It never reads the time of the fused variant."
)
PREDICTIONS: Mapping[str, str] = {"A": "Prediction A, from the roofs", "B": "Prediction B, from the time of the steps"}
LAUNCH_SOURCES: dict[LaunchSource, str] = {
    "empty_launch": "the slope of the recorded run of empty_launch on a GPU of this model",
    "empty_kernel": "the time of an empty kernel on this GPU",
    "torch_call": "the time of one call of torch on this CPU",
}
MISSING: dict[MissingFact, str] = {
    "bandwidth": "the memory bandwidth was not measured",
    "compute_rate": "the arithmetic rate of this precision was not measured",
    "launch_cost": "the cost of a launch was not measured",
    "not_stable": "the time of the steps is not stable",
    "more_saved_than_measured": "the saved bytes and launches take longer than the steps were measured to take, because the "
    "bytes came from a cache",
}
_ALIKE = 0.05
"""Compositions whose times differ by less are about as fast."""
_REASONS: dict[type, Template] = {
    why.ComputeBoundStep: lambda r: (
        f"compute-bound step: the steps reach {units.percent(r.reached, 0)} of their roofs, because no product reaches the roof "
        "of arithmetic in every shape"
    ),
    why.CacheResident: lambda r: (
        f"cache-resident: the intermediate tensor of {format_bytes(r.intermediate_bytes)} fits into the last-level cache of "
        f"{format_bytes(r.cache_bytes)}, so its bytes cost less than those of memory"
    ),
    why.SmallerThanCopies: lambda r: (
        f"small tensor: {format_bytes(r.intermediate_bytes)} are too few to reach the bandwidth of the smallest measured copy in "
        f"the cache, which moves {format_bytes(r.copy_bytes)}, so fusing saves more time than the prediction subtracts for bytes"
    ),
    why.LaunchesMatter: lambda r: (
        f"launches: {count_launches(r.launches)} that fusing saves, {units.percent(r.fraction, 0)} of the time of the steps"
    ),
    why.SlowSteps: lambda r: (
        f"slow steps: they take {units.factor(r.ratio)} × the time that the roofs allow, so the fused variant also gains by "
        "better kernels"
    ),
    why.SlowFused: lambda r: (
        f"slow fused kernel: it takes {units.factor(r.ratio)} × the time that the roofs allow (limiter: {r.limiter})"
    ),
    why.Spills: lambda r: f"spills: a fused kernel keeps {r.local_memory_bytes} B of each thread in local memory",
    why.OtherKernels: lambda r: (
        f"other kernels: the product is by {r.unfused_backend} in the steps and by {r.fused_backend} in the fused variant"
    ),
    why.SeveralKernels: lambda r: f"several kernels: the fused variant has {count_launches(r.kernels, r.memsets)}",
    why.WideInterval: lambda r: (
        f"uncertain measurement: the interval of the measured speed-up is ± {units.percent(r.half_width, 0)}, so the prediction "
        "may be right"
    ),
    why.NotExplained: lambda r: "not explained by the facts that are known",
}


def format_bytes(number: int) -> Text:
    """A number of bytes in decimal units: moved bytes and sizes of tensors stand in the same tables.

    >>> str(format_bytes(2**28)), str(format_bytes(100))
    ('268 MB', '100 B')
    """
    return Text(units.rate(number, "B", 3))


def count_launches(launches: int, memsets: int = 0) -> str:
    """A number of launches with its noun, and how many of them are fills of memory.

    >>> count_launches(1), count_launches(12), count_launches(2, 1), count_launches(1, 1)
    ('1 launch', '12 launches', '2 launches (one of them a memset)', '1 launch (a memset)')
    """
    number = f"{launches:,} launch{'' if launches == 1 else 'es'}"
    if not memsets:
        return number
    if launches == memsets == 1:
        return f"{number} (a memset)"
    return f"{number} ({'one of them a memset' if memsets == 1 else f'{memsets} of them memsets'})"


def describe_reasons(reasons: Sequence[why.FusionReason]) -> tuple[Text, ...]:
    """Each reason why a prediction fails.

    >>> [str(text) for text in describe_reasons((why.Spills(64),))]
    ['spills: a fused kernel keeps 64 B of each thread in local memory']
    """
    return tuple(fill(_REASONS, reason) for reason in reasons)


def join_reasons(reasons: Sequence[why.FusionReason]) -> Text:
    """All reasons in one line; empty without one."""
    return Text("; ".join(map(str, describe_reasons(reasons))))


def format_steps(steps: Sequence[Step]) -> Text:
    """The steps of a composition in order, equal series with their number.

    >>> from kernelviz.core import Cost
    >>> cost = Cost(work_flop=1, read_bytes=1, written_bytes=1)
    >>> str(format_steps([Step(kind=k, cost=cost) for k in ("product", "sum", "relu", "product", "sum", "relu")]))
    '2 × (product → sum → relu)'
    >>> str(format_steps([Step(kind=k, cost=cost) for k in ("transposition", "relu")]))
    'transposition → relu'
    """
    kinds = [step.kind for step in steps]
    for length in range(1, len(kinds) // 2 + 1):
        if len(kinds) % length == 0 and kinds == kinds[:length] * (len(kinds) // length):
            once = " → ".join(STEPS[kind] for kind in kinds[:length])
            return Text(f"{len(kinds) // length} × ({once})")
    series = [(kind, len(list(same))) for kind, same in groupby(kinds)]
    return Text(" → ".join(STEPS[kind] if count == 1 else f"{count} × {STEPS[kind]}" for kind, count in series))


def format_speed_up(speed_up: Interval | None) -> Text:
    """A measured speed-up with its interval.

    >>> str(format_speed_up(Interval(2.0, 1.98, 2.02))), str(format_speed_up(None))
    ('2.00 × (1.98 to 2.02)', 'unknown')
    >>> str(format_speed_up(Interval(0.01315, 0.0129, 0.0134)))
    '0.0132 × (0.0129 to 0.0134)'
    """
    if speed_up is None:
        return Text("unknown")
    if speed_up.low is None or speed_up.high is None:
        return Text(f"{units.factor(speed_up.estimate)} × (no interval)")
    # The speed-up of a much slower fused variant is small: with two decimals it would have one digit.
    most = 2 if speed_up.estimate >= 0.1 else 4
    value, low, high = units.factor_with_interval(speed_up.estimate, speed_up.low, speed_up.high, most=most)
    return Text(f"{value} × ({low} to {high})")


def format_prediction(speed_up: float | None) -> Text:
    """A predicted speed-up.

    >>> str(format_prediction(1.5)), str(format_prediction(None))
    ('1.50 ×', 'unknown')
    """
    return Text("unknown" if speed_up is None else f"{units.factor(speed_up)} ×")


def describe_other_rounds(row: FusionRow) -> Text:
    """Why the speed-up is not the ratio of the two times as they are given; empty if it is."""
    if not row.by_other_rounds or row.ratio_of_times is None:
        return Text("")
    return Text(
        "The speed-up is that of rounds that measured both variants, or each beside the baseline. The two times are over all "
        f"rounds, in which the machine was not equally fast, so their ratio differs: {units.factor(row.ratio_of_times)} ×."
    )


def format_ratio_of_times(row: FusionRow) -> Text | None:
    """The ratio of the two times of a row where it is outside of the interval of the speed-up; None else."""
    if not row.by_other_rounds or row.ratio_of_times is None:
        return None
    return Text(f"{units.factor(row.ratio_of_times)} ×")


def format_measured(row: FusionRow) -> Text:
    """The speed-up of a row that shows both times too, with their ratio where it is outside of the interval."""
    of_times = format_ratio_of_times(row)
    return format_speed_up(row.speed_up) + ("" if of_times is None else f"; ratio of the two times: {of_times}")


def format_error(error: float | None) -> Text:
    """By how much the predicted speed-up is above or below the measured one. `error`: the logarithm of their ratio.

    >>> str(format_error(0.094)), str(format_error(-0.5)), str(format_error(-0.001)), str(format_error(None))
    ('+10 %', '−39 %', '0 %', 'unknown')
    >>> str(format_error(4.3))
    '+7,270 %'
    """
    if error is None:
        return Text("unknown")
    rounded = round(100 * math.expm1(error))
    return Text(f"{rounded:+,d} %".replace("-", "−") if rounded else "0 %")


def format_prediction_with_error(speed_up: float | None, error: float | None) -> Text:
    """A prediction, and by how much it is off where the speed-up was measured.

    >>> str(format_prediction_with_error(1.5, 0.094)), str(format_prediction_with_error(None, None))
    ('1.50 ×, error +10 %', 'unknown')
    """
    return format_prediction(speed_up) + ("" if error is None else f", error {format_error(error)}")


def describe_missing(missing: MissingFact) -> Text:
    """Why there is no prediction."""
    return Text(MISSING[missing])


def describe_launch_cost(cost: LaunchCost | None) -> Text:
    """What a launch costs, and where that is from.

    >>> str(describe_launch_cost(LaunchCost(0.9e-6, "empty_launch")))
    'A launch costs 900.0 ns: the slope of the recorded run of empty_launch on a GPU of this model.'
    """
    if cost is None:
        return Text("The cost of a launch was not measured, so there is no prediction B.")
    return Text(f"A launch costs {units.seconds(cost.time_s)}: {LAUNCH_SOURCES[cost.source]}.")


def describe_row(row: FusionRow) -> Text:
    """One sentence about a row: what is saved, and what that brings."""
    saved = (
        f"Fusing {format_steps(row.steps)} at {format_sizes(row.problem)} saves {format_bytes(row.saved.moved_bytes)} and "
        f"{count_launches(row.saved.launches, row.saved.memsets)}"
    )
    if row.fused is None:
        return Text(f"{saved}. No fused variant has a correct time here.")
    if row.speed_up is None:
        return Text(
            f"{saved}. The speed-up is unknown: a time is not stable, or rounds and times disagree on which is faster."
        )
    names = f"{format_variant(row.fused.variant)} over {format_variant(row.unfused.variant)}"
    if row.verdict is not None and row.verdict.kind == "slower":
        longer = units.factor(1 / row.speed_up.estimate)
        said = f"{saved}, but takes {longer} × as long: {format_speed_up(row.speed_up)} measured ({names})"
    else:
        said = f"{saved}: {format_speed_up(row.speed_up)} measured ({names})"
    predicted = [
        f"{units.factor(value)} × predicted {by}"
        for value, by in ((row.predicted_b, "by the time of the steps"), (row.predicted_a, "by the roofs alone"))
        if value is not None
    ]
    return Text(f"{said}, {', '.join(predicted)}." if predicted else f"{said}.")


def describe_split(fastest: FusionRow, other: FusionRow) -> Text:
    """How much of the gain over a slower composition is fusing, and how much is better kernels. Empty without both speed-ups, and
    if the other composition is about as fast."""
    better = other.unfused_figure.estimate / fastest.unfused_figure.estimate
    if fastest.speed_up is None or other.speed_up is None or better < 1 + _ALIKE:
        return Text("")
    return Text(
        f"Over {format_variant(other.unfused.variant)} the fused variant is {units.factor(other.speed_up.estimate)} × as fast. "
        f"Better kernels alone bring {units.factor(better)} × of that: {format_variant(fastest.unfused.variant)}, which also "
        f"launches one step after the other. Fusing them brings {units.factor(fastest.speed_up.estimate)} ×. "
        "Speed-ups by fusing are medians of ratios over rounds, and the factor of better kernels is the ratio of two times, so "
        "the product of the two factors need not be exactly the whole."
    )


_PAYOFFS: dict[str, Callable[[Payoff], str]] = {
    "everywhere": lambda p: f"Fusing pays at all {len(p.rows) - p.unclear} sizes of {p.axis} with a clear verdict",
    "nowhere": lambda p: f"Fusing pays at none of the {len(p.rows) - p.unclear} sizes of {p.axis} with a clear verdict",
    "from": lambda p: (
        f"Fusing pays from {p.axis} = {_size(p.first)} on, and stops paying at {p.axis} = {_size(p.stops_at)} and below"
    ),
    "up_to": lambda p: (
        f"Fusing pays up to {p.axis} = {_size(p.last)}, and stops paying at {p.axis} = {_size(p.stops_at)}"
    ),
    "between": lambda p: (
        f"Fusing pays from {p.axis} = {_size(p.first)} to {_size(p.last)}, and neither below nor above"
    ),
    "some": lambda p: (
        f"Fusing stops paying at {p.axis} = {' and '.join(map(_size, p.without_gain))}, and pays at the other "
        f"{len(p.rows) - p.unclear - len(p.without_gain)} sizes with a clear verdict, from {_size(p.first)} to {_size(p.last)}"
    ),
    "unknown": lambda p: f"Along {p.axis}, no comparison has a clear verdict",
}


def describe_payoff(payoff: Payoff) -> Text:
    """Where fusing pays along an axis, by the verdicts of the fused variant against the fastest composition."""
    unclear = (
        f"; {payoff.unclear} of {len(payoff.rows)} are unclear" if payoff.unclear and payoff.kind != "unknown" else ""
    )
    return Text(f"{_PAYOFFS[payoff.kind](payoff)}{unclear}.")


def format_line_sizes(problems: Sequence[Problem], axis: str) -> Text:
    """The sizes that all problems of a line along an axis have in common, and the axes that have the same sizes as that one.

    >>> line = [Problem(op="linear_relu", sizes={"m": m, "n": m, "k": 64}, dtype="bf16") for m in (128, 256)]
    >>> str(format_line_sizes(line, "m"))
    'n = m, k = 64'
    """
    first = problems[0].sizes
    alike = {name: len({p.sizes[name] for p in problems}) == 1 for name in first}
    return Text(
        ", ".join(
            f"{name} = {format_size(size)}" if alike[name] else f"{name} = {axis}"
            for name, size in first.items()
            if name != axis
        )
    )


def describe_sweep(line: Sequence[Problem], axis: str, selected: Problem) -> Text:
    """The heading of a sweep along an axis: its fixed sizes, and whether the selected sizes are in it.

    >>> line = [Problem(op="linear_relu", sizes={"m": m, "k": 64}, dtype="bf16") for m in (128, 256)]
    >>> str(describe_sweep(line, "m", line[0]))
    'Speed-up along m at k = 64'
    >>> str(describe_sweep(line, "m", Problem(op="linear_relu", sizes={"m": 128, "k": 8}, dtype="bf16")))
    'Speed-up along m at k = 64. This run has no sweep along m through the selected sizes, m = 128, k = 8'
    """
    fixed = str(format_line_sizes(line, axis))
    title = f"Speed-up along {axis}{f' at {fixed}' if fixed else ''}"
    if selected.key in [problem.key for problem in line]:
        return Text(title)
    return Text(f"{title}. This run has no sweep along {axis} through the selected sizes, {format_sizes(selected)}")


def describe_prediction_b(prediction: PredictionB) -> Text:
    """The parts of prediction B in one line."""
    return Text(
        f"{units.seconds(prediction.unfused_s)} measured, less {units.seconds(prediction.bytes_s)} for bytes at "
        f"{units.gigabytes_per_s(prediction.bandwidth_bytes_per_s)} and {units.seconds(prediction.launches_s)} for launches: "
        f"{units.seconds(prediction.fused_s)}"
    )


def _size(size: int | None) -> str:
    return "unknown" if size is None else format_size(size)
