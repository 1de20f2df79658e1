"""Variants that wait for the GPU suite can be loaded as a plug-in."""

from pathlib import Path

from kernelviz.ops import with_plugins

CANDIDATES = Path(__file__).parents[1] / "candidates"


def test_the_plug_ins_declare_their_variants() -> None:
    variants = with_plugins([str(CANDIDATES / name) for name in ("helion_variants.py", "matmul_split_k.py")])[
        "matmul"
    ].variants
    assert {"helion_pointers", "helion_descriptors", "cuda_wgmma_split_k"} <= {v.name for v in variants}
