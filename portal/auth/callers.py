"""The client address of a request, behind a known number of proxies."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_PREFIX: Final = 64  # bits: whoever has one IPv6 address has all of these


def address_of(request: HttpRequest) -> str:
    """The caller's address: the connection's, or what the outermost known proxy has written.

    ``GATEHOUSE_BEHIND_PROXY`` says how many proxies stand in front; each appends whom it has seen.
    Anything further to the left was written by the caller.
    """
    nearest = str(request.META.get("REMOTE_ADDR", ""))
    hops = settings.GATEHOUSE_BEHIND_PROXY
    if not hops:
        return nearest
    written = request.headers.get("X-Forwarded-For", "").split(",")
    seen = [word.strip() for word in written if word.strip()]
    return seen[-min(hops, len(seen))] if seen else nearest


def group_of(address: str) -> str:
    """What is counted together: an IPv4 address, or the network of an IPv6 one."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ip_network((found, _PREFIX), strict=False))
    return str(found)


def is_local(request: HttpRequest) -> bool:
    """Whether the caller is on this very machine."""
    try:
        found = ip_address(address_of(request))
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback
