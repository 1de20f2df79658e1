"""Whether the name of a variant says its configuration."""

from kernelviz.core.configuration import base_name


def is_configuration(variant: str) -> bool:
    """Whether a name says a configuration.

    >>> is_configuration("triton_tuned[block=256]"), is_configuration("torch_eager")
    (True, False)
    """
    return base_name(variant) != variant
