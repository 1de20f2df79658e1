"""View parameters: set by widgets, and repeated in the address unless they have their default value."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device
from kernelviz.core.errors import nearest
from kernelviz.metrics.figures import Headline
from kernelviz.ui.shared import address_messages, callbacks
from kernelviz.ui.shared.text import distinct_labels, plain

_Option = TypeVar("_Option", bound=str)
ALL = "all"
"""The value of a box that restricts nothing."""
LEAST_ALIKE = 0.75
"""An unknown value of the address is taken for a known one that is so like it: a letter or two of a name may be wrong."""
MOST_NAMED = 12
"""The values of an address parameter are named where there are so many at most."""


def choose(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[_Option],
    default: _Option,
    *,
    key: str,
    always_named: bool = False,
    **look: Any,
) -> _Option:
    """Draw `st.selectbox` or `st.segmented_control`, whose value the address repeats under `key`; returns the value.

    `always_named`: the address names the default too, because it depends on the machine. `look`: further arguments of the widget.
    """
    seed(key, options, default)
    chosen: _Option = widget_with_value(widget, label, options, key=key, **look) or default
    address_messages.draw(key)
    if always_named:
        write(key, chosen)
    else:
        keep(key, chosen, default)
    return chosen


def choose_or_all(
    label: str,
    options: Sequence[str],
    every: str,
    *,
    key: str,
    width: int = 240,
    texts: Mapping[str, str] | None = None,
) -> str | None:
    """Draw a box with these options below one that restricts nothing, which reads `every`; returns None for that one. `texts`:
    what options are called, where it is not their value."""
    named = {} if texts is None else texts
    chosen = choose(
        st.selectbox, label, [ALL, *options], ALL, key=key, width=width,
        format_func=lambda name: every if name == ALL else named.get(name, name),
    )  # fmt: skip
    return None if chosen == ALL else chosen


def choose_row(label: str, texts: Mapping[str, str], *, key: str) -> str | None:
    """Draw a box with a line for each row of a table, by what names the row in the address; returns None while none is chosen. A
    row that the table does not list any more is not chosen any more."""
    if st.session_state.get(key) not in (None, ALL, *texts):
        st.session_state[key] = ALL
    chosen = choose(
        st.selectbox, label, [ALL, *texts], ALL, key=key, width="stretch",
        format_func=lambda name: "none (choose one here, or a row of the table)" if name == ALL else texts[name],
    )  # fmt: skip
    return None if chosen == ALL else chosen


def widget_with_value(
    widget: Callable[..., Any], label: str, options: Sequence[_Option], *, key: str, **look: Any
) -> _Option | None:
    """Draw `st.selectbox` or `st.segmented_control` with the value that the session has under `key`; returns the value.

    Streamlit sends the value of a widget only in the redraw that sets it, and the browser may skip that redraw. A widget that it
    then draws for the first time, or again, shows its default, so each redraw sends the present value as the default. Unlike
    a value, a default never undoes a click that is on its way. Not for a box that can be cleared: Streamlit would fill it again.

    A choice of the user ends the messages about the address.
    """
    value = st.session_state.get(key)
    look["on_change"] = address_messages.remove_all
    if widget is st.segmented_control:
        look["required"] = True
    if "format_func" in look:
        look["format_func"] = distinct_labels(options, look["format_func"])
        _send_changed_label(key, options, look["format_func"])
    if value in options:
        look |= {"default": value} if widget is st.segmented_control else {"index": options.index(value)}
    chosen: _Option | None = widget(label, options, key=key, **look)
    return chosen


def _send_changed_label(key: str, options: Sequence[str], label: Callable[[str], str]) -> None:
    """Send the value of the widget again if its label has changed: a browser stores the label, and would show the old one."""
    value, label_key = st.session_state.get(key), f"{key}_label"
    if not isinstance(value, str) or value not in options:
        return
    before, now = st.session_state.get(label_key), (value, label(value))
    if before is not None and before[0] == value and before != now:
        st.session_state[key] = value
    st.session_state[label_key] = now


def device_choice(bench: Bench) -> Device:
    """The device that the page is about; the box appears if there are several. The address repeats it as `on`."""
    ids = [d.id for d in bench.devices()]
    if len(ids) == 1:
        return bench.device(bench.default_device())
    chosen = choose(
        st.segmented_control, "Device", ids, bench.default_device(), key="on",
        format_func=lambda i: f"{bench.device(i).name} ({i})",
    )  # fmt: skip
    return bench.device(chosen)


def l2_control(
    key: str = "l2", *, cache: str, label_visibility: Literal["visible", "collapsed"] = "collapsed"
) -> Headline:
    """Whether the page shows times with flushed caches (cold) or with data left in them (warm); the address repeats it under
    `key`. `cache`: what the device's cache is called."""
    headlines: tuple[Headline, ...] = get_args(Headline)
    return choose(
        st.segmented_control, "Cache state", headlines, "cold", key=key, label_visibility=label_visibility,
        format_func=lambda name: f"{name} {cache}",
        help="Cold: the caches are flushed before each call. Warm: calls repeat on the same data, which stay in the cache if "
        "they fit.",
    )  # fmt: skip


def seed(key: str, options: Sequence[str], default: str) -> None:
    """Set the value of the widget `key` before it is drawn: the value of the address, else the default. For an unknown value,
    a message is stored (`address_messages.draw` shows it), and the nearest option is used. The widget follows another address
    in the open page, as of the Back button.

    Until the user chooses a value, the widget follows its default, which may change while a run is measured."""
    value, followed = st.session_state.get(key), f"{key}_followed"
    if value is not None and moved(key):
        st.session_state.pop(followed, None)
        if value != st.query_params.get(key):
            callbacks.replaced(key, value)
        value = None
    if value is not None and value != st.session_state.get(followed) and not callbacks.is_stale(key, value):
        st.session_state.pop(followed, None)
    if value in options and (value == default or followed not in st.session_state):
        return
    if value is not None:
        callbacks.replaced(key, value)
    param = st.query_params.get(key) if value is None else None
    used = param if param in options else default
    if value is None:
        address_messages.remove(key)
    else:
        address_messages.follow(key, value, used)
    if param is not None and param not in options:
        used = nearest(param, options, alike=LEAST_ALIKE) or default
        known = ", ".join(options) if len(options) <= MOST_NAMED else "the values that this page knows"
        typed = st.session_state.get(f"{key}_typed", key)
        address_messages.store(key, f"In the address, {typed} {param!r} is not among {known}", used)
    if used == default:
        st.session_state[followed] = default
    st.session_state[key] = used


def adopt(short: str, key: str) -> None:
    """Read the short name of a parameter that a person may type, `op` for `of_op`, as the name that the page uses."""
    value = st.query_params.pop(short, None)
    if value is not None and key not in st.query_params:
        st.query_params[key] = value
        st.session_state[f"{key}_typed"] = short


def forget(*keys: str) -> None:
    """Remove values of widgets that belong to what the page showed before, from the session and from the address."""
    for key in keys:
        st.session_state.pop(key, None)
        write(key, None)


def report_unknown(known: Sequence[str]) -> None:
    """Name the parameters of the address that this page does not have: they are ignored."""
    unknown = [key for key in st.query_params if key not in known]
    if unknown:
        names = ", ".join(plain(repr(key)) for key in unknown)
        st.caption(f":orange[In the address, {names} is ignored: this page knows {plain(', '.join(known))}]")


def keep(key: str, value: str | None, default: str) -> None:
    """Write the value of the widget into the address; remove it if it is the default."""
    write(key, None if value == default else value)


def write(key: str, value: str | None) -> None:
    """Write a value of the page into the address; None removes it. `moved` then knows that the page wrote it."""
    present = st.query_params.get(key, "")
    if present != (value or ""):
        callbacks.replaced(f"address_{key}", present)
    st.session_state[f"written_{key}"] = value or ""
    if value is None:
        st.query_params.pop(key, None)
    elif present != value:
        st.query_params[key] = value


def moved(key: str) -> bool:
    """Whether the address holds another value than this page wrote last: the browser's Back button, or a typed change."""
    present = st.query_params.get(key, "")
    return present != st.session_state.get(f"written_{key}", present) and not callbacks.is_stale(
        f"address_{key}", present
    )


def follow(clicks: Mapping[str, str | None], pending: str) -> None:
    """Show the case that was clicked since the last redraw. `clicks`: the selection of each chart or table, by the key under
    which the session remembers it. The next redraw finds the clicked case in the session state under `pending`."""
    for name, selection in clicks.items():
        if st.session_state.get(name) == selection:
            continue
        st.session_state[name] = selection
        if selection is not None and selection != st.session_state.get("case"):
            st.session_state[pending] = selection
            st.rerun()
