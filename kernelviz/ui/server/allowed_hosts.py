"""The names under which the server may be asked, and the other sites whose pages may ask it.

DNS rebinding: a page of rebound.example lets its name resolve to 127.0.0.1, and then it has the same origin as this server. Only
the Host header shows it, because the browser sends the name by which the page was opened. So each name that someone else could
own is refused.
"""

import ipaddress
import logging
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from streamlit import config

VARIABLE = "KERNELVIZ_ALLOWED_HOSTS"
_LOGGER = logging.getLogger(__name__)
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9_-][a-z0-9._-]{0,252})(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_PATTERN = re.compile(r"\*|(\*\.)?[a-z0-9_-][a-z0-9._-]{0,252}|[0-9a-f:.]{2,45}", re.ASCII)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Host:
    """A Host header, or the same part of an Origin. `name`: in small letters, an IPv6 address without brackets."""

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The host; None if it is not one.

        >>> Host.parse("LocalHost.:8501")
        Host(name='localhost', port=8501)
        >>> Host.parse("[::1]")
        Host(name='::1', port=None)
        >>> Host.parse("user@localhost"), Host.parse("")
        (None, None)
        """
        match = _HOST.fullmatch(text.lower())
        if match is None:
            return None
        port = int(match["port"]) if match["port"] else None
        return cls(match["name"].strip("[]").removesuffix("."), port)


@dataclass(frozen=True, slots=True)
class Origin:
    """The site of a page: scheme, host and port."""

    scheme: str
    name: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The origin; None for "null", and for what a browser does not send.

        >>> Origin.parse("https://kernels.example.org")
        Origin(scheme='https', name='kernels.example.org', port=443)
        >>> Origin.parse("null")
        """
        scheme, separator, rest = text.partition("://")
        host = Host.parse(rest) if separator and scheme in _PORTS else None
        return None if host is None else cls(scheme, host.name, host.port or _PORTS[scheme])

    def is_of(self, host: Host) -> bool:
        """Whether this is the origin of the pages of that host. A proxy with TLS passes on the host without its port 443.

        >>> Origin("https", "kernels.example.org", 443).is_of(Host("kernels.example.org", None))
        True
        >>> Origin("http", "localhost", 8502).is_of(Host("localhost", 8501))
        False
        """
        return (self.name, self.port) == (host.name, host.port or _PORTS[self.scheme])


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Which hosts and origins are answered.

    `patterns`: names, addresses, "*.example.org" for the names below a domain, or "*" for any. `addresses`: whether any IP
    address is allowed, and not only those of the loopback interface. `origins`: other sites whose pages may ask.
    """

    patterns: frozenset[str] = frozenset()
    addresses: bool = False
    origins: frozenset[Origin] = frozenset()

    def allow_host(self, host: Host) -> bool:
        """Whether the server may be asked under this name. The port does not matter: tunnels and containers change it.

        >>> AllowedHosts(frozenset({"*.example.org"})).allow_host(Host("gpu.example.org", 443))
        True
        >>> AllowedHosts().allow_host(Host("localhost", 18501)), AllowedHosts().allow_host(Host("192.0.2.1", 8501))
        (True, False)
        """
        address = _address(host.name)
        if host.name == "localhost" or (address is not None and (address.is_loopback or self.addresses)):
            return True
        domains = host.name.split(".")
        below = {f"*.{'.'.join(domains[start:])}" for start in range(1, len(domains))} if address is None else set()
        return not self.patterns.isdisjoint({"*", host.name, *below})

    def allow_origin(self, origin: Origin | None, host: Host) -> bool:
        """Whether a page of this origin may ask the server under this name. None: the origin of no site, as of a file."""
        return origin is not None and (origin.is_of(host) or origin in self.origins)


def configured() -> AllowedHosts:
    """What the settings of the server allow.

    A server that listens on the loopback interface is reached by the names of that interface. Another one is also reached by the
    names of the machine and by any IP address. An address cannot be rebound, because a browser sends it only if it connected to
    that address. The server cannot know it behind the published port of a container.
    """
    listens_on = str(config.get_option("server.address") or "")
    named = [listens_on] if listens_on else []
    if config.is_manually_set("browser.serverAddress"):
        named.append(str(config.get_option("browser.serverAddress")))
    named += config.get_option("server.allowedHosts")
    named += os.environ.get(VARIABLE, "").replace(",", " ").split()
    is_local = _is_loopback(listens_on)
    names = _patterns(named) | (frozenset() if is_local else machine_names(socket.gethostname()))
    origins = (
        Origin.parse(text.strip().lower().rstrip("/")) for text in config.get_option("server.corsAllowedOrigins")
    )
    return AllowedHosts(names, addresses=not is_local, origins=frozenset(o for o in origins if o is not None))


def machine_names(name: str) -> frozenset[str]:
    """The names under which other machines know this one.

    The name to which its address resolves is not one of them, because the owner of the address chooses that name.

    >>> sorted(machine_names("GPU7.example.org"))
    ['gpu7', 'gpu7.example.org', 'gpu7.local']
    """
    short = name.lower().partition(".")[0]
    return _patterns([name, short, f"{short}.local"]) if short else frozenset()


def _patterns(named: Iterable[str]) -> frozenset[str]:
    """The patterns, from names as people write them; what is not one is reported and left out.

    >>> sorted(_patterns(["https://Kernels.example.org/", "gpu7:8501", "*.example.org", "[2001:db8::1]"]))
    ['*.example.org', '2001:db8::1', 'gpu7', 'kernels.example.org']
    """
    patterns = set()
    for text in named:
        host = text.strip().lower().partition("://")[2] or text.strip().lower()
        host = host.partition("/")[0]
        if host.startswith("["):
            host = host[1:].partition("]")[0]
        elif host.count(":") == 1:
            host = host.partition(":")[0]
        pattern = host.removesuffix(".")
        if _PATTERN.fullmatch(pattern):
            patterns.add(pattern)
        else:
            _LOGGER.warning("%r is not a host name, so it allows nothing (%s, server.allowedHosts)", text, VARIABLE)
    return frozenset(patterns)


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
