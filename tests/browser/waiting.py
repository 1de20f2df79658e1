"""Playwright's `expect`, without a description of the page after each look.

Playwright looks several times a second. After each look at which the element is not there, it describes the whole page as a
screen reader would, in case that was the last look: 0.1 to 0.2 s of processor time on Bench. `expect` here first waits for the
element.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any, cast, overload

from playwright.sync_api import Locator, LocatorAssertions, Page, PageAssertions, TimeoutError
from playwright.sync_api import expect as playwright_expect

TIMEOUT_MS = 20_000
"""Two cores that also compile: a page that is ready in 2 s alone may take 10 s here."""
playwright_expect.set_options(timeout=TIMEOUT_MS)
ABSENT = ("to_have_count", "to_be_hidden", "not_to_be_visible", "not_to_be_attached", "not_to_be_in_viewport")
"""What can be true of an element that is not there."""


@overload
def expect(actual: Page) -> PageAssertions: ...
@overload
def expect(actual: Locator) -> LocatorAssertions: ...
def expect(actual: Page | Locator) -> PageAssertions | LocatorAssertions:
    return cast("PageAssertions | LocatorAssertions", _Patient(actual))


class _Patient:
    """The assertions of a page or an element, each of which waits first. What it waits for in vain, the assertion reports."""

    def __init__(self, actual: Page | Locator) -> None:
        self._actual = actual

    def __getattr__(self, name: str) -> Callable[..., None]:
        assertion = getattr(playwright_expect(self._actual), name)

        def wait_and_assert(*expected: Any, **options: Any) -> None:
            timeout_ms = options.get("timeout", TIMEOUT_MS)
            with contextlib.suppress(TimeoutError):
                if isinstance(self._actual, Page):
                    _wait_for_page(self._actual, name, expected[0], timeout_ms)
                elif name not in ABSENT and options.get("visible", True):
                    state = "visible" if name == "to_be_visible" else "attached"
                    self._actual.first.wait_for(state=state, timeout=timeout_ms)  # type: ignore[arg-type]
            assertion(*expected, **options)

        return wait_and_assert


def _wait_for_page(page: Page, assertion: str, expected: object, timeout_ms: float) -> None:
    if assertion == "to_have_url" and isinstance(expected, re.Pattern):
        page.wait_for_url(expected, timeout=timeout_ms, wait_until="commit")
    if assertion == "to_have_title":
        page.wait_for_function("title => document.title === title", arg=expected, timeout=timeout_ms, polling=50)
