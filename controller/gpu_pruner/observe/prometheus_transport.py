"""HTTP to a Prometheus-compatible server, as the session that `prometheus-api-client` is given.

The library alone keeps the query in the URL, drops warnings, retries read timeouts and reads
without a limit. This session sends forms, decodes into types, refuses partial answers, bounds size
and time, follows no redirect, and turns every failure into a `PrometheusError` that names the
server and the fix. It blocks: `observe.prometheus` calls it in its own thread.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import BaseAdapter
from urllib3.exceptions import (
    HTTPError,
    InsecureRequestWarning,
    MaxRetryError,
    NameResolutionError,
    ReadTimeoutError,
)

from gpu_pruner.errors import PrometheusError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.foreign import NOTHING_SENT, Sent, quoted, skew
from gpu_pruner.model.units import Seconds
from gpu_pruner.observe import prometheus_replies as replies
from gpu_pruner.observe.backends import Backend, recognise, version_told
from gpu_pruner.observe.prometheus_auth import auth_for
from gpu_pruner.settings.schema import PrometheusSettings

LARGEST_BODY = 128 * 2**20
"""Bytes, decompressed. A larger answer means that the question must be cut."""

CONNECT_SECONDS: Seconds = 3.0
"""Longest wait for a connection; real seconds, as are all waits here."""

_CHUNK = 2**18
_BROKEN_OFF = "broke off in the middle of its answer; check its log and any proxy before it"
_MANY_REDIRECTS = range(300, 400)

RETRY = urllib3.Retry(
    total=2,
    read=False,
    redirect=False,
    allowed_methods=None,
    status_forcelist=(429, 502, 504),
    backoff_factor=0.3,
    raise_on_status=False,
    respect_retry_after_header=False,
)
"""Only what a moment can cure. Read timeouts are not retried: the next cycle is their retry.
A server does not get to tell us how long to sleep."""


class _Options(TypedDict, total=False):
    """What `prometheus-api-client` passes to a session; only `params` is its own to say."""

    params: Mapping[str, str | int | float]
    timeout: object
    headers: object
    auth: object
    verify: object
    cert: object


class Answer:
    """What `prometheus-api-client` needs of a response; its data are typed already."""

    status_code = 200

    def __init__(self, reply: replies.Reply) -> None:
        self._reply = reply

    def json(self) -> dict[str, dict[str, list[replies.Series]]]:
        """Return the part of the reply that the library unwraps."""
        return {"data": {"result": self._reply.data.result}}


class Transport:
    """A session for `PrometheusConnect(session=…)`. Not for use by several threads at once."""

    def __init__(self, settings: PrometheusSettings, *, clock: Clock) -> None:
        self.url = settings.url
        """The server's address without credentials."""
        self.server = f"Prometheus at {self.url}"
        self.clock_skew_seconds: Seconds = 0.0
        """The server's clock minus ours, from the newest answer."""
        self.verify: bool | str = str(settings.ca_file or "") or settings.tls_verify
        self.cert = None
        self._clock = clock
        self._timeout = settings.timeout_seconds
        self._notes: dict[str, None] = {}
        self._session = requests.Session()
        self._session.auth = auth_for(settings)
        # Unpacking costs us, and packing the server, more than the network in a cluster does.
        self._session.headers.update({"User-Agent": "gpu-pruner", "Accept-Encoding": "identity"})
        self._settings_headers = tuple(settings.headers)
        for name, value in settings.headers.items():
            self._session.headers[name] = value.get_secret_value()
        if self.verify is False:
            # Asked for in the settings and repeated in the notes; once per request is no news.
            urllib3.disable_warnings(InsecureRequestWarning)

    def mount(self, prefix: str, adapter: BaseAdapter) -> None:
        """Use an adapter for URLs with this prefix."""
        self._session.mount(prefix, adapter)

    def close(self) -> None:
        """Release connections."""
        self._session.close()

    def take_notes(self) -> tuple[str, ...]:
        """Return the informational notes since the last call, each once."""
        notes = tuple(self._notes)
        self._notes.clear()
        return notes

    def request(self, method: str, url: str, **options: Unpack[_Options]) -> Answer:
        """Send one query as a form and return its complete, decoded answer.

        Raises:
            QueryTooLarge: the server, or our limits, ask for smaller questions.
            IncompleteData: the answer is partial or carries a warning.
            PrometheusError: no usable answer.
        """
        response, body = self._exchange(method, url, options.get("params"))
        sent = self._sent(response)
        if response.status_code in _MANY_REDIRECTS:
            raise PrometheusError(f"{self.server} {_redirected(response, sent)}")
        if response.status_code != requests.codes.ok:
            raise replies.refusal(response.status_code, body, server=self.server, sent=sent)
        reply = replies.read(body, server=self.server, sent=sent)
        self._notes.update(dict.fromkeys(quoted(note, sent=sent) for note in reply.infos))
        return Answer(reply)

    def backend(self) -> Backend:
        """Ask which server this is; one that does not tell is unknown.

        Raises:
            PrometheusError: it does not answer at all.
        """
        return self.product()[0]

    def product(self) -> tuple[Backend, str]:
        """Ask which server this is, and its version; empty where it does not tell.

        Raises:
            PrometheusError: it does not answer at all.
        """
        response, body = self._exchange("GET", f"{self.url}/api/v1/status/buildinfo", None)
        backend = recognise(body, response.headers)
        return backend, version_told(body, backend, sent=self._sent(response))

    def _exchange(
        self, method: str, url: str, form: Mapping[str, str | int | float] | None
    ) -> tuple[requests.Response, bytearray]:
        """Send one request and read its whole answer, whatever the status."""
        sent = self._clock.now()
        try:
            with self._session.request(
                method,
                url,
                data=form,
                timeout=(min(CONNECT_SECONDS, self._timeout), self._timeout),
                verify=self.verify,
                allow_redirects=False,
                stream=True,
            ) as response:
                body = self._body(response)
        except requests.RequestException as error:
            raise PrometheusError(f"{self.server} {self._failure(error)}") from error
        except OSError as error:
            raise PrometheusError(f"{self.server} {_broken(error)}") from error
        except ValueError as error:
            # A header or an address that cannot be sent. Its words hold the value: neither quoted
            # nor chained, because a chain ends in somebody's log.
            raise PrometheusError(f"{self.server} {_unsendable(error)}") from None
        date = response.headers.get("Date", "")
        found = skew(date, sent=sent, received=self._clock.now())
        if found is not None:
            self.clock_skew_seconds = found
        return response, body

    def _sent(self, response: requests.Response) -> Sent:
        """Return the credentials that a request carried in its headers."""
        headers = response.request.headers
        names = ("Authorization", *self._settings_headers)
        return NOTHING_SENT.also(*(headers.get(name, "") for name in names))

    def _body(self, response: requests.Response) -> bytearray:
        """Read the body, within the limits of size and time."""
        body = bytearray()
        deadline = time.monotonic() + self._timeout
        # Whatever has come, however little: a full chunk of a trickle may take hours.
        while chunk := self._piece(response):
            body += chunk
            if len(body) > LARGEST_BODY:
                raise replies.QueryTooLarge(
                    f"{self.server} sent more than {LARGEST_BODY >> 20} MiB in one answer"
                )
            if time.monotonic() > deadline:
                raise PrometheusError(f"{self.server} {self._slow()}")
        return body

    def _piece(self, response: requests.Response) -> bytes:
        """Return what has come of a body, decoded; empty at its end."""
        try:
            return response.raw.read1(_CHUNK, decode_content=True)
        except ReadTimeoutError as error:
            raise PrometheusError(f"{self.server} {self._slow()}") from error
        except HTTPError as error:
            raise PrometheusError(f"{self.server} {_BROKEN_OFF}") from error

    def _slow(self) -> str:
        return (
            f"did not answer within {self._timeout:g} s; check its load, or raise "
            "prometheus.timeout_seconds"
        )

    def _failure(self, error: requests.RequestException) -> str:
        """Say what went wrong on the way. The library's own text may hold a secret: not quoted."""
        cause = error.args[0] if error.args else None
        reason = cause.reason if isinstance(cause, MaxRetryError) else cause
        if isinstance(error, requests.exceptions.SSLError):
            return (
                "shows a certificate that cannot be verified; set prometheus.ca_file to the CA "
                f"bundle that signed it ({quoted(str(reason))})"
            )
        if isinstance(error, requests.Timeout):
            return self._slow()
        if isinstance(reason, NameResolutionError):
            return "cannot be found: the host name does not resolve; check prometheus.url"
        if isinstance(error, requests.ConnectionError):
            return "cannot be reached; check prometheus.url, and that it runs and may be reached"
        return f"could not be asked ({type(error).__name__}); check the prometheus settings"


def _broken(error: OSError) -> str:
    """Say what a failure outside of HTTP means: in practice, the CA bundle."""
    return f"could not be asked: {quoted(str(error))}; check prometheus.ca_file"


def _unsendable(error: ValueError) -> str:
    return (
        f"could not be asked: a header or the address cannot be sent ({type(error).__name__}); "
        "check prometheus.token, prometheus.token_file, prometheus.headers and prometheus.url"
    )


def _redirected(response: requests.Response, sent: Sent) -> str:
    host = urlsplit(response.headers.get("Location", "")).hostname
    target = f" to {quoted(host, sent=sent)}" if host else ""
    return (
        f"redirects{target} (HTTP {response.status_code}): probably to a login page; "
        "set prometheus.url to the final address, or set prometheus.token_file"
    )
