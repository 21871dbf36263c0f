"""IP networks that no API server may have, tunnels unwrapped (NAT64, ISATAP), host resolved.

A cluster's administrator names the server, so the name could lead into our own network: to this
machine, to a cloud's metadata, to a neighbour. Addresses that are not public need a setting.
An IPv6 address that embeds an IPv4 address is judged by the embedded one, since a translating
network delivers it there, or refused where nobody needs it.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from sync.errors import RefusedAddressError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NEVER: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "100.100.100.200/32",  # metadata
        "168.63.129.16/32",  # metadata
        "192.0.0.192/32",  # metadata
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::ffff:0:0:0/96",  # IPv4-translated (RFC 2765)
        "64:ff9b:1::/48",  # NAT64 of one's own: the IPv4 address stands at any of five places
        "2001::/32",  # Teredo: the IPv4 address is that of a stranger's relay
        "fe80::/10",
        "fec0::/10",  # site-local, deprecated
        "fd00:ec2::254/128",  # metadata
        "fd20:ce::254/128",  # metadata
        "ff00::/8",
    )
)
"""Refused whatever GATEHOUSE_CLUSTER_ADDRESSES allows."""
_COMPATIBLE: Final = IPv6Network("::/96")
_LOOPBACK: Final = IPv6Address("::1")
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = 0x0000_5EFE
_ISATAP_FLAGS: Final = 0xFCFF_FFFF
"""Masks the bits "universal" and "group" of an interface identifier."""


def is_never_a_server(host: str) -> bool:
    """Whether the host is a literal address that is refused whatever the settings allow.

    Host names pass: their addresses are judged on connection, after resolution.
    """
    try:
        return _is_never(ip_address(host))
    except ValueError:
        pass
    try:
        # The resolver also reads 2852039166 and 0xa9.0376.65278 as addresses, so we must.
        return _is_never(IPv4Address(socket.inet_aton(host)))
    except OSError:
        return False


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether we may connect: to public addresses, and to those in an allowed network."""
    if _is_never(address):
        return False
    real = _unwrapped(address)
    if any(real in network for network in allowed if network.version == real.version):
        return True
    # Unassigned IPv6 space is not public either, whatever Python's table says.
    return real.is_global and (isinstance(real, IPv4Address) or real in _UNICAST)


def _is_never(address: Address) -> bool:
    real = _unwrapped(address)
    if isinstance(real, IPv6Address):
        # An ISATAP interface identifier (RFC 5214) tunnels to an IPv4 address under any prefix.
        is_isatap = int(real) >> 32 & _ISATAP_FLAGS == _ISATAP
        if real.is_unspecified or is_isatap:
            return True
    return any(real in network for network in NEVER if network.version == real.version)


def _unwrapped(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 one, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address.sixtofour:
        return address.sixtofour
    is_compatible = address in _COMPATIBLE and address != _LOOPBACK and not address.is_unspecified
    if is_compatible or address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def resolve(host: str, port: int, allowed: Sequence[Network]) -> tuple[str, ...]:
    """Resolve a host to those of its addresses that are allowed.

    Raises UnreachableError for an unknown name, RefusedAddressError if no address is allowed.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise UnreachableError(f"{host} cannot be found: {reason}", reason="Unresolved") from None
    texts = tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))
    usable = tuple(text for text in texts if is_allowed(ip_address(text), allowed))
    if not usable:
        raise RefusedAddressError(
            f"{host} leads to {', '.join(texts)}, which GATEHOUSE_CLUSTER_ADDRESSES does not allow"
        )
    return usable
