"""A container that is made anew finds the runs of the one before it, whose processes have ended with it."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec
import pytest

from kernelviz.store import Presence

COMPOSE = Path(__file__).parents[2] / "compose.yaml"


def hostnames() -> dict[str, str]:
    """The host name of each service."""
    services = COMPOSE.read_text().partition("\nservices:\n")[2].partition("\nvolumes:\n")[0]
    found = re.split(r"^  (\w+):\n", services, flags=re.MULTILINE)[1:]
    return {
        name: "".join(re.findall(r"^    hostname: (\S+)$", body, re.MULTILINE))
        for name, body in zip(*[iter(found)] * 2, strict=True)
    }


@pytest.mark.parametrize("service", ["gpu", "cpu"])
def test_a_service_made_anew_knows_that_its_processes_have_ended(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a host name in compose.yaml Docker names each container anew, by its id."""
    named = hostnames()[service]
    made = iter(["0a1b2c3d4e5f", "5f4e3d2c1b0a"])
    monkeypatch.setattr(socket, "gethostname", lambda: named or next(made))
    own = Presence.own()
    before = msgspec.structs.replace(own, started_s=own.started_s - 60)  # the same number is given in each container
    assert not before.alive()


def test_the_services_do_not_judge_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both may stand on one volume; the processes of one have other numbers in the other, or none."""
    gpu, cpu = hostnames()["gpu"], hostnames()["cpu"]
    monkeypatch.setattr(socket, "gethostname", lambda: gpu)
    own = Presence.own()
    monkeypatch.setattr(socket, "gethostname", lambda: cpu)
    assert msgspec.structs.replace(own, pid=2**22 + 1).alive()
