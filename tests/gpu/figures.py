"""Where GPU checks put the figures they measured: KERNELVIZ_GPU_FIGURES names a folder, a JSON file a check."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from kernelviz.core import Figure, Run
from kernelviz.formats import document


def known(figure: Figure | None) -> Figure:
    """The figure, which must have been measured."""
    assert figure is not None
    return figure


ROOT = Path(__file__).parents[2]


def record(name: str, figures: object) -> None:
    """Keep the figures of a check; without the variable they are only printed."""
    folder = os.environ.get("KERNELVIZ_GPU_FIGURES")
    text = json.dumps(figures, indent=1, default=str).replace(f"{ROOT}/", "")
    print(f"{name}: {text}")  # noqa: T201
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.json").write_text(text)


def record_some(name: str, figures: Mapping[str, object]) -> None:
    """Keep a part of a check's figures beside those that other tests, also in other processes, kept under the same name."""
    folder = os.environ.get("KERNELVIZ_GPU_FIGURES")
    if not folder:
        record(name, figures)
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder) / f"{name}.json"
    with (Path(folder) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = json.loads(file.read_text()) if file.exists() else {}
        record(name, known | dict(figures))


def save(run: Run, name: str) -> None:
    """Keep a document in the folder ``documents`` beside the figures, to be looked at on a machine without a GPU."""
    folder = os.environ.get("KERNELVIZ_GPU_FIGURES")
    if folder:
        documents = Path(folder) / "documents"
        documents.mkdir(parents=True, exist_ok=True)
        (documents / name).write_bytes(document.encode(run))
