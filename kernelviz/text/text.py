"""Text for people. It is made of facts at the very end, and no code may look into it.

A `Text` has no comparison, no search and no length, and it is not a `str`, so mypy refuses `text == "slower"`, `"slow" in text`
and `text.startswith("warm")`. Code that needs to know what a text says asks the fact that the text was made of. `str(text)` and
f-strings convert it to a `str` where it leaves the program: on a page, in a terminal, in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, final


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


Template = str | Callable[[Any], "str | Text"]
"""The text of one class of facts: a format string in which ``{0.name}`` is a field of the fact, or a function of the fact."""


def fill(templates: Mapping[type, Template], fact: object) -> Text:
    """The text of a fact, by the template of its class.

    >>> str(fill({complex: "{0.real:g} and {0.imag:g} i"}, 1 + 2j))
    '1 and 2 i'
    """
    template = templates[type(fact)]
    return Text(template.format(fact) if isinstance(template, str) else template(fact))


def join(separator: str, parts: Iterable[str | Text]) -> Text:
    """The parts that are not empty, with the separator between them.

    >>> str(join("; ", [Text("one"), "", "two"]))
    'one; two'
    """
    return Text(separator.join(filter(None, map(str, parts))))


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
