"""Servers that receive messages as the real ones do: a webhook's, PagerDuty's, a mail server.

Each speaks its protocol on the loopback address and keeps what it accepted. The webhook's verifies
the signature from the documentation alone, without any of the product's code.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

SECRET = "correct-horse-battery"
ROUTING_KEY = "0123456789abcdef0123456789abcdef"
USER, PASSWORD = "pruner", "battery-staple-9"
HERE = "127.0.0.1"


@dataclass(frozen=True)
class Certificate:
    """One for 127.0.0.1 that signs itself."""

    authority: Path
    chain: Path

    @property
    def server(self) -> ssl.SSLContext:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.chain)
        return tls


def make_certificate(folder: Path) -> Certificate:
    key, authority, chain = folder / "key.pem", folder / "ca.crt", folder / "chain.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=receiver", "-keyout", str(key)]
    command += ["-addext", f"subjectAltName=IP:{HERE}", "-out", str(authority)]
    subprocess.run(command, check=True, capture_output=True)
    chain.write_bytes(authority.read_bytes() + key.read_bytes())
    return Certificate(authority, chain)


@dataclass
class Http:
    """What an HTTP receiver is told to answer, and what it got."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    is_silent: bool = False
    port: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first request is there."""
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Path, headers in lower case, body of every request."""
    problems: list[str] = field(default_factory=list)
    """Why a request was refused, as a real receiver would."""

    @property
    def bodies(self) -> list[dict[str, object]]:
        return [json.loads(body) for _, _, body in self.asked]


def problem_of_hook(headers: dict[str, str], body: bytes, *, now: float, secret: str) -> str:
    """Verify a webhook as docs/how-to/tell-people.md says."""
    timestamp = headers["x-gpu-pruner-timestamp"]
    signed = timestamp.encode() + b"." + body
    wanted = "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, headers["x-gpu-pruner-signature"]):
        return "the signature is wrong"
    return "it is too old" if abs(now - int(timestamp)) > 300 else ""


def problem_of_pagerduty(path: str, body: bytes) -> str:
    """Refuse what PagerDuty refuses: https://developer.pagerduty.com/docs/send-alert-event."""
    told = json.loads(body)
    if path != "/v2/enqueue" or told.get("routing_key") != ROUTING_KEY:
        return "invalid routing key"
    action, key = told.get("event_action"), told.get("dedup_key", "")
    if action not in {"trigger", "resolve"} or not 0 < len(key) <= 255:
        return "invalid event"
    payload = told.get("payload", {})
    if action == "trigger" and not (
        0 < len(payload.get("summary", "")) <= 1024
        and payload.get("source")
        and payload.get("severity") in {"critical", "error", "warning", "info"}
    ):
        return "invalid payload"
    return ""


class _Webhook(RequestHandler):
    def initialize(self, http: Http, now: float) -> None:
        self.http, self.now = http, now

    async def post(self) -> None:
        headers = {name.lower(): text for name, text in self.request.headers.get_all()}
        self.http.asked.append((self.request.path, headers, self.request.body))
        self.http.arrived.set()
        if problem := self.problem(headers):
            self.http.problems.append(problem)
            self.set_status(403)
            return
        if self.http.is_silent:
            self._auto_finish = False
            return
        self.set_status(self.http.status)
        for name, text in self.http.headers.items():
            self.set_header(name, text)
        self.answer()

    def problem(self, headers: dict[str, str]) -> str:
        return problem_of_hook(headers, self.request.body, now=self.now, secret=SECRET)

    def answer(self) -> None:
        self.write("x" * 100)


class _PagerDuty(_Webhook):
    def problem(self, headers: dict[str, str]) -> str:
        return problem_of_pagerduty(self.request.path, self.request.body)

    def answer(self) -> None:
        if self.http.status < 300:
            key = json.loads(self.request.body)["dedup_key"]
            self.set_status(202)
            self.write({"status": "success", "message": "Event processed", "dedup_key": key})


@asynccontextmanager
async def _listening(
    kind: type[RequestHandler], now: float, certificate: Certificate | None
) -> AsyncIterator[Http]:
    http = Http()
    app = Application([(r"/.*", kind, {"http": http, "now": now})])
    server = HTTPServer(app, ssl_options=certificate.server if certificate else None)
    sockets = bind_sockets(0, HERE)
    server.add_sockets(sockets)
    http.port = sockets[0].getsockname()[1]
    try:
        yield http
    finally:
        server.stop()
        await server.close_all_connections()


def a_webhook(*, now: float, certificate: Certificate | None = None):
    return _listening(_Webhook, now, certificate)


def a_pagerduty(certificate: Certificate):
    return _listening(_PagerDuty, 0.0, certificate)


@dataclass
class Mailbox:
    """What a mail server took on, and what it refuses."""

    refuses: str = ""
    """What it answers to the data of a mail, in place of taking it on."""
    mails: list[tuple[list[str], bytes]] = field(default_factory=list)
    """Receivers and content."""
    logins: list[str] = field(default_factory=list)
    port: int = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if self.refuses:
            return self.refuses
        content = envelope.content
        self.mails.append((envelope.rcpt_tos, content if isinstance(content, bytes) else b""))
        return "250 OK"

    def log_in(self, server, session, envelope, mechanism, data) -> AuthResult:
        if not isinstance(data, LoginPassword):
            return AuthResult(success=False)
        self.logins.append(data.login.decode())
        known = (data.login.decode(), data.password.decode()) == (USER, PASSWORD)
        return AuthResult(success=known, handled=False)


@asynccontextmanager
async def a_mail_server(certificate: Certificate | None, *, tls: bool) -> AsyncIterator[Mailbox]:
    """Serve mail: encrypted from the start, by STARTTLS, or, without a certificate, in clear."""
    box = Mailbox()
    loop = asyncio.get_running_loop()
    context = certificate.server if certificate else None
    started = None if tls else context

    sessions: list[SMTP] = []

    def receiver() -> SMTP:
        with warnings.catch_warnings():
            # It does not know that the whole connection is encrypted already.
            warnings.simplefilter("ignore", UserWarning)
            session = SMTP(
                box,
                hostname="receiver",
                loop=loop,
                tls_context=started,
                require_starttls=started is not None,
                authenticator=box.log_in,
                auth_required=certificate is not None,
                auth_require_tls=started is not None,
            )
        sessions.append(session)
        return session

    server = await loop.create_server(receiver, HERE, 0, ssl=context if tls else None)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()
        for one in sessions:
            if one.transport is not None:
                one.transport.abort()
        await asyncio.sleep(0)
