from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pruner.notify.addresses import is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104 - to be refused
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
        *("::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1"),
        *("2002:a00:1::", "2002:7f00:1::1"),
        *("", "example.org", "localhost", "1", "10.0.0"),
    ],
)
def test_what_is_not_the_whole_worlds_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_what_is_the_whole_worlds_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_no_way_of_writing_an_address_makes_it_more_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    mapped = str(ipaddress.IPv6Address(0xFFFF_0000_0000 + number))
    behind = str(ipaddress.IPv6Address((0x64FF9B << 96) + number))
    assert is_public(mapped) == is_public(behind) == is_public(str(address))
