"""Resolve a cluster's host name once, to addresses that are permitted.

A cluster's administrator names the server, so the name could lead into our own network: to this
machine, to a cloud's metadata, to a neighbour. What is not plainly public has to be allowed.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from sync.addresses import is_allowed
from sync.errors import RefusedAddressError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sync.addresses import Network


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
