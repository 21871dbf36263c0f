"""The client address of a request, behind a known number of proxies."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_PREFIX: Final = 64  # bits: a host with one IPv6 address can use all addresses of its /64


def address_of(request: HttpRequest) -> str:
    """The caller's address: the connection's, or the one that the outermost known proxy added.

    ``GATEHOUSE_BEHIND_PROXY`` is the number of proxies in front; each appends its client's address.
    Addresses further to the left come from the caller, who can forge them.
    """
    nearest = str(request.META.get("REMOTE_ADDR", ""))
    hops = settings.GATEHOUSE_BEHIND_PROXY
    if not hops:
        return nearest
    written = request.headers.get("X-Forwarded-For", "").split(",")
    seen = [word.strip() for word in written if word.strip()]
    return seen[-min(hops, len(seen))] if seen else nearest


def group_of(address: str) -> str:
    """The unit that is counted together: an IPv4 address, or the network of an IPv6 address."""
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
    """Whether the caller is on this machine."""
    try:
        found = ip_address(address_of(request))
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback
