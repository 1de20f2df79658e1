"""Variants that wait for the GPU suite can be loaded as a plug-in."""

from pathlib import Path

from kernelviz.ops import with_plugins

CANDIDATES = Path(__file__).parents[1] / "candidates"


def test_the_plug_in_declares_its_variants() -> None:
    variants = with_plugins([str(CANDIDATES / "helion_variants.py")])["matmul"].variants
    assert {"helion_pointers", "helion_descriptors"} <= {v.name for v in variants}
