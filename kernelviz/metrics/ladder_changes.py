"""What changed from step to step of a ladder."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelviz.core.code_changes import CodeChanges
from kernelviz.metrics.source_changes import SourceChanges


@dataclass(frozen=True, slots=True)
class LadderChanges:
    """What changed in each step against the step that it is compared with, by variant. A is that step, and B is this one. `code`
    is empty where the machine code was not read."""

    sources: Mapping[str, SourceChanges] = field(default_factory=dict)
    code: Mapping[str, CodeChanges] = field(default_factory=dict)

    @property
    def sources_known(self) -> bool:
        """Whether the source of some step could be compared."""
        return any(changes.unknown is None for changes in self.sources.values())

    @property
    def code_known(self) -> bool:
        """Whether the machine code of some step could be compared."""
        return any(changes.known for changes in self.code.values())
