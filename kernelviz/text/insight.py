"""The one sentence about a run, and the alternative text of its small chart."""

from collections.abc import Callable

from kernelviz.core import units
from kernelviz.metrics.insight import Insight
from kernelviz.metrics.rows import Quantity
from kernelviz.metrics.sketch import Sketch
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_size
from kernelviz.text.text import Text, sentence_case

QUANTITIES: dict[Quantity, str] = {"bandwidth": "bandwidth", "rate": "arithmetic rate", "time": "time"}
_UNITS: dict[Quantity, Callable[[float], str]] = {
    "bandwidth": lambda value: units.rate(value, "B/s", 3),
    "rate": lambda value: units.rate(value, "FLOP/s", 3),
    "time": lambda value: units.seconds(value, 3),
}


def describe_insight(insight: Insight | None) -> Text:
    """Which variant is fastest, where, and by how much.

    >>> print(describe_insight(Insight(variant="cuda_row", span="from", axes=("n",), first=8192, last=2**17, wins=5, sizes=11,
    ...     rival="torch_compile", ratio=1.84, ratio_sizes=5, variants=6)))
    cuda row is fastest from n = 8,192 on, on average 1.84× over torch compile
    >>> print(describe_insight(Insight(variant="a", span="some", wins=3, sizes=10, rival="b", ratio=1.78, ratio_sizes=3,
    ...     variants=4, as_many_wins=("c",), best="d")))
    a is fastest at 3 of 10 sizes, there on average 1.78× over b; c wins as many; best overall: d
    >>> print(describe_insight(Insight(variant=None, span="none", sizes=3, tied_with=("a", "b"), variants=2)))
    a and b tie at all 3 sizes
    >>> print(describe_insight(Insight(variant=None, span="none", sizes=2, unclear=2, tied_with=("a", "b"), variants=2)))
    which of a or b is fastest is unclear at both sizes
    """
    if insight is None:
        return Text("no case has a correct time")
    if insight.variant is None:
        return Text(_tie(insight))
    name = format_variant(insight.variant)
    if insight.variants == 1:
        return Text(f"{name} is the only variant with a correct time")
    within = _ties_and_unclear(insight.tied, insight.unclear_in_span)
    tied = f" except for {within}" if within else ""
    many = insight.undecided * 2 > insight.sizes
    ties = f"{_most_undecided(insight)}; " if many else ""
    return Text(f"{ties}{name} is fastest {_where(insight)}{tied}{_by_how_much(insight)}{_more_winners(insight)}")


def insight_sentence(insight: Insight | None) -> Text:
    """`describe_insight` as a sentence. The name of a variant at its beginning gets no capital letter.

    >>> print(insight_sentence(Insight(variant="cuda_row", span="all", sizes=1, variants=2)))
    cuda row is fastest at the only size.
    >>> print(insight_sentence(None))
    No case has a correct time.
    """
    said = describe_insight(insight) + "."
    names = () if insight is None else (insight.variant, *insight.tied_with)
    return said if any(name and str(said).startswith(format_variant(name)) for name in names) else sentence_case(said)


def _ties_and_unclear(undecided: int, unclear: int) -> str:
    """
    >>> _ties_and_unclear(1, 0), _ties_and_unclear(3, 2), _ties_and_unclear(0, 0)
    ('1 tie', '1 tie and 2 unclear sizes', '')
    """
    ties = undecided - unclear
    parts = [units.counted(ties, "tie")] if ties else []
    return " and ".join([*parts, *([units.counted(unclear, "unclear size")] if unclear else [])])


def _most_undecided(insight: Insight) -> str:
    if not insight.unclear:
        return f"{insight.undecided} of {insight.sizes} sizes are ties"
    return f"no clear winner at {insight.undecided} of {insight.sizes} sizes"


def _tie(insight: Insight) -> str:
    if not insight.tied_with:
        return f"no variant is clearly fastest at any of {units.counted(insight.sizes, 'size')}"
    *most, last = map(format_variant, insight.tied_with)
    where = units.all_of(insight.sizes, "size")
    if most and insight.unclear == insight.sizes:
        return f"which of {', '.join(most)} or {last} is fastest is unclear at {where}"
    if most and insight.unclear:
        counts = f"unclear at {insight.unclear}, tied at {insight.sizes - insight.unclear}"
        return f"{', '.join(most)} or {last} may be fastest at {where} ({counts})"
    return f"{units.enumerated((*most, last))} tie at {where}" if most else f"{last} may be fastest at {where}"


def _where(insight: Insight) -> str:
    axes = " = ".join(insight.axes)
    match insight.span:
        case "all":
            return f"at {units.all_of(insight.sizes, 'size')}"
        case "some" | "none":
            return f"at {insight.wins} of {insight.sizes} sizes"
        case "between" if insight.first != insight.last:
            return f"from {axes} = {_size(insight.first)} to {_size(insight.last)}"
        case "from" if insight.first != insight.last:
            return f"from {axes} = {_size(insight.first)} on"
        case "up_to" if insight.first != insight.last:
            return f"up to {axes} = {_size(insight.last)}"
        case _:
            return f"at {axes} = {_size(insight.first)}"


def _size(size: int | None) -> str:
    return "unknown" if size is None else format_size(size)


def _by_how_much(insight: Insight) -> str:
    if insight.rival is None or insight.ratio is None:
        return ""
    mean = "on average " if insight.ratio_sizes > 1 else ""
    there = "there " if insight.span == "some" else ""
    return f", {there}{mean}{units.factor(insight.ratio)}× over {format_variant(insight.rival)}"


def _more_winners(insight: Insight) -> str:
    """Variants that win as many sizes, and the best one overall where it is another one, as the tiles of the run say."""
    equal = list(map(format_variant, insight.as_many_wins))
    parts = []
    if equal:
        parts.append(f"{' and '.join(equal)} {'wins' if len(equal) == 1 else 'win'} as many")
    if insight.best is not None:
        parts.append(f"best overall: {format_variant(insight.best)}")
    return "".join(f"; {part}" for part in parts)


def describe_sketch(sketch: Sketch, insight: Insight | None) -> Text:
    """The alternative text of the small chart."""
    if not sketch.lines:
        return Text("no chart: no case has a correct time")
    lines = len({line.variant for line in sketch.lines})
    chart = f"{QUANTITIES[sketch.quantity]} of {units.counted(lines, 'variant')} by {' = '.join(sketch.axes)}"
    return Text(f"Small chart: {chart}. {describe_insight(insight)}.")


def format_quantity(quantity: Quantity, value: float) -> str:
    """A value of the chart with its unit.

    >>> format_quantity("bandwidth", 4.1e12), format_quantity("time", 2e-6)
    ('4.10 TB/s', '2.00 µs')
    """
    return _UNITS[quantity](value)
