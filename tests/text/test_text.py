"""Text is opaque: mypy rejects comparing it or searching in it, and at run time it is not a `str`."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from mypy import api

from kernelviz.text.text import Text, join, on_one_line

ROOT = Path(__file__).parents[2]
ALLOWED = """
from kernelviz.text.text import Text, join

said = Text("slower")
shown: str = f"{said}: {join(', ', [said, 'x'])}"
longer: Text = said + " by 2 %"
as_str: str = str(said)
"""
REFUSED = {
    'said == "slower"': "comparison-overlap",
    '"slower" == said': "comparison-overlap",
    'said in ("slower", "faster")': "comparison-overlap",
    '"low" in said': "operator",
    'said < "x"': "operator",
    'said.startswith("slow")': "attr-defined",
    "said.split()": "attr-defined",
    "said[0]": "index",
    "len(said)": "arg-type",
    'said or "x"': "truthy-bool",
    "re.search('slow', said)": "call-overload",
    "plain: str = said": "assignment",
}


def test_mypy_refuses_to_look_into_text(tmp_path: Path) -> None:
    """One run of mypy over ten lines and the module of Text alone; the rules are those of the project."""
    lines = ["import re", "from kernelviz.text.text import Text", 'said = Text("slower")', *REFUSED]
    wrong, right = tmp_path / "looks_into_text.py", tmp_path / "shows_text.py"
    wrong.write_text("\n".join(lines) + "\n")
    right.write_text(textwrap.dedent(ALLOWED))
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"), "--no-pretty"]
    module = str(ROOT / "kernelviz" / "text" / "text.py")
    out, errors, _ = api.run([*config, "--follow-imports", "skip", module, str(wrong), str(right)])
    assert not errors
    found = {line.split(":")[1]: line for line in out.splitlines() if "error:" in line}
    assert not [line for line in out.splitlines() if "looks_into_text" not in line and "error:" in line]
    for number, (expression, code) in enumerate(REFUSED.items(), 4):
        assert f"[{code}]" in found.get(str(number), "no error"), (expression, out)


def test_text_has_nothing_of_a_str_but_that_it_can_be_shown() -> None:
    said = Text("two\n words")
    assert (f"{said}", str(said + "."), str(on_one_line(said))) == ("two\n words", "two\n words.", "two words")
    assert str(join("; ", [said, "x"])) == "two\n words; x"
    assert not isinstance(said, str)
    with pytest.raises(TypeError):
        _ = "two" in said  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = said < said  # type: ignore[operator]
