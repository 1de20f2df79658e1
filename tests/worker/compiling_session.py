"""The real session of a processor, in whose worker other processes compile for an H200."""

from kernelviz.measure.compile_ahead.messages import DeviceFacts
from kernelviz.measure.compile_ahead.processes import CompilesAhead
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.measure.session.environment import device_of
from kernelviz.measure.timing.host import HostTimer
from kernelviz.ops import with_plugins
from tests.sample_gpu_facts import H200


class CompilingSession(DeviceSession):
    def compile_with(
        self, compilers: CompilesAhead, plugins: tuple[str, ...], facts: DeviceFacts | None = None
    ) -> None:
        super().compile_with(compilers, plugins, H200)


def open_session(device: str, plugins: tuple[str, ...]) -> CompilingSession:
    return CompilingSession(device_of(device), with_plugins(plugins), HostTimer(2**20))
