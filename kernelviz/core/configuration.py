"""A configuration of a variant, as a name: ``triton_tuned[block=256,warps=4]``. Written and read here and nowhere else.

The values of kernelviz's own variants are whole numbers (`parted`). The parameters of another tool's kernel may also be numbers
with a fraction, true or false, and texts (`parameters`).
"""

import json
import math
import re
from collections.abc import Mapping

from kernelviz.core.errors import BadField

Value = int | float | bool | str
"""The value of a parameter."""

_NAME = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_BARE_TEXT = re.compile(r"[A-Za-z_][\w.+-]*", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,19}(\.\d{1,40})?([eE][+-]?\d{1,4})?", re.ASCII)
_CONSTANTS: Mapping[str, Value] = {"true": True, "false": False}
_FORM = "write VARIANT[parameter=number,…], as triton_tuned[block=256,warps=4]"


def configured_name(variant: str, configuration: Mapping[str, int]) -> str:
    """The name of a variant with these values, in the order given.

    >>> configured_name("triton_tuned", {"block": 256, "warps": 4})
    'triton_tuned[block=256,warps=4]'
    """
    return f"{variant}[{','.join(f'{key}={value}' for key, value in configuration.items())}]"


def parted(name: str) -> tuple[str, dict[str, int] | None]:
    """The variant and the values that a name holds; None where it names no configuration. Errors: BadField.

    >>> parted("triton_tuned[block=256,warps=4]"), parted("torch_eager")
    (('triton_tuned', {'block': 256, 'warps': 4}), ('torch_eager', None))
    """
    if "[" not in name and "]" not in name:
        return name, None
    match = _NAME.fullmatch(name.strip())
    if match is None:
        raise BadField("variant", name, _FORM)
    values: dict[str, int] = {}
    for part in match[2].split(","):
        key, _, text = map(str.strip, part.partition("="))
        if not key or key in values or not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise BadField("variant", name, _FORM)
        values[key] = int(text)
    return match[1].strip(), values


def parameter_name(kernel: str, values: Mapping[str, Value]) -> str:
    """The name of a kernel of another tool with the values of its parameters.

    >>> parameter_name("gemm", {"block": 128, "how": "alg_1", "fast": True, "scale": 0.5, "text": "a,b", "number": "1"})
    'gemm[block=128,how=alg_1,fast=true,scale=0.5,text="a\\\\u002cb",number="1"]'
    """
    return f"{kernel}[{','.join(f'{key}={_written(value)}' for key, value in values.items())}]"


def _written(value: Value) -> str:
    if isinstance(value, str) and _BARE_TEXT.fullmatch(value) and value not in (*_CONSTANTS, "null"):
        return value
    text = json.dumps(value)
    return re.sub(r"[\[\],=]", lambda match: f"\\u{ord(match[0]):04x}", text) if isinstance(value, str) else text


def parameters(name: str) -> dict[str, Value]:
    """The values that a name holds; empty where it holds none, or where they cannot be read.

    >>> parameters('gemm[block=128,how=alg_1,fast=true,scale=0.5,text="a\\\\u002cb",number="1"]')
    {'block': 128, 'how': 'alg_1', 'fast': True, 'scale': 0.5, 'text': 'a,b', 'number': '1'}
    >>> parameters("torch_eager"), parameters("k<int[4]>(x)"), parameters("k[a]"), parameters("k[a=1,a=2]")
    ({}, {}, {}, {})
    """
    match = _NAME.fullmatch(name.strip())
    if match is None:
        return {}
    values: dict[str, Value] = {}
    for part in match[2].split(","):
        key, separator, text = map(str.strip, part.partition("="))
        value = _read(text)
        if not key or not separator or key in values or value is None:
            return {}
        values[key] = value
    return values


def _read(text: str) -> Value | None:
    """The value of a text; None if it is no value."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _BARE_TEXT.fullmatch(text):
        return text
    if _NUMBER.fullmatch(text):
        number = json.loads(text) if text.lstrip("-").isdecimal() is False else int(text)
        return number if math.isfinite(number) else None
    try:
        value = json.loads(text) if text.startswith('"') else None
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def format_value(value: Value) -> str:
    """A value for people.

    >>> format_value(True), format_value(0.25), format_value("alg_1")
    ('true', '0.25', 'alg_1')
    """
    return value if isinstance(value, str) else json.dumps(value)


def base_name(name: str) -> str:
    """The variant of a name, whatever follows it: for what a document calls a variant.

    >>> base_name("triton_tuned[block=256]"), base_name("torch_eager"), base_name("void k<int[4]>(float)")
    ('triton_tuned', 'torch_eager', 'void k<int[4]>(float)')
    """
    match = _NAME.fullmatch(name)
    return match[1] if match else name


def split_names(text: str) -> list[str]:
    """Names between commas; those inside brackets part nothing.

    >>> split_names("torch_eager, triton_tuned[block=256,warps=4]")
    ['torch_eager', 'triton_tuned[block=256,warps=4]']
    """
    return [name.strip() for name in re.split(r",(?![^\[\]]*\])", text) if name.strip()]


def configuration_text(configuration: Mapping[str, Value]) -> str:
    """The values for people.

    >>> configuration_text({"block": 256, "warps": 4})
    'block=256, warps=4'
    """
    return ", ".join(f"{key}={format_value(value)}" for key, value in configuration.items())


def is_configuration(variant: str) -> bool:
    """Whether the name of a variant contains a configuration.

    >>> is_configuration("triton_tuned[block=256]"), is_configuration("torch_eager")
    (True, False)
    """
    return base_name(variant) != variant
