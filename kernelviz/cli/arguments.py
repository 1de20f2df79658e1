"""Reading of options that hold several values in one text: sizes and lists of names."""

from collections.abc import Sequence
from typing import get_args

import typer

from kernelviz.core import BadField, FigureName
from kernelviz.core.configuration import split_names


def parse_sizes(sizes: Sequence[str] | None, sweeps: Sequence[str] | None = None) -> dict[str, str]:
    """The text of each axis, from ``m=4096`` and ``n=2^10..2^28``. Errors: BadField for a text without "=" or a repeated axis.

    >>> parse_sizes(["m=4096"], ["n=2^10..2^28"])
    {'m': '4096', 'n': '2^10..2^28'}
    """
    by_axis: dict[str, str] = {}
    for option, texts in (("--size", sizes or ()), ("--sweep", sweeps or ())):
        for text in texts:
            axis, equals, value = text.partition("=")
            axis = axis.strip()
            if not (equals and axis and value.strip()):
                raise BadField(option, text, "write an axis and its sizes, as m=4096 or n=2^10..2^20")
            if axis in by_axis:
                raise BadField(option, text, f"axis {axis!r} is given twice; write several sizes as {axis}=64,128")
            by_axis[axis] = value.strip()
    return by_axis


def parse_names(text: str | None, option: str = "--variants") -> tuple[str, ...] | None:
    """Names from ``a,b[block=64,warps=4]``, without repeats. None if the option was not given. Errors: BadField if it is empty.

    >>> parse_names("torch_eager, triton_block,torch_eager")
    ('torch_eager', 'triton_block')
    """
    if text is None:
        return None
    names = tuple(dict.fromkeys(split_names(text)))
    if not names:
        known = ", ".join(get_args(FigureName)) if option == "--figures" else "`kernelviz ops` lists them"
        raise BadField(option, text, f"name at least one {option[2:].removesuffix('s')}; {known}")
    return names


def options_on_command_line(context: typer.Context) -> list[str]:
    """The options that the user typed, for example `--size`, whatever their values are."""
    typed = [
        p
        for p in context.command.params
        if (s := context.get_parameter_source(p.name or "")) and s.name == "COMMANDLINE"
    ]
    return [max(p.opts, key=len) for p in typed if p.param_type_name == "option"]
