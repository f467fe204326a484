"""Everything that a check looks at, asked at once; the answers as findings.

The telemetry source, the cluster watch, the screen, the breakers and the plan are those of a cycle.
Writes nothing: reviews are questions, which nobody stores. Called by `cli.check`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

import msgspec

from gpu_pruner.check import cluster, coverage, devices, fields, hubs, rights, telemetry
from gpu_pruner.check.cluster import GUARDS, ClusterLook, Guard
from gpu_pruner.check.finding import Finding
from gpu_pruner.check.hub_questions import look_at
from gpu_pruner.check.hubs import HubLook
from gpu_pruner.check.rights import Need
from gpu_pruner.check.telemetry import TelemetryLook
from gpu_pruner.decide.breaker import find_breakers
from gpu_pruner.decide.device import Yardstick
from gpu_pruner.decide.plan import plan
from gpu_pruner.errors import ClusterError, NotFound, ObservationError
from gpu_pruner.kube.client import ClusterClient
from gpu_pruner.kube.lease import lease_namespace
from gpu_pruner.kube.resources import Resource
from gpu_pruner.kube.reviews import our_name, we_may
from gpu_pruner.kube.throttle import TokenBucket
from gpu_pruner.kube.wire import Bare
from gpu_pruner.loop.observation import Observation, Observer
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.model.telemetry import TelemetrySource
from gpu_pruner.model.units import Timestamp
from gpu_pruner.observe.cluster import ClusterWatch
from gpu_pruner.observe.hold import HoldSwitch
from gpu_pruner.resolve.assemble import Reading, assemble
from gpu_pruner.settings.schema import Settings

AT_ONCE = 16
"""Questions under way to the API server at the same time."""
_PER_SECOND, _BURST = 50.0, 150.0
"""A person waits: more than a controller asks for, and less than kubectl does (50, and 300)."""

_ADMISSION = "admissionregistration.k8s.io"
_POLICIES = Resource(
    group=_ADMISSION,
    version="v1",
    plural="validatingadmissionpolicies",
    kind="ValidatingAdmissionPolicy",
    namespaced=False,
)
_BINDINGS = Resource(
    group=_ADMISSION,
    version="v1",
    plural="validatingadmissionpolicybindings",
    kind="ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
T = TypeVar("T")
_Plurals: TypeAlias = frozenset[str] | None
"""Plurals of a group; None where the server does not tell."""


class _Version(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    git_version: str = ""


class _Listed(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Resources(msgspec.Struct, frozen=True, gc=False):
    resources: tuple[_Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A cluster without anything: telemetry is looked at before, and without, the API server."""

    def view(self) -> ClusterView:
        """Return nothing."""
        return ClusterView()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Telemetry:
    """What the telemetry source said, and the cycle's reading of it."""

    look: TelemetryLook
    observation: Observation
    reading: Reading


@dataclass(slots=True)
class Examination:
    """One check of one set-up."""

    settings: Settings
    clock: Clock
    source: TelemetrySource
    waiting: set[str] = field(default_factory=lambda: {"the telemetry source", "the API server"})
    """What has not answered yet, for whoever waits."""

    async def findings(self) -> tuple[Finding, ...]:
        """Ask everything, and say what is so.

        Raises:
            ConfigurationError: no API server is configured, or its configuration is unusable.
        """
        client = await ClusterClient.connect(self.settings.kubernetes, clock=self.clock)
        client.bucket = TokenBucket(per_second=_PER_SECOND, burst=_BURST)
        try:
            told, seen, said = await asyncio.gather(
                self._telemetry(), self._cluster(client), self._hubs()
            )
        finally:
            await client.close()
        return tuple(self._diagnosed(told, seen, said))

    async def _telemetry(self) -> _Telemetry:
        now = self.clock.now()
        await self.source.start()
        look = TelemetryLook()
        if self.settings.prometheus is not None:  # exporters tell only what they were scraped for
            look = await self._surveyed(look, now)
        # Two windows cost the server twice as much, and few fleets have devices that need them.
        windows = 1 if look.survey is not None and not look.survey.only_util else 2
        observer = Observer(self.source, _Nothing(), self.settings.rules(), windows=windows)
        observation = await observer.look(now)
        look = replace(look, screen=observation.screen, failure=observation.failure)
        if self.settings.prometheus is None:
            look = await self._surveyed(look, now)
        self.waiting.discard("the telemetry source")
        reading = observer.reading(now, honor_labels=self._honor_labels)
        return _Telemetry(look=look, observation=observation, reading=reading)

    async def _hubs(self) -> Sequence[HubLook]:
        if not self.settings.jupyter_hubs:
            return ()
        self.waiting.add("JupyterHub")
        looks = await asyncio.gather(*(look_at(one) for one in self.settings.jupyter_hubs))
        self.waiting.discard("JupyterHub")
        return looks

    async def _surveyed(self, look: TelemetryLook, now: Timestamp) -> TelemetryLook:
        try:
            return replace(look, survey=await self.source.survey(now=now))
        except ObservationError as error:
            return replace(look, trouble=str(error))

    async def _cluster(self, client: ClusterClient) -> ClusterLook:
        look = ClusterLook(address=client.address)
        try:
            version = await client.read("/version", decode=_Version)
        except ClusterError as error:
            self.waiting.discard("the API server")
            return replace(look, failure=str(error))
        look = replace(look, version=version.git_version)
        look, answered = await asyncio.gather(self._watched(client, look), self._asked(client))
        self.waiting.discard("the API server")
        return replace(
            look,
            who=answered.who,
            served=answered.served,
            answers=answered.answers,
            unasked=answered.unasked,
            guards=answered.guards,
        )

    async def _watched(self, client: ClusterClient, look: ClusterLook) -> ClusterLook:
        watch = ClusterWatch(client, clock=self.clock, custom=self.settings.custom_levers)
        try:
            await watch.start()
            switch = HoldSwitch(client, namespace=self._namespace)
            return replace(look, view=watch.view(), hold=await switch.hold())
        except ClusterError as error:
            return replace(look, failure=str(error))
        finally:
            await watch.close()

    async def _asked(self, client: ClusterClient) -> ClusterLook:
        turns = asyncio.Semaphore(AT_ONCE)

        async def in_turn(question: Awaitable[T]) -> T:
            async with turns:
                return await question

        wanted = rights.needs(self.settings, namespace=self._namespace)
        served = await _served(client, {one.right.resource for one in wanted}, in_turn)
        asked = [one for one in wanted if one.right.resource in served]
        answers = await asyncio.gather(*(in_turn(_may(one, client)) for one in asked))
        guards = await asyncio.gather(*(in_turn(_guard(client, name)) for name in GUARDS))
        return ClusterLook(
            address=client.address,
            who=await _who(client),
            served=served,
            answers={
                one: yes for one, yes in zip(asked, answers, strict=True) if isinstance(yes, bool)
            },
            unasked=tuple(dict.fromkeys(one for one in answers if isinstance(one, str))),
            guards=dict(zip(GUARDS, guards, strict=True)),
        )

    def _diagnosed(
        self, told: _Telemetry, seen: ClusterLook, said: Sequence[HubLook]
    ) -> Iterator[Finding]:
        rules, mode = self.settings.rules(), self.settings.mode
        direct = self.settings.prometheus is None
        look, screen = told.look, told.look.screen
        honor = self.settings.prometheus.honor_labels if self.settings.prometheus else None
        yield from telemetry.findings(look, rules, honor_labels=honor, direct=direct)
        if look.survey is not None:
            proven = frozenset() if screen is None else screen.proven
            yield from fields.findings(look.survey, rules, proven=proven)
        yield from cluster.findings(seen, mode=mode)
        yield from rights.findings(seen.answers, mode=mode, who=seen.who, unasked=seen.unasked)
        for one in said:
            yield from hubs.findings(one, mode=mode)
        yield from cluster.channels(seen.answers, mode=mode)
        yield from cluster.outside(self.settings.channels)
        yield from cluster.clocks(
            telemetry=None if screen is None or direct else screen.clock_skew_seconds,
            cluster=None if seen.view is None else seen.view.clock_skew_seconds,
            source="Prometheus" if not direct else "the exporters",
        )
        if seen.view is None:
            yield cluster.unseen_breakers(seen.failure)
            return
        if screen is not None:
            yield from self._judged(told, seen.view, direct=direct)
        yield from cluster.breakers(
            find_breakers(seen.view, rules, screen=screen, failure=look.failure, hold=seen.hold)
        )

    def _judged(self, told: _Telemetry, view: ClusterView, *, direct: bool) -> Iterator[Finding]:
        """Say what a cycle would make of the devices, by the code of a cycle."""
        rules = self.settings.rules()
        now: Timestamp = float(int(told.observation.at))
        snapshot: Snapshot = assemble(view, told.reading, now=now, rules=rules)
        interval = told.reading.scrape_interval_seconds
        yardstick = Yardstick(rules=rules, at=now, scrape_interval_seconds=interval)
        evidence = told.reading.evidence.values()
        yield from coverage.findings(evidence, view, yardstick, grows=direct)
        if evidence or not direct:
            yield from devices.findings(snapshot, plan(snapshot, rules))

    @property
    def _namespace(self) -> str:
        return lease_namespace(self.settings.lease)

    @property
    def _honor_labels(self) -> bool | None:
        return self.settings.prometheus.honor_labels if self.settings.prometheus else True


async def _served(
    client: ClusterClient,
    resources: set[Resource],
    in_turn: Callable[[Awaitable[_Plurals]], Awaitable[_Plurals]],
) -> frozenset[Resource]:
    """Return those of these resources that the server has, or may have where it does not tell."""
    places = sorted({(one.group, one.version) for one in resources})
    answers = await asyncio.gather(*(in_turn(_plurals(client, *place)) for place in places))
    found = dict(zip(places, answers, strict=True))

    def may_be_there(one: Resource) -> bool:
        plurals = found[one.group, one.version]
        return plurals is None or one.plural in plurals

    return frozenset(filter(may_be_there, resources))


async def _plurals(client: ClusterClient, group: str, version: str) -> _Plurals:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        found = await client.read(path, decode=_Resources)
    except NotFound:
        return frozenset()
    except ClusterError:
        return None
    return frozenset(one.name for one in found.resources)


async def _may(need: Need, client: ClusterClient) -> bool | str:
    """Return whether we have a right, or why that could not be asked."""
    try:
        return await we_may(need.right, client)
    except ClusterError as error:
        return str(error)


async def _who(client: ClusterClient) -> str:
    try:
        return await our_name(client)
    except ClusterError:
        return ""


async def _guard(client: ClusterClient, name: str) -> Guard:
    try:
        for kind in (_POLICIES, _BINDINGS):
            await client.get(kind, name, decode=Bare)
    except NotFound:
        return Guard.ABSENT
    except ClusterError:
        return Guard.UNSEEN
    return Guard.THERE
