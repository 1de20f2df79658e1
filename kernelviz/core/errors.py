"""Errors that a user can act on.

KernelvizError
├── UsageError            bad input: exit code 2, a message on the page
│   ├── UnknownName       no such op, variant, dtype, device …; names the nearest
│   ├── BadField          a field whose value cannot be used, with the remedy; BadSize for the size of an axis
│   └── DocumentError     a file that is not a kernelviz document, with the path of the field
├── UnknownRun            no run of that id in this store
├── DoesNotFit            a problem larger than the memory of the device
└── DeviceError           the device or its tools cannot be used, with the remedy
"""

import difflib
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar


class KernelvizError(Exception):
    """Base of every error that kernelviz raises on purpose."""


class UsageError(KernelvizError):
    """The input cannot be used as it is; the message says which field and what instead."""


MOST_KNOWN, MOST_ALIKE = 24, 6
"""So many known names are listed whole; of more, only those that are most like the unknown one."""


class UnknownName(UsageError):
    """A name that is not in a known set. Of a large set, the message has only the names that are most like it.

    >>> print(UnknownName("variant", "triton_blokc", ["triton_block", "torch_eager"], of="op 'add'"))
    no variant 'triton_blokc' of op 'add'; did you mean 'triton_block'? (known: triton_block, torch_eager)
    >>> print(UnknownName("axis", "rows-7", [f"row-{n}" for n in range(100)]))
    no axis 'rows-7'; did you mean 'row-7'? (of 100 known, most like it: row-7, row-97, row-87, row-79, row-78, row-77)
    """

    def __init__(self, what: str, name: str, known: Iterable[str], *, of: str = "") -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        self.nearest = nearest(name, self.known)
        owner = f" of {of}" if of else ""
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        super().__init__(f"no {what} {name!r}{owner}{hint} ({_listed(name, self.known)})")


def _listed(name: str, known: Sequence[str]) -> str:
    if len(known) <= MOST_KNOWN:
        return f"known: {', '.join(known) or 'none'}"
    alike = difflib.get_close_matches(name.lower(), known, n=MOST_ALIKE, cutoff=0.0)
    return f"of {len(known)} known, most like it: {', '.join(alike)}"


class BadField(UsageError):
    """A field whose value cannot be used.

    >>> print(BadField("budget", "-3", "give a number of seconds above 0"))
    budget: '-3' cannot be used; give a number of seconds above 0
    """

    def __init__(self, field: str, value: object, remedy: str) -> None:
        self.field, self.value, self.remedy = field, value, remedy
        super().__init__(f"{field}: {str(value)!r} cannot be used; {remedy}")


class BadSize(BadField):
    """The size of an axis that cannot be used.

    >>> print(BadSize("n", "-3", "give a whole number of at least 1"))
    size n: '-3' cannot be used; give a whole number of at least 1
    """

    def __init__(self, axis: str, value: object, remedy: str) -> None:
        self.axis = axis
        super().__init__(f"size {axis}", value, remedy)


class DocumentError(UsageError):
    """A file that cannot be read as a kernelviz document; `path` is the field, as in ``$.results[3].cost``, `reason` what is
    wrong with it."""

    def __init__(self, message: str, *, path: str = "$") -> None:
        self.path, self.reason = path, message
        super().__init__(f"{path}: {message}" if path != "$" else message)


class UnknownRun(KernelvizError):
    """No run of that id in this store. The message has the commands that help: `listing` says which ones list the runs that are
    here, and `export` writes a run to a file on the machine that has it.

    >>> for sentence in str(UnknownRun("r1")).split(". "):
    ...     print(sentence)
    no run 'r1' here: it was deleted, or measured on another machine
    `kernelviz runs` lists the runs of this machine, `kernelviz gallery` those that came with kernelviz
    On another machine, `kernelviz export RUN -o FILE` writes its run to a file, which `kernelviz import FILE` stores here.
    """

    subject: ClassVar[str] = "run"
    listing: ClassVar[str] = (
        "`kernelviz runs` lists the runs of this machine, `kernelviz gallery` those that came with kernelviz"
    )
    export: ClassVar[str] = "kernelviz export RUN -o FILE"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"no {self.subject} {run_id!r} here: it was deleted, or measured on another machine. {self.listing}. On another "
            f"machine, `{self.export}` writes its run to a file, which `kernelviz import FILE` stores here."
        )


class DoesNotFit(KernelvizError):
    """A problem that needs more memory than the device has free; nothing was allocated."""

    def __init__(self, needed_bytes: int, free_bytes: int, device: str) -> None:
        self.needed_bytes, self.free_bytes, self.device = needed_bytes, free_bytes, device
        super().__init__(
            f"needs {needed_bytes / 2**30:.2f} GiB (inputs, outputs and the reference), "
            f"{free_bytes / 2**30:.2f} GiB are free on {device}; choose smaller sizes"
        )


class DeviceError(KernelvizError):
    """The device, its driver or a tool that it needs cannot be used; the message holds the remedy."""


def one_line(error: BaseException, limit: int = 600) -> str:
    """Type and text of an error on one line, shortened; our own errors speak for themselves.

    >>> one_line(ValueError("no\\n  good")), one_line(ValueError("half a \\ud83d"))
    ('ValueError: no good', 'ValueError: half a \\\\ud83d')
    """
    text = _plain(error)
    return _cut(text if isinstance(error, KernelvizError) else f"{type(error).__name__}: {text}", limit)


def text_on_one_line(error: BaseException, limit: int = 600) -> str:
    """The text of an error on one line, shortened, without its type.

    >>> text_on_one_line(ValueError("no\\n  good"))
    'no good'
    """
    return _cut(_plain(error), limit)


def _plain(error: BaseException) -> str:
    # Half of a character that needs two (a lone surrogate) cannot be encoded: it would take the whole text with it.
    return " ".join(str(error).encode(errors="backslashreplace").decode().split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def check_name(what: str, name: str, known: Collection[str], *, of: str = "") -> None:
    """Raise UnknownName if the name is not a known one."""
    if name not in known:
        raise UnknownName(what, name, dict.fromkeys(known), of=of)


def nearest(name: str, known: Iterable[str], *, alike: float = 0.5) -> str | None:
    """The known name most like `name`, or None when none is at least so `alike`; 1 is the same name.

    >>> nearest("rmsnrom", ["add", "rmsnorm", "matmul"])
    'rmsnorm'
    >>> nearest("nope", ["add", "copy"]), nearest("nope", ["add", "copy"], alike=0.75)
    ('copy', None)
    """
    matches = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=alike)
    return matches[0] if matches else None
