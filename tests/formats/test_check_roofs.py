"""A roof in a document from elsewhere has the quantity of its kind, and one that can be."""

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.errors import DocumentError
from kernelviz.core.run import Roof, Run
from kernelviz.formats.validation import checked

RUN = samples.run()


def with_roof(roof: Roof) -> Run:
    environment = msgspec.structs.replace(RUN.environment, roofs=(roof,))
    return msgspec.structs.replace(RUN, environment=environment)


@pytest.mark.parametrize(
    "roof",
    [
        Roof(name="launch", what="torch_call", time_s=4e-6, low=3e-6, high=5e-6),
        Roof(name="fma", precision="bf16", unit="vector", rate_flop_per_s=1e14),
        Roof(name="h2d", bandwidth_bytes_per_s=5e10, moved_bytes=2**28),
        Roof(name="read", level="l2", bandwidth_bytes_per_s=8e12, moved_bytes=2**24, low=7e12, high=9e12),
    ],
)
def test_a_roof_of_each_kind_passes(roof: Roof) -> None:
    checked(with_roof(roof))


@pytest.mark.parametrize(
    ("roof", "message"),
    [
        (Roof(name="launch", what="torch_call", bandwidth_bytes_per_s=1e9), "'launch' has a time"),
        (Roof(name="fma", bandwidth_bytes_per_s=1e9), "'fma' has a rate"),
        (Roof(name="h2d", rate_flop_per_s=1e9), "'h2d' has a rate"),
        (Roof(name="launch", time_s=0.0), "outside"),
        (Roof(name="launch", time_s=1e-6, high=float("inf")), "outside"),
        (Roof(name="read", bandwidth_bytes_per_s=1e9, moved_bytes=0), "outside"),
        (Roof(name="read", bandwidth_bytes_per_s=1e9, low=1e-6), "outside"),
        (Roof(name="read", bandwidth_bytes_per_s=1e9, time_s=-1.0), "outside"),
    ],
)
def test_what_cannot_be_is_refused(roof: Roof, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        checked(with_roof(roof))
