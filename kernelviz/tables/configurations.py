"""The columns of the configurations of a tuning, of what its parameters are worth, and of the stored tunings of one variant."""

from kernelviz.core import units
from kernelviz.core.configuration import Value, configuration_text, format_value
from kernelviz.metrics.configurations import Configuration, ConfigurationSpace
from kernelviz.metrics.parameter_effects import ParameterEffect
from kernelviz.metrics.transfer import Transfer
from kernelviz.tables.column import Column
from kernelviz.text import Text, format_sizes
from kernelviz.text.configurations import describe_worst_value, format_configuration_time, format_effect, format_state
from kernelviz.text.transfer import format_cell


def configuration_columns(space: ConfigurationSpace) -> list[Column[Configuration]]:
    """A column for each parameter, then time, what the configuration is, registers and spills."""
    return [
        *(_parameter(name) for name in space.parameters),
        Column(
            "", "Time", "Cold device time with its 95 % interval; of another tool, the time in its file.", units.OWN_TEXT,
            format_configuration_time, order=lambda c: c.time_s,
        ),
        _compared(space),
        Column("", "Result", "Whether it is correct, and why it has no time.", units.TEXT, format_state, width="large"),
        Column("", "Registers", "Registers of a thread: of its machine code, else as the driver allocates them.", units.COUNT,
               lambda c: c.registers, optional=True),
        Column("", "Spills", "Loads from and stores to local memory in its code.", units.COUNT, lambda c: c.spills,
               optional=True),
        Column("", "Tried", "Position in the search.", units.COUNT, lambda c: c.place),
    ]  # fmt: skip


def _parameter(name: str) -> Column[Configuration]:
    def value(configuration: Configuration) -> Text | None:
        known = configuration.values.get(name)
        return None if known is None else Text(format_value(known))

    return Column("", "", "", units.OWN_NUMBER, value, subject=name, order=lambda c: _order(c.values.get(name)))


def _compared(space: ConfigurationSpace) -> Column[Configuration]:
    if space.foreign:
        return Column("", "Of the fastest", "Its time over the shortest time of the file.", units.FACTOR,
                      lambda c: _of_best(space, c))  # fmt: skip
    return Column(
        "", "Speed-up", "Time of the default over its time, in the rounds that both share. The best is chosen by it among "
        "those of the final, and only if it is measurably faster than the default.", units.FACTOR, lambda c: c.speed_up,
    )  # fmt: skip


def _order(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _of_best(space: ConfigurationSpace, configuration: Configuration) -> float | None:
    best = space.best.time_s if space.best is not None else None
    return configuration.time_s / best if best and configuration.time_s else None


def effect_columns(space: ConfigurationSpace) -> tuple[Column[ParameterEffect], ...]:
    """What each parameter of a tuning is worth, and its value in the best configuration."""
    return (*_EFFECTS, Column("", "Best value", "Its value in the best configuration of the tuning.", units.TEXT,
                              lambda e: _best_value(space, e)))  # fmt: skip


_EFFECTS: tuple[Column[ParameterEffect], ...] = (
    Column("", "Parameter", "", units.TEXT, lambda e: e.name),
    Column("", "Explains", "Share of the variance of log time that its values explain alone.", units.OWN_NUMBER, format_effect),
    Column("", "Mean times", "Geometric means over the configurations with one value.", units.OWN_TEXT, describe_worst_value),
    Column("", "Spread", "Largest of these means over the smallest.", units.FACTOR, lambda e: e.spread if e.values else None),
)  # fmt: skip


def _best_value(space: ConfigurationSpace, effect: ParameterEffect) -> str | None:
    known = None if space.best is None else space.best.values.get(effect.name)
    return None if known is None else format_value(known)


def transfer_columns(matrix: Transfer) -> list[Column[int]]:
    """A row for each shape by its number: the configuration that was tuned for it, and how it does at every shape."""
    return [
        Column("", "Tuned for", "", units.TEXT, lambda a: format_sizes(matrix.tunings[a].problem)),
        Column("", "Configuration", "", units.TEXT, lambda a: configuration_text(matrix.tunings[a].configuration)),
        *(_at(matrix, b) for b in range(len(matrix.tunings))),
    ]


def _at(matrix: Transfer, b: int) -> Column[int]:
    sizes = str(format_sizes(matrix.tunings[b].problem))
    return Column("", "At", "", units.OWN_NUMBER, lambda a: format_cell(matrix.cells[a][b]), subject=sizes)
