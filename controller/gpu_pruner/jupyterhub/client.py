"""One JupyterHub: which servers are active, and stopping and starting one.

Every failure becomes `errors.HubError`. Nothing is retried, redirects are not followed (they would
carry the token elsewhere), and a server is never removed: a stop has no body. Limits on time are
real seconds. `observe.hubs`, `act.servers` and `check.hub_questions` call it.

Source: JupyterHub's ``UserServerAPIHandler``, ``UserListAPIHandler``, ``SelfAPIHandler`` and
``RootAPIHandler``, 5.2 and 6.1.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiohttp

from gpu_pruner.errors import ConfigurationError, HubError
from gpu_pruner.jupyterhub.answers import (
    HubServer,
    Servers,
    read_page,
    read_scopes,
    read_server,
    read_version,
    refusal,
    unreadable,
)
from gpu_pruner.model.foreign import NOTHING_SENT
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.settings.credentials import header_text
from gpu_pruner.settings.hubs import HubSettings

_PAGE = 200
"""Users per page: the most that a Hub gives (``api_page_max_limit``)."""
_MOST_BYTES = 32 << 20
_PAGINATED = "application/jupyterhub-pagination+json"
_MOST_PAGES = 10_000
_LIST_TIMES = 4
T = TypeVar("T")


class HubClient:
    """Talks to one Hub. `close` it in the end."""

    def __init__(self, settings: HubSettings) -> None:
        """Prepare; nothing is sent yet.

        Raises:
            ConfigurationError: the CA bundle cannot be read.
        """
        self.namespace = settings.namespace  # of its user pods
        self.place = f"JupyterHub {settings.url}"
        self._api = f"{settings.url}/hub/api"
        self._token_file = settings.token_file
        self._wait = settings.timeout_seconds
        self._tls = _tls(settings.ca_file)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def version(self) -> str:
        """Return which version the Hub is of; it tells everybody, so no token is sent.

        Raises:
            HubError: no answer, or none of a Hub.
        """
        body = await self._asked("GET", "/", authorization="")
        return self._read(read_version, body)

    async def scopes(self) -> frozenset[str] | None:
        """Return the scopes of our token; None where the Hub does not tell.

        Raises:
            HubError: the token is not accepted, or no usable answer.
        """
        return self._read(read_scopes, await self._ask("GET", "/user"))

    def _read(self, reading: Callable[[bytes], T], body: bytes) -> T:
        try:
            return reading(body)
        except HubError as error:
            raise HubError(f"{self.place}: {error}") from error

    async def servers(self) -> Servers:
        """Return all active servers that the token may read.

        A user who comes or goes between two pages may be missed: that a server is not in here does
        not prove that it is stopped.

        Raises:
            HubError: no complete answer, or none in four times the wait for a single one.
        """
        try:
            async with asyncio.timeout(_LIST_TIMES * self._wait):
                return await self._all_pages()
        except TimeoutError as error:
            raise HubError(f"{self.place}: its list of users takes too long") from error

    async def _all_pages(self) -> Servers:
        found: dict[ServerName, HubServer] = {}
        users = readable = offset = 0
        for _ in range(_MOST_PAGES):
            query = f"/users?state=active&limit={_PAGE}&offset={offset}"
            page = read_page(await self._ask("GET", query), namespace=self.namespace)
            found.update(page.servers)
            users, readable = users + page.users, readable + page.readable
            if page.next_offset is None:
                break
            if page.next_offset <= offset:
                raise HubError("its list of users goes in a circle")
            offset = page.next_offset
        if users and not readable:
            raise HubError(unreadable())
        return found

    async def server(self, name: ServerName) -> HubServer | None:
        """Return one server as it is now; None where it is not active.

        Raises:
            HubError: no usable answer; 404 where the Hub knows no such user.
        """
        return read_server(await self._ask("GET", f"/users/{_part(name.user)}"), name)

    async def stop(self, name: ServerName) -> None:
        """Ask for a server to be stopped; it may take longer than the answer (202).

        Raises:
            HubError: not accepted; without a status it may have been.
        """
        await self._ask("DELETE", _server_path(name))

    async def start(self, name: ServerName) -> None:
        """Ask for a server to be started as it was the last time; it takes longer than the answer.

        Without a body the Hub takes the ``user_options`` of the last start, so that they need to be
        kept nowhere else: they may hold what is not for everybody.

        Raises:
            HubError: not accepted; without a status it may have been.
        """
        await self._ask("POST", _server_path(name))

    async def _ask(self, method: str, path: str) -> bytes:
        """Ask once with our token, and return the body of a good answer."""
        return await self._asked(method, path, authorization=f"Bearer {_token(self._token_file)}")

    async def _asked(self, method: str, path: str, *, authorization: str) -> bytes:
        headers = {"Accept": _PAGINATED}
        if authorization:
            headers["Authorization"] = authorization
        try:
            status, body, told = await self._exchange(method, path, headers)
        except TimeoutError as error:
            raise HubError(f"{self.place}: it did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            what = type(error).__name__
            raise HubError(f"{self.place}: it cannot be reached ({what})") from error
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            wait, sent = told.get("Retry-After", ""), NOTHING_SENT.also(authorization)
            found = refusal(status, body, retry_after=wait, sent=sent)
            raise HubError(f"{self.place}: {found}", status=status)
        return body

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        if self._session is None:
            limits = aiohttp.ClientTimeout(total=self._wait)
            connector = aiohttp.TCPConnector(ssl=self._tls, limit=4)
            self._session = aiohttp.ClientSession(connector=connector, timeout=limits)
        async with self._session.request(
            method, f"{self._api}{path}", headers=headers, allow_redirects=False
        ) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise HubError(f"{self.place}: its answer is too long")
            return answer.status, bytes(body), answer.headers


def _server_path(name: ServerName) -> str:
    user = f"/users/{_part(name.user)}"
    return f"{user}/servers/{_part(name.server)}" if name.server else f"{user}/server"


def _part(text: str) -> str:
    """Return a part of a path.

    Raises:
        HubError: it would lead elsewhere.
    """
    if text in {"", ".", ".."}:
        raise HubError(f"{text!r} is not a name", status=HTTPStatus.NOT_FOUND)
    return quote(text, safe="")


def _token(file: Path) -> str:
    """Return the token.

    Raises:
        HubError: the file holds none; never with its content.
    """
    advice = "check jupyter_hubs.token_file"
    try:
        token = header_text(file.read_text(encoding="ascii"))
    except OSError as error:
        why = f"the token file {file} cannot be read: {error.strerror}; {advice}"
        raise HubError(why, status=HTTPStatus.UNAUTHORIZED) from error
    except ValueError:  # of the encoding, too
        why = f"the token file {file} holds no token; {advice}"
        raise HubError(why, status=HTTPStatus.UNAUTHORIZED) from None
    if not token:
        why = f"the token file {file} is empty; {advice}"
        raise HubError(why, status=HTTPStatus.UNAUTHORIZED)
    return token


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # of the file, or of what is in it
        raise ConfigurationError(
            f"the CA bundle cannot be used: {error.strerror or 'it is not PEM'}",
            path=f"jupyter_hubs.ca_file {ca_file}",
        ) from error
