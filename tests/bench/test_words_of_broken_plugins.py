"""What is said of a plug-in that is broken, once and by its own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelviz.core.errors import BadField
from kernelviz.worker.plugin_description import describe


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "it holds no variant; decorate a bind function"),
        ("raise ValueError('no good')", "importing it raised ValueError: no good"),
    ],
)
def test_the_file_and_its_fault_are_said_once(tmp_path: Path, source: str, said: str) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(
        "from kernelviz.ops import variant\n@variant(op='add', backend='torch')\ndef mine(x_N, y_N):\n    '''Mine.'''\n"
    )
    bad.write_text(source)
    with pytest.raises(BadField) as caught:
        describe((str(good), str(bad)))
    assert str(caught.value).startswith(f"plug-in: '{bad}' cannot be used; {said}")
    assert str(caught.value).count("cannot be used") == 1
