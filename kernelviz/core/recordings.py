"""Facts about the recorded runs and the code beside those of the package."""

import msgspec


class RecordingsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The archive that belongs to this version. `runs`: how many it adds. `code_of`: of how many recorded runs it has the code.
    `cards`: the devices of the runs that it adds, by name."""

    url: str
    sha256: str
    size_bytes: int
    runs: int
    code_of: int
    cards: tuple[str, ...] = ()
