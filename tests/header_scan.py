"""The rules of public scanners for the headers of a website, applied to one response.

Sources of the rules: Mozilla's HTTP Observatory (github.com/mdn/mdn-http-observatory, "Scoring methodology") and the OWASP
Secure Headers Project (its lists of headers to add and to remove). Each rule has the scanner's name for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http.client import HTTPMessage
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

Policy = dict[str, list[str]]
_OTHER_CONTENT = ("style-src", "connect-src", "media-src", "frame-src", "worker-src")
_SAFE_REFERRERS = {"no-referrer", "same-origin", "strict-origin", "strict-origin-when-cross-origin"}
_TELLS_SOFTWARE = (
    "Server",
    "X-Powered-By",
    "X-AspNet-Version",
    "X-Generator",
    "Via",
    "X-Runtime",
    "X-Version",
    "X-SourceMap",
)


def policy_of(headers: HTTPMessage) -> Policy:
    """The content security policy: each directive with its sources."""
    directives = (part.split() for part in headers.get("Content-Security-Policy", "").split(";") if part.strip())
    return {name.lower(): sources for name, *sources in directives}


def sources(policy: Policy, kind: str) -> list[str]:
    """The sources that hold for a kind of content: those of `default-src` if it has none of its own, everything without both."""
    return policy.get(kind, policy.get("default-src", ["*"]))


def _is_wide(source: str) -> bool:
    """Whether content of any host, or of any host of a scheme, or over an unencrypted connection elsewhere, is allowed."""
    return source in ("*", "http:", "https:", "ftp:", "data:", "blob:") or source.startswith("http://")


def _cookies(headers: HTTPMessage) -> SimpleCookie:
    found = SimpleCookie()
    for line in headers.get_all("Set-Cookie", []):
        found.load(line)
    return found


def _outside_scripts(page: str, host: str) -> list[str]:
    tags = re.findall(r"<(?:script|link)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page)
    return [address for address in tags if urlsplit(address).netloc not in ("", host)]


RULES: dict[str, Callable[[HTTPMessage, str, str], bool]] = {
    "csp: there is a policy": lambda h, page, host: bool(policy_of(h)),
    "csp: default-src 'none'": lambda h, page, host: sources(policy_of(h), "default-src") == ["'none'"],
    "csp: no 'unsafe-inline' for scripts": lambda h, page, host: (
        "'unsafe-inline'" not in sources(policy_of(h), "script-src")
    ),
    "csp: no 'unsafe-eval'": lambda h, page, host: "'unsafe-eval'" not in sources(policy_of(h), "script-src"),
    "csp: no 'wasm-unsafe-eval'": lambda h, page, host: "'wasm-unsafe-eval'" not in sources(policy_of(h), "script-src"),
    "csp: no inline script by its hash": lambda h, page, host: (
        not any(s.startswith("'sha") for s in sources(policy_of(h), "script-src"))
    ),
    "csp: no wide source of scripts": lambda h, page, host: (
        not any(_is_wide(s) for kind in ("script-src", "object-src") for s in sources(policy_of(h), kind))
    ),
    "csp: no 'unsafe-inline' for styles": lambda h, page, host: (
        "'unsafe-inline'" not in sources(policy_of(h), "style-src")
    ),
    "csp: no wide source of pictures and fonts": lambda h, page, host: (
        not any(_is_wide(s) for kind in ("img-src", "font-src") for s in sources(policy_of(h), kind))
    ),
    "csp: no other wide source": lambda h, page, host: (
        not any(_is_wide(s) for kind in _OTHER_CONTENT for s in sources(policy_of(h), kind))
    ),
    "csp: frame-ancestors": lambda h, page, host: policy_of(h).get("frame-ancestors") == ["'none'"],
    "csp: base-uri": lambda h, page, host: policy_of(h).get("base-uri") in (["'none'"], ["'self'"]),
    "csp: form-action": lambda h, page, host: policy_of(h).get("form-action") in (["'none'"], ["'self'"]),
    "cookies: Secure": lambda h, page, host: all(c["secure"] for c in _cookies(h).values()),
    "cookies: HttpOnly": lambda h, page, host: all(c["httponly"] for c in _cookies(h).values()),
    "cookies: SameSite": lambda h, page, host: all(c["samesite"] in ("Lax", "Strict") for c in _cookies(h).values()),
    "cors: no foreign origin": lambda h, page, host: h.get("Access-Control-Allow-Origin") in (None, f"http://{host}"),
    "strict-transport-security": lambda h, page, host: "max-age=" in h.get("Strict-Transport-Security", ""),
    "referrer-policy": lambda h, page, host: h.get("Referrer-Policy") in _SAFE_REFERRERS,
    "subresource integrity: no script of another host": lambda h, page, host: _outside_scripts(page, host) == [],
    "x-content-type-options": lambda h, page, host: h.get_all("X-Content-Type-Options") == ["nosniff"],
    "x-frame-options": lambda h, page, host: h.get_all("X-Frame-Options") in (["DENY"], ["SAMEORIGIN"]),
    "cross-origin-resource-policy": lambda h, page, host: h.get("Cross-Origin-Resource-Policy") == "same-origin",
    "cross-origin-opener-policy": lambda h, page, host: h.get("Cross-Origin-Opener-Policy") == "same-origin",
    "cross-origin-embedder-policy": lambda h, page, host: h.get("Cross-Origin-Embedder-Policy") == "require-corp",
    "permissions-policy": lambda h, page, host: {"camera=()", "microphone=()", "geolocation=()"} <= _features(h),
    "x-permitted-cross-domain-policies": lambda h, page, host: h.get("X-Permitted-Cross-Domain-Policies") == "none",
    "headers to remove": lambda h, page, host: not any(name in h for name in _TELLS_SOFTWARE),
    "no version of software": lambda h, page, host: (
        not any(re.search(r"\d", h.get(name, "")) for name in _TELLS_SOFTWARE)
    ),
    "cache-control: no-store": lambda h, page, host: "no-store" in h.get("Cache-Control", ""),
}
"""Each rule by its name: whether the headers and the text of a response from that host follow it."""


def _features(headers: HTTPMessage) -> set[str]:
    return {part.strip() for part in headers.get("Permissions-Policy", "").split(",")}


def unmet(headers: HTTPMessage, page: str, host: str) -> set[str]:
    """The rules that a response does not follow."""
    return {name for name, follows in RULES.items() if not follows(headers, page, host)}
