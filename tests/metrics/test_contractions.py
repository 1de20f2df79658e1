"""Metrics know which ops are matrix products without looking up the catalogue."""

from kernelviz.metrics.roofline import CONTRACTIONS
from kernelviz.ops import catalogue


def test_every_op_of_the_family_of_matrix_products_is_known_as_one() -> None:
    assert {op.name for op in catalogue().values() if op.family == "matrix product"} == CONTRACTIONS
