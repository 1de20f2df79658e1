"""The restoring of inputs that a call changes."""

from collections.abc import Sequence

from torch import Tensor

from kernelviz.measure.timing.timer import Timed


class Restore:
    """Restores inputs that a call changes."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._pristine = [t.clone() for t in tensors]

    def remember(self) -> None:
        """Save the tensors' current values as those to restore."""
        for tensor, original in zip(self._tensors, self._pristine, strict=True):
            original.copy_(tensor)

    def __call__(self) -> None:
        for tensor, original in zip(self._tensors, self._pristine, strict=True):
            tensor.copy_(original)


def remember(timed: Timed) -> None:
    """Save the current values of the inputs that the call declares it changes, as those to restore."""
    restore = timed.launches[0].restore
    if isinstance(restore, Restore):
        restore.remember()
