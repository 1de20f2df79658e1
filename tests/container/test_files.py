"""The container's files against the code: nothing runs here, see docs/deploy.md for a machine with an engine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import yaml

from kernelviz.hardware.folders import folders
from kernelviz.ops.nvrtc import cache_folder
from kernelviz.store import home
from kernelviz.ui.routes import routes

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def environment() -> dict[str, str]:
    """What the image sets, by variable."""
    joined = DOCKERFILE.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.startswith("ENV ")]
    return dict(pair.split("=", 1) for line in lines for pair in line.removeprefix("ENV ").split())


def test_the_app_runs_as_a_user_of_a_fixed_id_below_tini() -> None:
    assert "useradd --uid 10001" in DOCKERFILE
    users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert users == ["kernelviz"]
    assert DOCKERFILE.index("USER kernelviz") < DOCKERFILE.index("ENTRYPOINT")
    assert 'ENTRYPOINT ["tini", "--"]' in DOCKERFILE


def test_the_health_check_asks_the_route_that_there_is() -> None:
    (check,) = re.findall(r"HEALTHCHECK .*?CMD (\[.*?\])\n", DOCKERFILE, re.DOTALL)
    assert routes()[0].path == "/api/health"
    assert "/api/health" in check


def test_the_folders_of_the_image_are_those_that_the_code_writes(monkeypatch: object) -> None:
    given = environment()
    volumes = re.findall(r'^VOLUME \["(.*)", "(.*)"\]', DOCKERFILE, re.MULTILINE)[0]
    assert given["KERNELVIZ_HOME"] == volumes[0]
    for variable in ("KERNELVIZ_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert given[variable].startswith(volumes[1])
    before = dict(os.environ)
    os.environ.update(given | {"PATH": before["PATH"]})
    try:
        assert str(home()) == volumes[0]
        assert str(cache_folder()).startswith(volumes[1])
        assert {"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"} <= set(map(str, folders(os.environ, home(), "cuda")))
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_compose_publishes_on_loopback_only_and_keeps_data() -> None:
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert {v.split(":")[0] for v in service["volumes"]} == set(COMPOSE["volumes"])
    (device,) = COMPOSE["services"]["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia"


def test_what_is_built_from_is_sent_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().split("\n")
    assert "*" in lines
    copied = [w for line in DOCKERFILE.splitlines() if line.startswith("COPY ") for w in line.split()[1:-1]]
    sent = [line[1:] for line in lines if line.startswith("!")]
    for name in copied:
        assert any(s == name or s.startswith(f"{name}/") for s in sent), name
