"""The request of a run before it is checked: one object for pages, command line and Python."""

from kernelviz.core.problem import Struct


class RunRequest(Struct, frozen=True, kw_only=True):
    """What to measure, as a user writes it. None selects the default of the op.

    `sizes`: by axis as text (``4096``, ``2^10..2^14``); they replace those of the `preset`. `variants`: None selects those
    available on the device. `device`: ``cuda:0`` or ``cpu``; None selects the first usable GPU, else the CPU. `plugins`: files
    with own variants, in addition to those of the server.
    """

    op: str
    sizes: dict[str, str] | None = None
    preset: str | None = None
    variants: tuple[str, ...] | None = None
    dtype: str | None = None
    compute: str | None = None
    direction: str = "forward"
    data: str = "normal"
    baseline: str | None = None
    device: str | None = None
    plugins: tuple[str, ...] = ()
