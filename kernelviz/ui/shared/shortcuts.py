"""The keyboard shortcuts: what each key does, and on which page. The browser's part is page_tools.js."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What one or more keys do. With several keys, `{n}` in `target` is the number of the key, counted from 1.

    `action`: `press` and `focus` act on the first visible element that `target` selects, `open` opens the page whose path is
    `target`, `list` shows or closes the list of shortcuts, and `theme` takes the next theme.
    """

    keys: str
    text: str
    action: str
    target: str = ""


GENERAL = (
    Shortcut("?", "Show or close this list", "list"),
    Shortcut("t", "Next theme: light, dark, as the system", "theme"),
    Shortcut("/", "Go to the op (Bench) or to the search (History)", "focus", ".st-key-q input, .st-key-op input"),
)
BENCH = (
    Shortcut("r", "Run what the form says", "press", ".st-key-run button"),
    Shortcut("l", "Live mode on or off", "press", ".st-key-live_mode input"),
    Shortcut("s", "Share the run", "press", ".st-key-share_popover button"),
    Shortcut(
        "12345", "Chart by size: bandwidth, rate, time, speed-up, winner", "press", ".st-key-show button:nth-of-type({n})"
    ),
)  # fmt: skip


def page_letters(titles: Sequence[str]) -> tuple[str, ...]:
    """The letter of each page: the first one of its title that no other shortcut has. A page without one has "".

    >>> page_letters(("Bench", "Roofline", "Compare", "rlst"))
    ('b', 'o', 'c', '')
    """
    reserved = {key for shortcut in (*GENERAL, *BENCH) for key in shortcut.keys}
    letters: list[str] = []
    for title in titles:
        letter = next((c for c in title.lower() if c.isalpha() and c not in reserved), "")
        reserved.add(letter)
        letters.append(letter)
    return tuple(letters)


def groups(pages: Sequence[tuple[str, str]]) -> list[tuple[str, tuple[Shortcut, ...]]]:
    """All shortcuts by group, as the list shows them. `pages`: title and path of each page in the order of the navigation."""
    letters = page_letters([title for title, _ in pages])
    opening = tuple(
        Shortcut(letter, title, "open", path) for letter, (title, path) in zip(letters, pages, strict=True) if letter
    )
    return [("Everywhere", GENERAL), ("Pages", opening), ("On Bench", BENCH)]
