"""Links to many runs as HTML: a table is one element of the page, and as many links of Streamlit would be hundreds.

Every name is escaped, so that it is shown as it is written. The addresses are those of `site.run_link`, and start.js opens them
without loading the page again.
"""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from kernelviz.bench.gallery import Card, Family, GalleryOp, RecordedRun, devices_of
from kernelviz.core import units


def table(family: Family) -> str:
    """A table of the runs of a family: a row for each op, a column for each device, and a link for each run."""
    runs = [run for one in family.ops for run in one.runs]
    devices = devices_of(runs)
    head = "".join(f'<th scope="col">{escape(_short(device))}</th>' for device in devices)
    rows = "".join(_row(one, devices) for one in family.ops)
    count = f"{units.counted(len(family.ops), 'op')}, {units.counted(len(runs), 'run')}"
    return (
        f"<h6>{escape(family.name.capitalize())} <small>{count}</small></h6>"
        f'<table><thead><tr><th scope="col">Op</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def other_runs(card: Card) -> str:
    """Links to the runs of the card's op that it does not show."""
    links = [
        _link(run, f"{_short(run.run.device)}{_backward(run)}{note}")
        for run, note in _noted(card.op.runs)
        if run in card.other_runs
    ]
    return f"<p>Other runs: {' · '.join(links)}</p>"


def _row(one: GalleryOp, devices: Sequence[str]) -> str:
    cells = dict.fromkeys(devices, "")
    for run, note in _noted(one.runs):
        cells[run.run.device] += f"{_link(run, f'{run.recording.direction}{note}')} "
    return (
        f'<tr><th scope="row">{escape(one.op.name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells.values())}</tr>'
    )


def _ordered(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """The runs of an op by device, and the forward pass first."""
    devices = devices_of(runs)
    return sorted(runs, key=lambda run: (devices.index(run.run.device), run.recording.direction == "backward"))


def _noted(runs: Sequence[RecordedRun]) -> list[tuple[RecordedRun, str]]:
    """The runs of an op in order, each with what tells it from the op's other runs of the same device and direction: as few facts
    as do, or the run's id."""
    noted = []
    for run in _ordered(runs):
        alike = [one for one in runs if _kind(one) == _kind(run)]
        chosen = next((few for few in _FACTS if len({few(one) for one in alike}) == len(alike)), _by_id)
        noted.append((run, f" ({chosen(run)})" if len(alike) > 1 else ""))
    return noted


def _kind(run: RecordedRun) -> tuple[str, str]:
    return run.run.device, run.recording.direction


def _by_variants(run: RecordedRun) -> str:
    return units.counted(run.recording.variants, "variant")


def _by_sizes(run: RecordedRun) -> str:
    return units.counted(run.recording.sizes, "size")


def _by_both(run: RecordedRun) -> str:
    return f"{_by_variants(run)}, {_by_sizes(run)}"


def _by_dtype(run: RecordedRun) -> str:
    return run.recording.dtype


def _by_date(run: RecordedRun) -> str:
    return run.run.created_at[:10]


def _by_id(run: RecordedRun) -> str:
    return run.run.id


_FACTS = (_by_variants, _by_sizes, _by_dtype, _by_both, _by_date)
"""What may tell two runs apart, the best first."""


def _link(run: RecordedRun, text: str) -> str:
    name = f"{run.run.op}, {run.run.device}: {text}"
    return f'<a href="?run={quote(run.run.id, safe="")}" aria-label="{escape(name)}">{escape(text)}</a>'


def _backward(run: RecordedRun) -> str:
    return " backward" if run.recording.direction == "backward" else ""


def _short(device: str) -> str:
    """The name of a device in a list, which has little space.

    >>> _short("NVIDIA H200")
    'H200'
    """
    return device.removeprefix("NVIDIA ")
