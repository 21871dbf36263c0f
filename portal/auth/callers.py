"""``address_of`` a request behind proxies (X-Forwarded-For, hops); IPv6 /64 groups; is it local."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_IPV6_PREFIX: Final = 64  # bits: a host with one IPv6 address can use all addresses of its /64


def address_of(request: HttpRequest) -> str:
    """The caller's address: the connection's, or the one that the outermost known proxy added.

    ``GATEHOUSE_BEHIND_PROXY`` is the number of proxies in front; each appends its client's address.
    Addresses further to the left come from the caller, who can forge them.
    """
    peer_address = str(request.META.get("REMOTE_ADDR", ""))
    proxy_hops = settings.GATEHOUSE_BEHIND_PROXY
    if not proxy_hops:
        return peer_address
    forwarded_words = request.headers.get("X-Forwarded-For", "").split(",")
    addresses = [word.strip() for word in forwarded_words if word.strip()]
    return addresses[-min(proxy_hops, len(addresses))] if addresses else peer_address


def group_of(address: str) -> str:
    """The unit that is counted together: an IPv4 address, or the network of an IPv6 address."""
    try:
        caller_address = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(caller_address, IPv6Address):
        if caller_address.ipv4_mapped:
            return str(caller_address.ipv4_mapped)
        return str(ip_network((caller_address, _IPV6_PREFIX), strict=False))
    return str(caller_address)


def is_local(request: HttpRequest) -> bool:
    """Whether the caller is on this machine."""
    try:
        caller_address = ip_address(address_of(request))
    except ValueError:
        return False
    mapped_ipv4 = caller_address.ipv4_mapped if isinstance(caller_address, IPv6Address) else None
    return (mapped_ipv4 or caller_address).is_loopback
