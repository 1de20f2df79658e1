"""A configuration of a variant, as a name: ``triton_tuned[block=256,warps=4]``. Written and read here and nowhere else."""

import re
from collections.abc import Mapping

from kernelviz.core.errors import BadField

_NAME = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
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


def configuration_text(configuration: Mapping[str, int]) -> str:
    """The values for people.

    >>> configuration_text({"block": 256, "warps": 4})
    'block=256, warps=4'
    """
    return ", ".join(f"{key}={value}" for key, value in configuration.items())


def is_configuration(variant: str) -> bool:
    """Whether the name of a variant contains a configuration.

    >>> is_configuration("triton_tuned[block=256]"), is_configuration("torch_eager")
    (True, False)
    """
    return base_name(variant) != variant
