"""One connection to the API server: reads, patches, creations and watches, as raw bytes.

The official client does credentials, TLS and the connection pool; this class adds limits on time
and rate, decodes with `msgspec`, and turns every failure into `errors.ClusterError`. It never
retries a write and never decides anything. `kube.reflector`, `act`, `notify` and `cli` call it.

Limits on time are real seconds; only the comparison with the server's clock uses the `Clock`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Generic, Protocol, Self, TypeVar

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.config import ConfigException

from gpu_pruner.errors import ClusterError, ConfigurationError, NotLeading
from gpu_pruner.kube import answers, bodies, redirects
from gpu_pruner.kube.bodies import LARGEST_LIST, LARGEST_OBJECT, LARGEST_PAGE
from gpu_pruner.kube.credentials import Credentials
from gpu_pruner.kube.outage import Outage
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.throttle import TokenBucket
from gpu_pruner.kube.wire import ObjectList
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.foreign import NOTHING_SENT, Sent, skew
from gpu_pruner.model.units import Seconds, Timestamp
from gpu_pruner.settings.schema import KubernetesSettings

T = TypeVar("T")
Query = Sequence[tuple[str, str]]

_MERGE_PATCH = "application/merge-patch+json"
_UNAUTHORIZED = 401
_FIRST_REFUSAL = 300
_FIRST_FAILURE = 500
_BODY_SHOWN = 4096
_RENEW_EVERY: Seconds = 30.0
_LONG = 6
"""A page of a list may take so many times as long as an object, as long as bytes keep coming."""


class Fence(Protocol):
    """What writes have to pass; `kube.lease_elector.Elector` is one."""

    def seconds_left(self) -> Seconds:
        """Return how long from now a write may still be under way; 0 or less: it must not begin."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What is asked of the server."""

    method: str
    path: str
    query: Query = ()
    body: Mapping[str, object] | None = None
    content_type: str = "application/json"

    @property
    def asked(self) -> str:
        """Return what is asked, for messages."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    items: tuple[T, ...]
    resource_version: str
    """Of the list as a whole: where a watch goes on."""


@dataclass(slots=True)
class ClusterClient:
    """Talks to one API server. Make it with `connect`, end it with `close`."""

    _api: ApiClient
    _credentials: Credentials
    _clock: Clock
    timeout_seconds: Seconds
    """Longest wait for an answer, or between two parts of a long one."""
    bucket: TokenBucket = field(default_factory=TokenBucket)
    outage: Outage = field(default_factory=Outage)
    _fence: Fence | None = None
    _renewed_at: Seconds = float("-inf")
    sent: Sent = NOTHING_SENT
    """Our credentials, which no message may hold when the server repeats them."""
    clock_skew_seconds: Seconds = 0.0
    """The server's ``Date`` minus our clock, from the newest answer; 0 where it cannot be told."""

    @classmethod
    async def connect(
        cls, settings: KubernetesSettings, *, clock: Clock, user_agent: str = "gpu-pruner"
    ) -> Self:
        """Prepare a connection. Nothing is sent yet.

        Args:
            settings: section ``kubernetes``.
            clock: what the server's clock is compared with.
            user_agent: shows in the server's audit log.

        Raises:
            ConfigurationError: no API server is configured, or its configuration is unusable.
        """
        credentials = await Credentials.load(settings)
        credentials.configuration.trace_configs = [redirects.refused()]
        api = ApiClient(configuration=credentials.configuration)
        api.user_agent = user_agent
        return cls(api, credentials, clock, settings.timeout_seconds)

    def fenced(self, fence: Fence) -> ClusterClient:
        """Return a view of this connection whose writes go out only while the fence is open.

        Reads pass at any time. The view shares the connections, so only the original is closed.
        """
        return replace(self, _fence=fence)

    async def close(self) -> None:
        """Give back the connections."""
        await self._api.close()  # type: ignore[no-untyped-call]  # the library is not typed here

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", decode: type[T]
    ) -> T:
        """Read one object.

        Args:
            resource: its kind.
            name: its name.
            namespace: its namespace; empty for kinds without one.
            decode: what to make of the body, usually a Struct of `kube.wire`.

        Raises:
            ClusterError: `NotFound`, `Forbidden`, `Throttled`, or no usable answer.
        """
        request = _Request(method="GET", path=resource.path(namespace=namespace, name=name))
        return self._decoded(await self._exchange(request), decode, asked=request)

    async def read(self, path: str, *, decode: type[T]) -> T:
        """Read a document that is no object: ``/version``, or what a group has; as `get` does."""
        request = _Request(method="GET", path=path)
        return self._decoded(await self._exchange(request), decode, asked=request)

    async def list_pages(
        self,
        resource: Resource,
        *,
        decode: type[T],
        namespace: str = "",
        limit: int = 500,
        params: Query = (),
    ) -> AsyncIterator[Page[T]]:
        """Read all objects of a kind, page by page.

        Args:
            resource: the kind.
            decode: what to make of each item; `msgspec.Raw` leaves them undecoded.
            namespace: where; empty for all namespaces.
            limit: items per page; 0 for one page, however long.
            params: more query parameters, for example a label selector.

        Raises:
            ClusterError: `Gone` when the list took longer than the server remembers; `NotFound`
                when the kind is not installed; `Forbidden`; `Throttled`; or no usable answer.
        """
        query = [*params, *([("limit", str(limit))] if limit else [])]
        largest = LARGEST_PAGE if limit else LARGEST_LIST
        token = ""
        while True:
            more = [("continue", token)] if token else []
            request = _Request(
                method="GET",
                path=resource.path(namespace=namespace),
                query=[*query, *more],
            )
            body = await self._exchange(request, times=_LONG, largest=largest)
            page = self._decoded(body, ObjectList[decode], asked=request)  # type: ignore[valid-type]  # a generic Struct is made for the type at run time
            yield Page(page.items or (), page.metadata.resource_version)
            if not page.metadata.more:
                return
            token = page.metadata.more

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """Merge a patch into one object, once.

        Args:
            resource: its kind.
            name: its name.
            body: the merge patch (RFC 7386). ``metadata.uid`` and ``metadata.resourceVersion``
                in it are preconditions: the server refuses when they differ.
            namespace: its namespace.
            subresource: for example ``status``.

        Returns:
            The object as the server stored it, JSON.

        Raises:
            ClusterError: `Conflict` when the object changed, `NotFound`, `Forbidden`, `Throttled`,
                or no usable answer; in that last case the patch may have been carried out.
        """
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return await self._exchange(
            _Request(method="PATCH", path=path, body=body, content_type=_MERGE_PATCH)
        )

    async def create(
        self, resource: Resource, body: Mapping[str, object], *, namespace: str = ""
    ) -> bytes:
        """Create one object, once.

        Args:
            resource: its kind.
            body: the object.
            namespace: its namespace.

        Returns:
            The object as the server stored it, JSON.

        Raises:
            ClusterError: `Conflict` when the name is taken, and else as for `patch`.
        """
        path = resource.path(namespace=namespace)
        return await self._exchange(_Request(method="POST", path=path, body=body))

    @asynccontextmanager
    async def watch(
        self, resource: Resource, *, query: Query, silence_seconds: Seconds
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch on a kind in all namespaces; the block gets its lines, one event each.

        Args:
            resource: the kind.
            query: query parameters besides ``watch``, with the ``resourceVersion`` to go on from.
            silence_seconds: without a byte for so long the watch is taken for dead.

        Raises:
            ClusterError: `Gone` when that version is too old, and else as for `get`; also from
                inside the block, when the stream breaks.
        """
        request = _Request(method="GET", path=resource.path(), query=[("watch", "true"), *query])
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=self.timeout_seconds, sock_read=silence_seconds
        )
        with self._translated(waited=silence_seconds):
            answer = await self._send(request, limits)
            try:
                yield bodies.lines(answer, asked=request.asked)
            finally:
                bodies.hang_up(answer)

    @property
    def address(self) -> str:
        """Return scheme, host and port of the API server."""
        return answers.place(str(self._api.configuration.host))

    async def _exchange(
        self, request: _Request, *, times: int = 1, largest: int = LARGEST_OBJECT
    ) -> bytes:
        """Send one request and return the whole body of its good answer."""
        wait = self.timeout_seconds
        limits = aiohttp.ClientTimeout(total=wait * times, sock_read=wait)
        with self._translated(waited=wait):
            answer = await self._send(request, limits)
            try:
                return await bodies.whole(answer, asked=request.asked, largest=largest)
            finally:
                bodies.hang_up(answer)

    async def _send(
        self, request: _Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send one request and return its good answer, the body still unread."""
        await self.bucket.take()
        method, url, headers = await self._prepared(request)
        limits = self._within_fence(request, limits)
        sent = self._clock.now()
        try:
            reply = await self._api.rest_client.request(  # type: ignore[no-untyped-call]  # as above
                method, url, headers=headers, body=request.body, _request_timeout=limits
            )
        except aiohttp.ClientError:
            raise
        except ClusterError:  # a redirect
            self.outage.failed()
            raise
        except ValueError:
            # A token or an address that no request can carry; its words may hold it: not chained.
            raise answers.unsendable(self.address) from None
        answer: aiohttp.ClientResponse = reply.response
        self._compare_clocks(answer, sent)
        if answer.status < _FIRST_FAILURE:
            self.outage.answered()
        else:
            self.outage.failed()
        if answer.status >= _FIRST_REFUSAL:
            async with answer:
                raise await self._refused(request, answer)
        if answers.is_page(answer.headers):
            bodies.hang_up(answer)
            raise answers.page_instead(self.address)
        return answer

    def _within_fence(
        self, request: _Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientTimeout:
        """Return limits within which a write may be sent and answered; the last look before it.

        Raises:
            NotLeading: the fence is closed.
        """
        if self._fence is None or request.method == "GET":
            return limits
        left = self._fence.seconds_left()
        if left <= 0:
            raise NotLeading(f"{request.asked}: not sent, because another replica may lead by now")
        total = min(left, limits.total or left)
        return aiohttp.ClientTimeout(
            total=total,
            sock_connect=limits.sock_connect,
            sock_read=limits.sock_read,
            ceil_threshold=total + 1,  # else aiohttp rounds up to whole seconds
        )

    async def _prepared(self, request: _Request) -> tuple[str, str, dict[str, str]]:
        """Return method, URL and headers, with a token that may just have been read anew."""
        try:
            method, url, headers, _, _ = await self._api.param_serialize(
                request.method,
                request.path,
                query_params=list(request.query),
                header_params={"Accept": "application/json", "Content-Type": request.content_type},
                auth_settings=["BearerToken"],
            )
        except ConfigException as error:
            raise ClusterError(f"Our credentials cannot be read: {error}") from error
        self.sent = self.sent.also(headers.get("authorization", ""))
        return method, url, headers

    async def _refused(self, request: _Request, answer: aiohttp.ClientResponse) -> ClusterError:
        """Return the error that an answer stands for; renew credentials that ran out."""
        body = await answer.content.read(_BODY_SHOWN)
        refusal = answers.refusal(
            answer.status, body, answer.headers, asked=request.asked, sent=self.sent
        )
        if answer.status == _UNAUTHORIZED and monotonic() - self._renewed_at > _RENEW_EVERY:
            self._renewed_at = monotonic()
            try:
                await self._credentials.renew()
            except ConfigurationError as error:
                return ClusterError(f"{refusal} They cannot be renewed: {error}", status=401)
        return refusal

    def _decoded(self, body: bytes, decode: type[T], *, asked: _Request) -> T:
        return bodies.decoded(body, decode, asked=asked.asked, sent=self.sent)

    def _compare_clocks(self, answer: aiohttp.ClientResponse, sent: Timestamp) -> None:
        found = skew(answer.headers.get("Date", ""), sent=sent, received=self._clock.now())
        if found is not None:
            self.clock_skew_seconds = found

    @contextmanager
    def _translated(self, *, waited: Seconds) -> Iterator[None]:
        """Turn the HTTP library's failures into ours."""
        try:
            yield
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.outage.failed()
            raise answers.unreachable(self.address, error, waited=waited, sent=self.sent) from error
