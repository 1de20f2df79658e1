"""The text beside the progress bar of a run that waits."""

import pytest

from kernelviz.bench import Progress
from kernelviz.core.run import Status
from kernelviz.ui.shared.live_progress import _message


@pytest.mark.parametrize(
    ("status", "ahead", "message", "said"),
    [
        ("queued", 0, "", "position 1 in the queue: next"),
        ("queued", 1, "", "position 2 in the queue: 1 problem of other runs first"),
        ("running", 46, "", "position 47 in the queue: 46 problems of other runs first"),
        ("running", 0, "", ""),
        ("running", 0, "starting a worker: first run", "starting a worker: first run"),
    ],
)
def test_a_run_that_waits_says_its_place(status: Status, ahead: int, message: str, said: str) -> None:
    progress = Progress(status=status, done=0, failed=0, total=1, ahead=ahead, message=message, steps={}, sequence=0)
    assert _message(progress) == said
