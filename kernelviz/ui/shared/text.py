"""Text from files, links and plug-ins is shown literally: never as Markdown, never as HTML."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from kernelviz.bench import RunSummary

_Key = TypeVar("_Key", bound=Hashable)
_SPECIAL = re.compile(r"([\\`*_\[\]<>$~:&#|])")
_STILL_READ = re.compile(
    r"(?i)(?<=http:)(?=//)|(?<=https:)(?=//)|(?<=www)(?=\.)|(?<=@)(?=[\w-])|(?<=:)(?=[-+\w/]+:)(?!\d\d:)"
)
"""Inside an address, of which Streamlit makes a link, and a name between colons, of which it makes an icon or an emoji. It does
so after Markdown was read, so escaping their characters does not help."""
_NO_WIDTH = "\u2060"
"""The character "word joiner", which has no width. It ends such an address or name, and a line is not broken at it."""
_MARK = re.compile(r"^([-+=])")
"""Characters that make a list or a heading, but only at the beginning of a line."""
_LIST_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")
_DATE = re.compile(r"(?i)(?!.*www)(?:[0-9A-Za-z./+, -]|:(?=[0-9])){1,40}")
"""A date in any format: nothing in it is Markdown, and no name stands between colons, which would be an icon."""


def plain(text: object) -> str:
    """`text` on one line, with every character escaped that Streamlit's Markdown would interpret. An address becomes no
    link, and a name between colons no icon.

    Other characters are not escaped, because a screen reader reads the backslashes in a widget's label aloud.

    >>> print(plain("<b>x</b> $y$ :red[z] (m = 4)"))
    \\<b\\>x\\</b\\> \\$y\\$ \\:red\\[z\\] (m = 4)
    """
    line = _STILL_READ.sub(_NO_WIDTH, " ".join(str(text).split()))
    return _LIST_NUMBER.sub(r"\1\\\2", _MARK.sub(r"\\\1", _SPECIAL.sub(r"\\\1", line)))


def bullets(sentences: Iterable[object]) -> str:
    """A list in Markdown, in which each sentence is plain text.

    >>> print(bullets(["one", "*two*"]))
    - one
    - \\*two\\*
    """
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def when(stamp: str | None, now: datetime | None = None) -> str:
    """A stored time for display, in the server's time zone. Another date, in a file of another tool, is shown as it stands; what
    Markdown could interpret is unknown.

    >>> when("2026-11-21T10:42:00+00:00", datetime(2026, 11, 21, 12, tzinfo=UTC)).startswith("today ")
    True
    >>> when(None), when("[yesterday](https://x)"), when("08/02/16-17:44:46"), when("9999-12-31T23:59:59-14:00")
    ('at an unknown time', 'at an unknown time', '08/02/16-17:44:46', '9999-12-31T23:59:59-14:00')
    """
    try:
        moment = datetime.fromisoformat(stamp or "").astimezone()
    except (ValueError, OverflowError):  # OverflowError: a time zone moves a time out of the years 1 to 9999
        return stamp if stamp and _DATE.fullmatch(stamp) else "at an unknown time"
    today = (now or datetime.now(UTC)).astimezone().date()
    return f"{'today' if moment.date() == today else moment.strftime('%Y-%m-%d')} {moment.strftime('%H:%M')}"


def run_label(run: RunSummary) -> str:
    """A run on one line: its name, its device unless the name says it, and when it was measured or that it came with
    kernelviz."""
    origin = "came with kernelviz" if run.shipped else when(run.created_at)
    device = "" if run.device.removeprefix("NVIDIA ") in run.name else f" · {run.device}"
    return f"{run.name}{device} · {origin}"


def distinct_labels(keys: Iterable[_Key], label: Callable[[_Key], object]) -> Callable[[_Key], str]:
    """The labels of the options of a box, with the key after a label that several options have.

    Streamlit finds the chosen option by its label: of two options with one label it would take the first.

    >>> label = distinct_labels(["r1", "r2", "r3"], {"r1": "add, 11:00", "r2": "add, 11:00", "r3": "add, 12:00"}.__getitem__)
    >>> [label(key) for key in ("r1", "r2", "r3")]
    ['add, 11:00 · r1', 'add, 11:00 · r2', 'add, 12:00']
    """
    labels = {key: str(label(key)) for key in keys}
    uses = Counter(labels.values())

    def distinct(key: _Key) -> str:
        text = labels.get(key)
        return str(label(key)) if text is None else f"{text} · {key}" if uses[text] > 1 else text

    return distinct


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown. The cells are Markdown too.

    >>> print(markdown_table(("a", "b"), [("1", "2")]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))
