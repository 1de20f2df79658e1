"""The configurations of a tuning in text: one configuration, what each parameter is worth, and the sentence about all of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from kernelviz.core import units
from kernelviz.core.configuration import configuration_text, format_value
from kernelviz.metrics.configurations import NEARLY_COMPLETE, Configuration, ConfigurationSpace, ConfigurationState
from kernelviz.metrics.parameter_effects import FEWEST_EACH, EffectLimit, ParameterEffect, ParameterEffects
from kernelviz.metrics.quality import WIDE
from kernelviz.metrics.verdicts import VerdictKind
from kernelviz.text.failures import format_failure
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_problem, format_sizes
from kernelviz.text.text import Text, sentence_case

STATES: Mapping[ConfigurationState, Text] = MappingProxyType(
    {
        "measured": Text("correct"),
        "stopped": Text("correct, but stopped early"),
        "unchecked": Text("not checked"),
        "wrong": Text("wrong result"),
        "failed": Text("failed"),
        "refused": Text("not for such sizes"),
        "cancelled": Text("cancelled"),
    }
)
"""The state of a configuration."""
LIMITS: Mapping[EffectLimit, Text] = MappingProxyType(
    {
        "early": Text(f"not before {100 * NEARLY_COMPLETE:.0f} % of the planned configurations have a result"),
        "few": Text(f"too few configurations ({FEWEST_EACH} for each value are needed)"),
        "alike": Text("all times are alike"),
        "one_value": Text("the configurations have one value of it"),
    }
)
METHOD = Text(
    "The share of a parameter is the variance between the mean logarithms of time of its values, divided by the variance of "
    "all logarithms of time, over the configurations that are correct and have a time. What as many values would explain by "
    "chance is subtracted (epsilon squared). It is the effect of one parameter alone: what several do together "
    "(interactions) and noise are not in it. With a random sample of the space, the values of two parameters may occur "
    "together, and their shares overlap."
)
"""How the shares are made, and when they mislead."""


_IN_FINAL: Mapping[VerdictKind, str] = MappingProxyType(
    {
        "faster": "faster than the default",
        "same": "as fast as the default",
        "slower": "slower than the default",
        "unclear": "not known to be faster than the default",
    }
)
_WORTH_NAMING = 0.2
"""A parameter that explains less of the spread is not named in the sentence about a tuning."""
_MUCH_NOISE = 0.25
"""From this share of the spread on, the sentence says that it is noise."""


def format_state(configuration: Configuration) -> Text:
    """What the configuration is, on one line.

    >>> print(format_state(Configuration("t[b=1]", {"b": 1}, 1, "measured", 1e-5, is_best=True)))
    correct, best
    >>> tie = Configuration("t[b=2]", {"b": 2}, 2, "measured", 1e-5, 0.8e-5, 2e-5, in_final=True, verdict="same")
    >>> print(format_state(tie))
    correct, in the final: as fast as the default, wide interval
    """
    marks = [mark for mark, there in (("default", configuration.is_default), ("best", configuration.is_best)) if there]
    if configuration.in_final and not configuration.is_default and configuration.verdict is not None:
        marks.append(f"in the final: {_IN_FINAL[configuration.verdict]}")
    if configuration.wide:
        marks.append("wide interval")
    state = STATES[configuration.state]
    if configuration.failure is not None and configuration.state not in ("refused", "cancelled"):
        state = format_failure(configuration.failure)
    return state + "".join(f", {mark}" for mark in marks)


def describe_time(configuration: Configuration) -> Text:
    """The time of a configuration with its interval, or why it has none.

    >>> print(describe_time(Configuration("t[b=1]", {"b": 1}, 1, "measured", 1e-5, 0.99e-5, 1.02e-5)))
    10.00 µs (9.900 µs to 10.20 µs)
    >>> print(describe_time(Configuration("t[b=1]", {"b": 1}, 1, "stopped", 3e-5)))
    ≈ 30.0 µs: the estimate of one block, stopped early
    """
    time_s = configuration.time_s
    if time_s is None:
        return format_state(configuration)
    if configuration.state == "stopped":
        return Text(f"≈ {units.seconds(time_s, 3)}: the estimate of one block, stopped early")
    if configuration.state == "unchecked":
        return Text(f"{units.seconds(time_s)}, by another tool, not checked")
    if configuration.low_s is None or configuration.high_s is None:
        return Text(units.seconds(time_s))
    return Text(
        f"{units.seconds(time_s)} ({units.seconds(configuration.low_s)} to {units.seconds(configuration.high_s)})"
    )


def format_configuration_time(configuration: Configuration) -> Text:
    """The time for a table that has another column for what the configuration is.

    >>> print(format_configuration_time(Configuration("k[b=1]", {"b": 1}, 1, "unchecked", 1e-5)))
    10.00 µs
    """
    if configuration.time_s is None:
        return Text("–")
    if configuration.state == "unchecked":
        return Text(units.seconds(configuration.time_s))
    if configuration.state == "stopped":
        return Text(f"≈ {units.seconds(configuration.time_s, 3)} (one block)")
    return describe_time(configuration)


def format_share(share: float | None) -> Text:
    """
    >>> str(format_share(0.1234)), str(format_share(0.002)), str(format_share(None))
    ('12 %', '< 1 %', 'unknown')
    """
    if share is None:
        return Text("unknown")
    return Text("< 1 %" if share < 0.01 else f"{100 * share:.0f} %")


def format_effect(effect: ParameterEffect) -> Text:
    """The share of a parameter, or why it has none."""
    return format_share(effect.share) if effect.limit is None else LIMITS[effect.limit]


def configuration_insight(space: ConfigurationSpace, effects: ParameterEffects) -> Text:
    """The sentence about a tuning: the best configuration and its gain, what matters most, and what has no time."""
    best = space.best
    if best is None or best.time_s is None:
        tried = len([c for c in space.configurations if c.state not in ("refused", "cancelled")])
        none = "No configuration is correct" if tried else "No configuration has a result yet"
        return Text(f"{none}{f' so far, of {tried} that were tried' if tried else ''}.")
    parts = [f"{_best(space, best)}."]
    parts += _describe_spread(effects)
    if space.untimed:
        wrong = sum(c.state == "wrong" for c in space.untimed)
        count = len(space.untimed)
        parts.append(f"{count} {'has' if count == 1 else 'have'} no time{f', {wrong} of them wrong' if wrong else ''}.")
    return Text(" ".join(parts))


def _describe_spread(effects: ParameterEffects) -> list[str]:
    """What the spread of the times comes from, if that is known: a parameter, or nothing that one parameter explains."""
    shares = [e for e in effects.parameters if e.share is not None]
    if not shares or effects.factor is None:
        return []
    first = max(shares, key=lambda e: e.share or 0.0)
    spread = f"from the fastest to the slowest of {effects.count}, times differ by {_factor(effects.factor)}×"
    if (first.share or 0.0) >= _WORTH_NAMING:
        said = [f"{sentence_case(spread)}; {first.name} explains {format_share(first.share)} of this spread."]
    else:
        rest = (
            "" if effects.rest is None else f" {format_share(effects.rest)} is what parameters do together, and noise."
        )
        said = [
            f"{sentence_case(spread)}, and no parameter alone explains more than {format_share(max(first.share or 0.0, 0.01))} "
            f"of this spread.{rest}"
        ]
    if effects.noise is not None and effects.noise >= _MUCH_NOISE:
        said.append(f"By their intervals, about {format_share(effects.noise)} of it is noise of the single times.")
    return said


def describe_failed(space: ConfigurationSpace) -> Text:
    """How many configurations have no time, and how many were not tried."""
    refused = sum(c.state == "refused" for c in space.configurations)
    parts = []
    if space.untimed:
        parts.append(f"{_counted(len(space.untimed))} no time")
    if refused:
        parts.append(f"{refused} {'was' if refused == 1 else 'were'} not tried")
    return Text(" and ".join(parts) or "No configuration failed")


def _counted(count: int) -> str:
    return f"{count} configuration has" if count == 1 else f"{count} configurations have"


def _best(space: ConfigurationSpace, best: Configuration) -> str:
    values = configuration_text(best.values)
    time = units.seconds(best.time_s)
    if space.foreign:
        return f"Fastest by its file: {values}, {time}; nobody checked the results here"
    if best.is_default:
        return f"No configuration is measurably faster than the default, {values}, {time}"
    return f"Best: {values}, {time}{_gain(space)}"


def _gain(space: ConfigurationSpace) -> str:
    gain = space.gain
    if gain is None:
        return ", and the default has no time"
    return f", {format_speed_up(gain.estimate, gain.low, gain.high)}"


def format_speed_up(estimate: float, low: float | None, high: float | None) -> Text:
    """How many times faster a configuration is than the default; below 1 it is slower.

    >>> print(format_speed_up(1.158, 1.156, 1.16), format_speed_up(1.25, None, None), format_speed_up(0.8, None, None), sep=", ")
    1.158× faster than the default (1.156–1.160), 1.25× faster than the default, 1.25× slower than the default
    """
    verdict = "slower" if estimate < 1 else "faster"
    if estimate < 1:
        estimate, low, high = 1 / estimate, 1 / high if high else None, 1 / low if low else None
    if low is None or high is None:
        return Text(f"{units.factor(estimate)}× {verdict} than the default")
    factor, first, last = units.factor_with_interval(estimate, low, high)
    return Text(f"{factor}× {verdict} than the default ({first}–{last})")


def _factor(factor: float) -> str:
    return f"{factor:.3g}" if factor < 100 else f"{factor:,.0f}"


def describe_worst_value(effect: ParameterEffect) -> Text:
    """The values of a parameter with the shortest and the longest mean time."""
    if len(effect.values) < 2:
        return Text("")
    fastest, slowest = (pick(effect.values, key=lambda v: v.mean_s) for pick in (min, max))
    return Text(
        f"mean time from {units.seconds(fastest.mean_s, 3)} at {format_value(fastest.value)} "
        f"to {units.seconds(slowest.mean_s, 3)} at {format_value(slowest.value)}"
    )


def describe_heading(space: ConfigurationSpace) -> Text:
    """Variant, problem and device."""
    problem, name = space.problem, format_variant(space.variant)
    if space.foreign:
        sizes = format_sizes(problem)
        return Text(f"{name}{f', {sizes}' if sizes else ''}, number format unknown, {space.device}, by another tool")
    return Text(f"{name}, {format_problem(problem)}, {space.device}")


def describe_registers(space: ConfigurationSpace) -> Text:
    """How many configurations spill, and what that goes with."""
    known = [c for c in space.timed if c.registers is not None]
    if not known:
        return Text(
            "The registers of no configuration with a time are known: no code was captured, and no GPU was traced."
        )
    least, most = (pick(c.registers or 0 for c in known) for pick in (min, max))
    span = f"{least} registers per thread" if least == most else f"{least} to {most} registers per thread"
    read = [c for c in known if c.spills is not None]
    spilling = [c for c in known if c.spilled]
    if not spilling:
        what = "and none spills" if read else "and whether they spill is not known"
        return Text(f"{len(known)} configurations use {span}, {what}.")
    fastest = min(spilling, key=lambda c: c.time_s or 0.0)
    best = space.best.time_s if space.best is not None else None
    ratio = f", {(fastest.time_s or 0.0) / best:.3g}× the time of the best" if best else ""
    return Text(
        f"{len(known)} configurations use {span}. {len(spilling)} use local memory (spills); the fastest of these takes "
        f"{units.seconds(fastest.time_s)}{ratio}."
    )


def describe_counts(space: ConfigurationSpace) -> Text:
    """How many configurations have a time, and what the others are."""
    counts: dict[ConfigurationState, int] = {}
    for configuration in space.configurations:
        counts[configuration.state] = counts.get(configuration.state, 0) + 1
    listed = "; ".join(
        f"{counts[state]} {text}" for state, text in STATES.items() if state in counts and state != "cancelled"
    )
    done = len(space.configurations) - counts.get("cancelled", 0)
    wide = sum(c.wide for c in space.timed)
    noisy = (
        f" {wide} of the times {'has' if wide == 1 else 'have'} an interval wider than ±{100 * WIDE:.0f} %, so that "
        "they decide little."
        if wide
        else ""
    )
    admitted = "" if space.admitted in (None, space.space) else f", of which {space.admitted:,} fit these sizes"
    return Text(
        f"{done} of {space.planned} planned configurations have a result: {listed or 'none yet'}. "
        f"The space has {units.counted(space.space, 'configuration')}{admitted}.{noisy}"
    )


def record(space: ConfigurationSpace, effects: ParameterEffects) -> dict[str, Any]:
    """The configurations of a tuning and what its parameters are worth, as plain values in SI units."""
    return {
        "run": space.run_id,
        "variant": space.variant,
        "problem": msgspec.to_builtins(space.problem),
        "device": space.device,
        "space": space.space,
        "admitted": space.admitted,
        "planned": space.planned,
        "measured_by": space.figure or "kernelviz",
        "best": dict(space.best.values) if space.best is not None else None,
        "insight": str(configuration_insight(space, effects)),
        "parameters": [
            {
                "name": effect.name,
                "share": effect.share,
                "why_unknown": str(LIMITS[effect.limit]) if effect.limit is not None else None,
                "values": [
                    {"value": v.value, "count": v.count, "best_s": v.best_s, "mean_s": v.mean_s} for v in effect.values
                ],
            }
            for effect in effects.parameters
        ],
        "unexplained_share": effects.rest,
        "noise_share": effects.noise,
        "configurations": [configuration_record(c) for c in space.configurations],
    }


def configuration_record(configuration: Configuration) -> dict[str, Any]:
    """A configuration as plain values: its parameters, then its outcome."""
    return {
        **configuration.values,
        "state": configuration.state,
        "in_final": configuration.in_final,
        "speed_up": configuration.speed_up,
        "time_s": configuration.time_s,
        "time_low_s": configuration.low_s,
        "time_high_s": configuration.high_s,
        "is_default": configuration.is_default,
        "is_best": configuration.is_best,
        "registers": configuration.registers,
        "spills": configuration.spills,
        "failure": None if configuration.failure is None else str(format_failure(configuration.failure)),
    }
