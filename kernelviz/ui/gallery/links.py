"""Links to many runs as HTML: a table is one element of the page, and as many links of Streamlit would be hundreds.

Every name is escaped, so that it is shown as it is written. The addresses are those of `site.run_link`, and start.js opens them
without loading the page again.
"""

from collections import defaultdict
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
        f"<h5>{escape(family.name.capitalize())} <small>{count}</small></h5>"
        f'<table><thead><tr><th scope="col">Op</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def further_runs(card: Card) -> str:
    """Links to the runs of the card's op that it does not show."""
    links = [
        _link(run, f"{_short(run.run.device)}{_backward(run)}{note}")
        for run, note in _noted(card.op.runs)
        if run in card.further
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
    """The runs of an op in order, each with the facts that tell it from the op's other runs of the same device and direction.

    Runs with equal facts have their names.
    """
    same = defaultdict(list)
    for run in runs:
        same[run.run.device, run.recording.direction].append(_facts(run))
    noted = []
    for run in _ordered(runs):
        alike = same[run.run.device, run.recording.direction]
        differ = [
            fact for fact, values in zip(_facts(run), zip(*alike, strict=True), strict=True) if len(set(values)) > 1
        ]
        if alike.count(_facts(run)) > 1:
            differ.append(run.run.id)
        noted.append((run, f" ({', '.join(differ)})" if differ else ""))
    return noted


def _facts(run: RecordedRun) -> tuple[str, ...]:
    recording = run.recording
    counts = units.counted(recording.sizes, "size"), units.counted(recording.variants, "variant")
    return (recording.dtype, *counts, run.run.created_at[:10])


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
