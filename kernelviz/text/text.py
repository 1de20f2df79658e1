"""Text for people: what facts become last, and what no code may look into.

A `Text` has no comparison, no search and no length, and is no `str`, so mypy refuses `text == "slower"`, `"slow" in text` and
`text.startswith("warm")`. Whoever needs to know what a text says asks the fact that it was made of. `str(text)` and f-strings
make a `str` of it at the edge: on a page, in a terminal, in a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final


@final
class Text:
    """Text for people, opaque to code.

    >>> f"{Text('2 blocks repeated')}."
    '2 blocks repeated.'
    >>> str(Text("a") + "b" + Text("c"))
    'abc'
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | Text) -> None:
        self._text = str(text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Text({self._text!r})"

    def __add__(self, other: str | Text) -> Text:
        return Text(f"{self}{other}")

    def __radd__(self, other: str) -> Text:
        return Text(f"{other}{self}")


def join(separator: str, parts: Iterable[str | Text]) -> Text:
    """The parts with the separator between them.

    >>> str(join("; ", [Text("one"), "two"]))
    'one; two'
    """
    return Text(separator.join(str(part) for part in parts))


def sentence_case(text: str | Text) -> Text:
    """The text with a capital letter at its beginning.

    >>> str(sentence_case("no round measured both"))
    'No round measured both'
    """
    said = str(text)
    return Text(said[:1].upper() + said[1:])


def on_one_line(text: str | Text) -> Text:
    """The text with every run of white space as one blank.

    >>> str(on_one_line("two\\n  lines"))
    'two lines'
    """
    return Text(" ".join(str(text).split()))
