"""The bodies of the API server's answers: read within a limit, line by line, and decoded.

No server gets to fill our memory: what is longer than anything that an API server sends is an
error. Only `kube.client` uses it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import aiohttp
import msgspec
from aiohttp.http import HttpProcessingError

from gpu_pruner.errors import ClusterError
from gpu_pruner.kube import answers
from gpu_pruner.model.foreign import Sent

T = TypeVar("T")

LARGEST_OBJECT = 32 << 20
"""Bytes, decompressed, of one object or document. etcd stores 1.5 MiB per object unless told
otherwise; the longest document, the API's own description, has some 6 MiB."""

LARGEST_PAGE = 256 << 20
"""Bytes, decompressed, of one page of a list: 500 pods of 8 to 60 kB each are 4 to 30 MB."""

LARGEST_LIST = 1 << 30
"""Bytes, decompressed, of a list in one page, which is asked for where pages came too late: 50,000
pods of 20 kB each."""


async def whole(answer: aiohttp.ClientResponse, *, asked: str, largest: int) -> bytes:
    """Return the whole body of an answer.

    Args:
        answer: its body still unread; closed where it is too long.
        asked: what was asked, for messages.
        largest: the limit, bytes.

    Raises:
        ClusterError: it is longer.
    """
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > largest:
            hang_up(answer)
            raise ClusterError(
                f"{asked}: the answer has more than {largest / (1 << 20):g} MiB, which no API "
                "server sends; check the address in the kubeconfig"
            )
        parts.append(part)
    return b"".join(parts)


def hang_up(answer: aiohttp.ClientResponse) -> None:
    """Give the connection back; with a rest of the body still to come it is cut.

    Closed in mid-answer, TLS would take its leave in the background, for half a minute where the
    server is silent, and so outlive the event loop.
    """
    if answer.connection is not None and answer.connection.transport is not None:
        answer.connection.transport.abort()
    answer.close()


async def lines(answer: aiohttp.ClientResponse, *, asked: str) -> AsyncIterator[bytes]:
    """Yield whole lines; a line that the connection's end cut off is an error, not an event.

    A line longer than twice the read buffer, which the official client sets to 2 MiB, is an error:
    no event is so long.
    """
    try:
        async for line in answer.content:
            if not line.endswith(b"\n"):
                raise ClusterError(f"{asked}: the connection broke in the middle of an event")
            if not line.isspace():
                yield line
    except (ValueError, HttpProcessingError) as error:  # by the library's version
        raise ClusterError(
            f"{asked}: a line has no end; is there something else between us and the API server?"
        ) from error


def decoded(body: bytes, decode: type[T], *, asked: str, sent: Sent) -> T:
    """Return what a body holds.

    Raises:
        ClusterError: it is not that.
    """
    try:
        return msgspec.json.decode(body, type=decode)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise answers.unreadable(asked, error, sent=sent) from error
