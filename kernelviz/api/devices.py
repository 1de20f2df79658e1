"""What is known of GPUs: the data sheets of their makers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz import bench as use_cases
from kernelviz.api.report import frame
from kernelviz.bench import data_sheets as known

if TYPE_CHECKING:
    import pandas as pd


def data_sheets(search: str = "", *, order: str = "bandwidth") -> pd.DataFrame:
    """The data sheets of all GPUs that kernelviz knows, one row for each, in SI base units; cards of this machine come first.

    search: words that must all occur in name, architecture, source or device. order: ``name``, ``bandwidth``, ``l2`` or a
    precision, for example ``bf16``. ``measured_…``: the highest roof that was measured on such a card of this machine, or in a
    run that comes with kernelviz (``measured_on``); None is unknown. Errors: UnknownName for an order that does not exist.
    """
    return frame(known.records(known.data_sheets(use_cases.current(), search, order=order)))
