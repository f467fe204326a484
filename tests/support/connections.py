"""Connections of which none outlives the test that made it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref

import aiohttp


class Connections(aiohttp.TCPConnector):
    """A connector that knows its sockets, so that one can wait until the last of them is closed.

    A TLS connection that is cut in mid-answer takes its leave in the background. Where the event
    loop ends first, the socket is found by the garbage collector, in the middle of another test.
    """

    def __init__(self, *, ssl: ssl.SSLContext, limit: int = 0) -> None:
        super().__init__(ssl=ssl, limit=limit, socket_factory=self._made)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def _made(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        made.settimeout(0.0)
        self._sockets.add(made)
        return made

    async def gone(self) -> None:
        """Wait until every connection is closed; close the session first."""
        while any(one.fileno() >= 0 for one in self._sockets):
            await asyncio.sleep(0.01)
