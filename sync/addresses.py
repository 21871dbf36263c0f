"""The IP addresses that an API server may have, and resolving its host name to them.

An IPv6 address may stand for an IPv4 one, and a network that translates delivers it there: such an
address is judged by what it stands for, or refused where nobody needs it.

A cluster's administrator names the server, so the name could lead into our own network: to this
machine, to a cloud's metadata, to a neighbour. What is not plainly public has to be allowed.
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
"""Refused whatever GATEHOUSE_CLUSTER_ADDRESSES says."""
_COMPATIBLE: Final = IPv6Network("::/96")
_LOOPBACK: Final = IPv6Address("::1")
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = 0x0000_5EFE
_ISATAP_FLAGS: Final = 0xFCFF_FFFF
"""All but the bits "universal" and "group" of an interface's name."""


def is_never_a_server(host: str) -> bool:
    """Whether a literal address, however it is written, is refused whatever the settings say.

    Names are no such addresses: they are resolved, and what they lead to judged, when dialled.
    """
    address = _literal(host)
    return address is not None and _is_never(address)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether we may connect there: public addresses, and what is in one of the networks."""
    if _is_never(address):
        return False
    real = _unwrapped(address)
    if any(real in network for network in allowed if network.version == real.version):
        return True
    # What IPv6 has not given to anybody yet is not public either, whatever Python's table says.
    return real.is_global and (isinstance(real, IPv4Address) or real in _UNICAST)


def _literal(host: str) -> Address | None:
    """Read an address as the resolver does: 2852039166 and 0xa9.0376.65278 are addresses, too."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _is_never(address: Address) -> bool:
    real = _unwrapped(address)
    if isinstance(real, IPv6Address) and (real.is_unspecified or _is_isatap(real)):
        return True
    return any(real in network for network in NEVER if network.version == real.version)


def _is_isatap(address: IPv6Address) -> bool:
    """Whether it names a host of a tunnel (RFC 5214), which leads to an IPv4 address."""
    return int(address) >> 32 & _ISATAP_FLAGS == _ISATAP


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, else itself."""
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
    """Ask for a host's addresses; those that are not allowed are left out.

    Raises UnreachableError for an unknown name, RefusedAddressError where nothing is left.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise UnreachableError(f"{host} cannot be found: {reason}", reason="Unresolved") from None
    texts = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    left = tuple(text for text in texts if is_allowed(ip_address(text), allowed))
    if not left:
        raise RefusedAddressError(
            f"{host} leads to {', '.join(texts)}, which GATEHOUSE_CLUSTER_ADDRESSES does not allow"
        )
    return left
