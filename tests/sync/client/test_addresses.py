"""However an address is written, it is judged by where it leads: when read, and when dialled."""

from __future__ import annotations

import socket
from ipaddress import ip_address, ip_network
from typing import Final

import pytest

from sync.addresses import is_allowed, is_never_a_server, resolve
from sync.connect.kubeconfig import KubeconfigProblems, read_server
from sync.errors import RefusedAddressError

EVERYTHING: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))
METADATA: Final = {
    "dotted": "169.254.169.254",
    "decimal": "2852039166",
    "octal": "0251.0376.0251.0376",
    "octal-with-zeros": "0000251.0376.000251.0376",
    "octal-at-once": "025177524776",
    "hexadecimal": "0xa9.0xfe.0xa9.0xfe",
    "hexadecimal-at-once": "0xa9fea9fe",
    "hexadecimal-in-capitals": "0XA9FEA9FE",
    "mixed": "0xa9.0376.169.254",
    "two-parts": "169.16689662",
    "three-parts": "169.254.43518",
    "three-mixed-parts": "0xa9.254.0124776",
    "mapped": "[::ffff:169.254.169.254]",
    "mapped-in-hexadecimal": "[::ffff:a9fe:a9fe]",
    "mapped-in-full": "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "mapped-in-capitals": "[::FFFF:A9FE:A9FE]",
    "compatible": "[::169.254.169.254]",
    "compatible-in-hexadecimal": "[::a9fe:a9fe]",
    "compatible-in-full": "[0:0:0:0:0:0:a9fe:a9fe]",
    "translated": "[::ffff:0:169.254.169.254]",
    "translated-in-hexadecimal": "[::ffff:0:a9fe:a9fe]",
    "nat64": "[64:ff9b::169.254.169.254]",
    "nat64-in-hexadecimal": "[64:ff9b::a9fe:a9fe]",
    "nat64-in-full": "[0064:ff9b:0:0:0:0:a9fe:a9fe]",
    "nat64-of-ones-own": "[64:ff9b:1::169.254.169.254]",
    "nat64-of-ones-own-48": "[64:ff9b:1:a9fe:a9:fe00::]",
    "nat64-of-ones-own-deep": "[64:ff9b:1:fffe::a9fe:a9fe]",
    "6to4": "[2002:a9fe:a9fe::]",
    "6to4-with-host": "[2002:a9fe:a9fe::1]",
    "teredo": "[2001:0:a9fe:a9fe::]",
    "teredo-of-a-client": "[2001:0:4136:e378:8000:63bf:5601:5601]",
    "isatap": "[2606:4700::5efe:169.254.169.254]",
    "isatap-universal": "[2606:4700::200:5efe:a9fe:a9fe]",
    "isatap-link-local": "[fe80::5efe:a9fe:a9fe]",
    "link-local": "[fe80::1]",
    "link-local-at-the-end": "[febf:ffff::1]",
    "link-local-with-zone": "[fe80::1%1]",
    "link-local-with-encoded-zone": "[fe80::a9fe:a9fe%25eth0]",
    "site-local": "[fec0::1]",
    "site-local-at-the-end": "[feff:ffff::1]",
    "multicast": "[ff02::1]",
    "multicast-of-ipv4": "224.0.0.1",
    "multicast-mapped": "[::ffff:224.0.0.1]",
    "broadcast": "255.255.255.255",
    "broadcast-in-decimal": "4294967295",
    "reserved": "240.0.0.1",
    "nowhere": "0.0.0.0",  # noqa: S104 - an address to refuse
    "nowhere-in-short": "0",
    "nowhere-in-hexadecimal": "0x0",
    "nowhere-in-octal": "00",
    "nowhere-in-ipv6": "[::]",
    "nowhere-in-full": "[0:0:0:0:0:0:0:0]",
    "nowhere-mapped": "[::ffff:0.0.0.0]",
    "this-network": "0.1.2.3",
    "aws-in-ipv6": "[fd00:ec2::254]",
    "google-in-ipv6": "[fd20:ce::254]",
    "alibaba": "100.100.100.200",
    "alibaba-in-decimal": "1684301000",
    "azure": "168.63.129.16",
    "azure-mapped": "[::ffff:168.63.129.16]",
    "oracle": "192.0.0.192",
}
"""Places where no API server is, whatever is listed."""
LOOPBACK: Final = {
    "dotted": "127.0.0.1",
    "another": "127.255.255.254",
    "short": "127.1",
    "three-parts": "127.0.1",
    "decimal": "2130706433",
    "octal": "0177.0.0.1",
    "octal-at-once": "017700000001",
    "hexadecimal": "0x7f.0.0.1",
    "hexadecimal-at-once": "0x7f000001",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped-in-hexadecimal": "[::ffff:7f00:1]",
    "compatible": "[::127.0.0.1]",
    "compatible-in-hexadecimal": "[::7f00:1]",
    "nat64": "[64:ff9b::127.0.0.1]",
    "6to4": "[2002:7f00:1::]",
    "ipv6": "[::1]",
    "ipv6-in-full": "[0:0:0:0:0:0:0:1]",
    "translated": "[::ffff:0:127.0.0.1]",
    "site-local": "[fec0::7f00:1]",
    "nat64-of-ones-own": "[64:ff9b:1::127.0.0.1]",
    "not-given-to-anybody": "[4000::7f00:1]",
}
"""This machine, and what might lead to it: nothing that is public."""


def found_at(host: str) -> list[str]:
    findings = KubeconfigProblems()
    read_server(f"https://{host}:6443", "server", findings)
    return [one.code for one in findings.found]


def dialled(host: str) -> tuple[str, ...]:
    return resolve(host.strip("[]").replace("%25", "%"), 6443, ())


@pytest.mark.parametrize("host", METADATA.values(), ids=METADATA.keys())
def test_what_is_never_a_server_is_refused_in_a_kubeconfig(host: str) -> None:
    # Python from 3.12 reads no zone that is written with %25, and refuses the address altogether.
    assert found_at(host) in (["address"], ["server"])
    assert is_never_a_server(host.strip("[]"))


@pytest.mark.parametrize("host", METADATA.values(), ids=METADATA.keys())
def test_what_is_never_a_server_is_not_dialled_even_where_everything_is_listed(host: str) -> None:
    found = socket.getaddrinfo(numeric(host), 6443, type=socket.SOCK_STREAM)
    assert not any(is_allowed(ip_address(str(each[4][0])), EVERYTHING) for each in found)


@pytest.mark.parametrize("host", LOOPBACK.values(), ids=LOOPBACK.keys())
def test_this_machine_is_not_dialled_unless_it_is_listed(host: str) -> None:
    with pytest.raises(RefusedAddressError):
        dialled(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]", "[::127.0.0.1]"])
def test_this_machine_is_one_in_every_spelling_that_is_kept(host: str) -> None:
    found = resolve(host.strip("[]"), 6443, [ip_network("127.0.0.0/8")])
    assert len(found) == 1
    assert found_at(host) == []


@pytest.mark.parametrize(
    "host", ["api.example.com", "1.1.1.1", "0x1.1.1.1", "[2606:4700::1111]", "[::1]", "127.0.0.1"]
)
def test_what_may_be_a_server_is_left_to_the_settings(host: str) -> None:
    assert found_at(host) == []


def numeric(host: str) -> str:
    """What a resolver takes: a zone by its number, so that no interface need be there."""
    return host.strip("[]").replace("%25eth0", "%1")
