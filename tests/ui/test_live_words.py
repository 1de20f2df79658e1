"""The text beside the progress bar of a run that waits."""

import pytest

from kernelviz.bench import Progress
from kernelviz.core.run import Status
from kernelviz.ui.shared.live_progress import _message


@pytest.mark.parametrize(
    ("status", "ahead", "message", "said"),
    [
        ("queued", 0, "", "next in the queue"),
        ("queued", 1, "", "1 job ahead in the queue; users alternate"),
        ("running", 46, "", "46 jobs ahead in the queue; users alternate"),
        ("running", 0, "", ""),
        ("running", 0, "starting the measuring process: first run", "starting the measuring process: first run"),
    ],
)
def test_a_run_that_waits_says_its_place(status: Status, ahead: int, message: str, said: str) -> None:
    progress = Progress(status=status, done=0, failed=0, total=1, ahead=ahead, message=message, steps={}, sequence=0)
    assert _message(progress) == said
