"""Plays a story: the simulated cluster, the real controller as its own process, one person.

The controller is started as a user would start it and spoken to over HTTP only, so that it can be
killed, restarted or replaced. The person (`operator`) resumes what the story wants back, and keeps
what it wants kept, with the real command line. `cli.demo` shows what happens here; tests play it
in a hurry.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from tornado.httpclient import AsyncHTTPClient, HTTPClientError

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.units import MINUTE, Timestamp
from gpu_pruner.settings.clock import ScaledClock
from gpu_pruner.settings.environment import ENDS_WITH_STDIN, without_settings
from gpu_pruner.sim.cluster import OPERATOR, SimulatedCluster
from gpu_pruner.sim.failures import ApiFailure
from gpu_pruner.sim.happenings import line_of
from gpu_pruner.sim.judge import CONTROLLER, Case, Judgement, Request, Scene, judge
from gpu_pruner.sim.scenes import request_of, scene_of
from gpu_pruner.sim.story import NOTICE, WINDOW, Ending, Part, Story

_TICK = 0.25
"""Real seconds between two looks at the stage."""
_KEEP = ("--for", "8h", "--reason", "the deadline is tonight")
"""Longer than any story."""


class ToldWorkload(msgspec.Struct, frozen=True, rename="camel"):
    """A workload as the controller's API tells it; fields that are not shown are left out."""

    ref: str
    verdict: str
    reason: str
    message: str
    state: str
    gpus: int = 0
    pause_at: str | None = None


class ToldBreaker(msgspec.Struct, frozen=True):
    """A breaker that is open, as the controller's API tells it."""

    name: str
    message: str


class Told(msgspec.Struct, frozen=True):
    """What the controller's API says of its newest cycle."""

    workloads: tuple[ToldWorkload, ...] = ()
    breakers: tuple[ToldBreaker, ...] = ()
    cycle: Mapping[str, str | int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What there is to see at one moment."""

    minute: float
    """Simulated minutes since the begin."""
    now: Timestamp
    judgements: tuple[Judgement, ...]
    scenes: Mapping[str, Scene]
    """By reference."""
    told: Mapping[str, ToldWorkload]
    """By reference: what the controller says; empty while it does not answer."""
    cycle: Told
    """The same as a whole, with its breakers."""
    happened: tuple[str, ...]
    """What happened so far, one line each, oldest first."""
    ended: frozenset[str] = frozenset()
    """References of parts that ended before: what becomes of them later is a new story."""

    @property
    def over(self) -> bool:
        """Return whether every part ended as told, and is told as it ended."""
        return all(one.over for one in self.judgements) and not self.misreports()

    @property
    def faults(self) -> tuple[str, ...]:
        """Return every fault, one sentence each, with the reference."""
        return tuple(f"{one.part.ref} {fault}" for one in self.judgements for fault in one.faults)

    def misreports(self) -> tuple[str, ...]:
        """Return where the controller tells another reason than the story."""
        wrong: list[str] = []
        for one in self.judgements:
            told = self.told.get(one.part.ref)
            if one.part.ref in self.ended:
                continue
            if told is None:
                wrong.append(f"{one.part.ref} is not told of")
            elif not _fits(told.reason, one.part):
                wrong.append(f"{one.part.ref} is told to be {told.reason}")
        return tuple(wrong)


def _fits(reason: str, part: Part) -> bool:
    return not part.reasons or reason in {one.value for one in part.reasons}


LEASE = ["--lease-duration", "5", "--lease-renew-deadline", "4", "--lease-retry", "1"]
"""Real seconds, of which each is a minute and more here: who follows a killed controller waits."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A story being played. Use it as an async context manager, then `play`."""

    story: Story
    speed: float
    """Simulated seconds per real second."""
    crds: tuple[Mapping[str, object], ...] = ()
    """CustomResourceDefinitions that are installed before the begin."""
    controller: tuple[str, ...] = ()
    """Command in the controller's place; it gets the same arguments. Empty: the controller."""
    log: Path | None = None
    """Where the controller's log lines go; None: nowhere."""
    cluster: SimulatedCluster = field(init=False)
    clock: ScaledClock = field(init=False)
    port: int = 0
    """Where the controller listens."""
    _processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _folder: Path = field(init=False)
    _first: dict[str, Scene] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    """Parts for which a person did what the story wants of one."""
    _ended: set[str] = field(default_factory=set)
    """Parts that were seen, whole and told as whole, after they were given back."""
    _happened: list[str] = field(default_factory=list)
    _read: int = 0
    _writes: list[Request] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Build the cluster and start the controller.

        Raises:
            ConfigurationError: the API server refuses an object of the story.
        """
        try:
            await self._build()
        except ApiFailure as failure:
            await self._end()
            told = f"the simulated API server refuses this world: {failure.message}"
            raise ConfigurationError(told) from None
        except BaseException:
            await self._end()
            raise
        return self

    async def _build(self) -> None:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        begin = time.time()
        self.clock = ScaledClock(begin, begin, self.speed)
        self.cluster = SimulatedCluster(self.story, self.clock, crds=self.crds)
        await self._stack.enter_async_context(self.cluster)
        self.port = self.port or _free_port()
        for user in (CONTROLLER, OPERATOR):
            (self._folder / user).write_text(self.cluster.kubeconfig(user), encoding="utf-8")
        self.environment.write_text(self._environment(), encoding="utf-8")
        self._first = {one.ref: scene_of(one, self.cluster) for one in self.story.workloads}
        await self.start_controller()

    @property
    def environment(self) -> Path:
        """Return the file that another shell sources to look at the same cluster and time."""
        return self._folder / "environment"

    def _environment(self) -> str:
        """Return the variables of a person at the keyboard, as lines for a shell."""
        variables = {
            "KUBECONFIG": str(self._folder / OPERATOR),
            "GPU_PRUNER_SCRAPE_EXPORTERS": ",".join(self.cluster.exporter_urls),
            "GPU_PRUNER_SETTLE_SECONDS": "0",
            **self.clock.environment(),
        }
        return "".join(f"export {name}={shlex.quote(one)}\n" for name, one in variables.items())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the controller, then the cluster."""
        await self._end()

    async def _end(self) -> None:
        await self.stop_controller(signal.SIGTERM)
        await self._stack.aclose()

    async def start_controller(self) -> None:
        """Start the controller with the numbers of a cluster, speaking to the simulated one."""
        command = self.controller or (sys.executable, "-m", "gpu_pruner.cli")
        exporters = [word for url in self.cluster.exporter_urls for word in ("--exporter", url)]
        arguments = ["run", "-r", "scale-down", "-t", f"{WINDOW:.0f}s", "-g", "0", "-c", "60"]
        arguments += ["--ack-grace-period", f"{NOTICE:.0f}", "--scrape-interval", "30"]
        arguments += ["--listen-address", "127.0.0.1", "--listen-port", str(self.port)]
        arguments += LEASE
        arguments += ["--kubeconfig", str(self._folder / CONTROLLER), "-l", "json", *exporters]
        pipe = asyncio.subprocess.PIPE  # it ends with us, however we end
        self._processes.append(await self._run(*command, *arguments, stdin=pipe))

    async def stop_controller(self, how: signal.Signals) -> None:
        """Send the controller a signal and wait for its end; SIGKILL leaves it no say."""
        stopping = tuple(self._processes)
        self._processes.clear()  # at once: an end that is asked for is no death that ends the play
        for process in stopping:
            if process.returncode is None:
                process.send_signal(how)
                try:
                    await asyncio.wait_for(process.wait(), timeout=10)
                except TimeoutError:
                    process.kill()
                    await process.wait()

    async def play(self, watch: Callable[[Moment], None]) -> Moment:
        """Play until the story is over, is at fault, or has lost its patience.

        Args:
            watch: called with every look at the stage.

        Returns:
            The last moment; `Moment.over` says whether the story ended as told.
        """
        while True:
            moment = await self.look()
            watch(moment)
            lost = moment.minute > self.story.minutes
            if moment.over or moment.faults or lost or self._controller_died():
                return moment
            await self._do_what_people_do(moment)
            await asyncio.sleep(_TICK)

    async def look(self) -> Moment:
        """Look at everything once."""
        self._read_requests()
        parts = self.story.workloads
        now, scenes = self.clock.now(), {one.ref: scene_of(one, self.cluster) for one in parts}
        cycle = await self._told()
        told = {one.ref: one for one in cycle.workloads}
        return Moment(
            minute=(now - self.cluster.begin) / MINUTE,
            now=now,
            judgements=tuple(self._judged(one, now, scenes[one.ref], told) for one in parts),
            scenes=scenes,
            told=told,
            cycle=cycle,
            happened=tuple(self._happened),
            ended=frozenset(self._ended),
        )

    def _judged(
        self, part: Part, now: Timestamp, scene: Scene, told: Mapping[str, ToldWorkload]
    ) -> Judgement:
        case = Case(
            begin=self.cluster.begin,
            at=now,
            first=self._first[part.ref],
            now=scene,
            requests=self._writes,
            others=self._places - {part.place},
        )
        found = judge(part, case)
        reason = told[part.ref].reason if part.ref in told else ""
        if part.ending is Ending.RESUMED and found.over and _fits(reason, part):
            self._ended.add(part.ref)
        if part.ref in self._ended and not found.faults:
            return replace(found, over=True)
        return found

    @property
    def _places(self) -> frozenset[str]:
        return frozenset(one.place for one in self.story.workloads)

    async def _do_what_people_do(self, moment: Moment) -> None:
        """Keep what the story wants kept, and give back what it wants back, once it is due."""
        for part in sorted(self.story.workloads, key=lambda one: not one.keep):
            phase = moment.scenes[part.ref].phase
            if part.ref in self._asked:
                continue
            if part.keep and phase == "Warned":
                await self._ask(moment, "keep", part.ref, *_KEEP)
            elif part.ending is Ending.RESUMED and phase == "Paused":
                await self._ask(moment, "resume", part.ref)

    async def _ask(self, moment: Moment, verb: str, ref: str, *more: str) -> None:
        """Run one command of the person at the keyboard, once."""
        self._asked.add(ref)
        command = (sys.executable, "-m", "gpu_pruner.cli", verb, ref, *more)
        process = await self._run(*command, "--kubeconfig", str(self._folder / OPERATOR))
        if await process.wait() != 0:
            self._tell(moment.now, f"{OPERATOR} could not {verb} {ref}")

    async def _run(
        self, *command: str, stdin: int = asyncio.subprocess.DEVNULL
    ) -> asyncio.subprocess.Process:
        own = {ENDS_WITH_STDIN: "true"} if stdin == asyncio.subprocess.PIPE else {}
        sink = Path(self.log or os.devnull).open("ab")  # noqa: SIM115, ASYNC230 - the child keeps it
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                env={**without_settings(os.environ), **self.clock.environment(), **own},
                stdin=stdin,
                stdout=sink,
                stderr=sink,
            )
        finally:
            sink.close()

    def _controller_died(self) -> bool:
        return any(process.returncode is not None for process in self._processes)

    async def _told(self) -> Told:
        client = AsyncHTTPClient()
        url = f"http://127.0.0.1:{self.port}/api/v1/workloads"
        try:
            answer = await client.fetch(url, request_timeout=5, connect_timeout=2)
            return msgspec.json.decode(answer.body, type=Told)
        except (HTTPClientError, OSError, msgspec.DecodeError):
            return Told()

    def _read_requests(self) -> None:
        for record in self.cluster.requests[self._read :]:
            self._read += 1
            if record.is_write:
                request = request_of(record)
                self._writes.append(request)
                if line := line_of(record, request.body):
                    self._tell(record.at, line)

    def _tell(self, at: Timestamp, line: str) -> None:
        minute = (at - self.cluster.begin) / MINUTE
        self._happened.append(f"minute {minute:3.0f}  {line}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
