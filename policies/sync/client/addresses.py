"""Which addresses a cluster's name may lead to; the name is asked for once.

A cluster's administrator names the server, so the name could lead into our own network: to this
machine, to a cloud's metadata, to a neighbour. What is not plainly public has to be allowed.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from policies.sync.errors import RefusedAddressError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

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
        "::/128",
        "fe80::/10",
        "fd00:ec2::254/128",  # metadata
        "fd20:ce::254/128",  # metadata
        "ff00::/8",
    )
)
_TRANSLATED: Final = (IPv6Address("64:ff9b::"), IPv6Address("64:ff9b::ffff:ffff"))


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether we may connect there: public addresses, and what is in one of the networks."""
    real = _unwrapped(address)
    if any(real in network for network in NEVER if network.version == real.version):
        return False
    if any(real in network for network in allowed if network.version == real.version):
        return True
    return real.is_global


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


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address.sixtofour:
        return address.sixtofour
    if _TRANSLATED[0] <= address <= _TRANSLATED[1]:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
