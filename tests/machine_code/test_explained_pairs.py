"""docs/why.md is true: the tables are those of kernels that are compiled now, and of the committed runs."""

from __future__ import annotations

import re

import pytest
from marked_kernels import HAS_TOOLS

pytest.importorskip("triton")
pytest.importorskip("cuda.core")
import explained_pairs as pairs

pytestmark = [
    pytest.mark.skipif(not HAS_TOOLS, reason="nvdisasm is not installed"),
    pytest.mark.xdist_group("compile-0"),
]
TEXT = pairs.DOCUMENT.read_text()


@pytest.mark.parametrize("block", list(pairs.BLOCKS))
def test_a_table_of_the_document_is_what_the_code_gives_now(block: str) -> None:
    match = pairs.block_pattern(block).search(TEXT)
    assert match is not None
    assert match[2].rstrip("\n") == pairs.BLOCKS[block](), (
        "write it again: python tests/machine_code/explained_pairs.py"
    )


def test_addresses_in_the_text_hold_the_instructions_that_it_names() -> None:
    """Each address in brackets after an opcode, or of a branch, is that of such an instruction in one of the pair's kernels."""
    sections = re.split(r"^## (\w+):", TEXT, flags=re.MULTILINE)[1:]
    named = 0
    for pair, section in zip(sections[::2], sections[1::2], strict=True):
        kernels = pairs.kernels_of(pair)
        for opcode, first in re.findall(r"`([A-Z][A-Z0-9]+(?:\.[A-Z0-9]+)*)[^`]*`(?: at|,) (0x[0-9a-f]+)", section):
            at = int(first, 16)
            opcodes = [one.opcode for k in kernels for one in k.instructions if one.address == at]
            assert any(one.startswith(opcode) for one in opcodes), f"{pair}: {opcode} at {first}, there is {opcodes}"
            named += 1
    assert named >= 10
