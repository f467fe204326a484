"""What a Hub answers: the parts that matter, and its refusals in sentences.

Source of the fields: JupyterHub's REST API, ``User`` and ``Server``, 2.0 to 6.1. Answers are
hostile input as those of any server: what is not of the expected form is an error, never an empty
list. Called by `jupyterhub.client`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from gpu_pruner.errors import HubError
from gpu_pruner.model.foreign import NOTHING_SENT, Sent, quoted
from gpu_pruner.model.jupyterhub import ServerName

_SHOWN = 160

SCOPES = "list:users, read:servers, delete:servers and start:servers"
"""What the token needs."""

SEEING = ("list:users", "read:servers")
STOPPING = ("delete:servers", "start:servers")
"""The same by what they are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubServer:
    """A server that the Hub counts as active: running, starting or stopping."""

    started: str
    """When, as the Hub writes it: another text is another start. Empty while it is not known."""
    ready: bool
    """It answers, and nothing is pending."""
    pending: str = ""
    """``spawn``, ``stop``, ``check`` or ``rename``; empty where nothing is."""

    @property
    def is_stopping(self) -> bool:
        """Whether the Hub was told to stop it."""
        return self.pending == "stop"


class _Server(msgspec.Struct, frozen=True, gc=False):
    ready: bool
    started: str | None = None
    pending: str | None = None


class _User(msgspec.Struct, frozen=True, gc=False):
    name: str
    servers: dict[str, _Server] | None = None
    """Missing where the token may not read them."""


class _Version(msgspec.Struct, frozen=True, gc=False):
    version: str


class _Self(msgspec.Struct, frozen=True, gc=False):
    scopes: tuple[str, ...] | None = None
    """Missing before 2.0."""


class _Next(msgspec.Struct, frozen=True, gc=False):
    offset: int


class _Pagination(msgspec.Struct, frozen=True, gc=False):
    next: _Next | None


class _Users(msgspec.Struct, frozen=True, gc=False):
    items: tuple[_User, ...]
    pagination: _Pagination = msgspec.field(name="_pagination")


class _Refusal(msgspec.Struct, frozen=True, gc=False):
    message: str = ""


Servers = Mapping[ServerName, HubServer]


def read_version(body: bytes) -> str:
    """Read what a Hub tells of itself to anybody, for example ``5.2.1``.

    Raises:
        HubError: it is none.
    """
    try:
        return quoted(msgspec.json.decode(body, type=_Version).version)[:_SHOWN]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HubError("what answers there is no JupyterHub") from error


def read_scopes(body: bytes) -> frozenset[str] | None:
    """Read which scopes a token has, with all that follow from them; None where that is not told.

    A scope may be limited to some users or servers: ``list:users!group=trial``.

    Raises:
        HubError: it is no answer about a token.
    """
    try:
        told = msgspec.json.decode(body, type=_Self).scopes
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HubError("its answer about the token cannot be read") from error
    return None if told is None else frozenset(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of the list of users."""

    servers: Servers
    users: int
    readable: int
    """Of those users: how many told their servers."""
    next_offset: int | None


def read_page(body: bytes, *, namespace: str) -> Page:
    """Read a page of the list of users.

    Raises:
        HubError: it is none.
    """
    try:
        page = msgspec.json.decode(body, type=_Users)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HubError("its list of users cannot be read: is it JupyterHub 2 or newer?") from error
    readable = [one for one in page.items if one.servers is not None]
    further = page.pagination.next
    return Page(
        servers={
            name: server for user in readable for name, server in _servers(user, namespace).items()
        },
        users=len(page.items),
        readable=len(readable),
        next_offset=None if further is None else further.offset,
    )


def read_server(body: bytes, name: ServerName) -> HubServer | None:
    """Read one server from the model of its user; None where it is not active.

    Raises:
        HubError: it is no such model, or the token may not read servers.
    """
    try:
        user = msgspec.json.decode(body, type=_User)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HubError("its answer about a user cannot be read") from error
    if user.name != name.user:
        raise HubError(f"asked about user {quoted(name.user)}, it answered about another one")
    if user.servers is None:
        raise HubError(unreadable())
    return _servers(user, name.namespace).get(name)


def unreadable() -> str:
    """Return what is wrong where users are listed without their servers."""
    return f"its token may not read servers; it needs the scopes {SCOPES}"


def _servers(user: _User, namespace: str) -> Mapping[ServerName, HubServer]:
    return {
        ServerName(namespace, user.name, name): HubServer(
            started=one.started or "",
            ready=one.ready and not one.pending,
            pending=one.pending or "",
        )
        for name, one in (user.servers or {}).items()
    }


def refusal(
    status: int, body: bytes, *, retry_after: str = "", sent: Sent = NOTHING_SENT
) -> HubError:
    """Return what a status means that is no success.

    Args:
        status: HTTP status.
        body: of the answer.
        retry_after: the header, empty where there was none.
        sent: our token, which the Hub's words may repeat.
    """
    try:
        told = msgspec.json.decode(body, type=_Refusal).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = ""
    words = f": {quoted(told, sent=sent)[:_SHOWN]}" if told else ""
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            why = f"it refuses the token ({status}); it needs the scopes {SCOPES}"
        case HTTPStatus.NOT_FOUND:
            why = f"it knows no such user or server, or shows none to this token (404){words}"
        case HTTPStatus.TOO_MANY_REQUESTS:
            wait = (
                f"; it asks to wait {quoted(retry_after, sent=sent)[:20]} s" if retry_after else ""
            )
            why = f"too many servers are starting (429){wait}{words}"
        case _ if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            why = f"it answers with a redirect ({status}); is the URL that of the Hub itself?"
        case _:
            why = f"it answered {status}{words}"
    return HubError(why, status=status)
