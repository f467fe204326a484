"""Names to addresses, and no further than the settings allow.

A webhook's host is somebody's word. What it resolves to is looked at in the very step that
connects, so that a name which points inward, or does so the second time it is asked, reaches
nothing. Called by `notify.webhook`.

Source: reliability notes on requests that a server is made to send (SSRF).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, TypeAlias

from tornado.netutil import Resolver
from typing_extensions import override

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Addresses that stand for an IPv4 address behind a gateway (RFC 6052)."""

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotAllowed(OSError):
    """The name points to where the settings do not let us go."""


def is_public(text: str) -> bool:
    """Return whether an address belongs to the whole world, also where it hides another one."""
    try:
        address: _Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(one.is_global and not one.is_multicast for one in _meant(address))


def _meant(address: _Address) -> tuple[_Address, ...]:
    """Return an address, and the IPv4 addresses that it stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    if address in _NAT64:
        return (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    teredo = address.teredo or ()
    hidden = [one for one in (address.sixtofour, *teredo) if one is not None]
    return (address, *hidden)


class GuardedResolver(Resolver):
    """Resolves names, and leaves out what may not be reached."""

    @override
    def initialize(self, *, allowed: Callable[[str], bool]) -> None:
        """Take the rule that says which addresses may be reached."""
        self._allowed = allowed

    @override
    async def resolve(
        self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[tuple[int, Any]]:
        """Return the addresses of a host that may be reached.

        Raises:
            NotAllowed: there are some, but none of them may.
            OSError: there are none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        addresses = [(int(kind), address) for kind, _, _, _, address in found]
        kept = [one for one in addresses if self._allowed(str(one[1][0]))]
        if addresses and not kept:
            raise NotAllowed("its address is private; set private_addresses: true to allow that")
        return kept
