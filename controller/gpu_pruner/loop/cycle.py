"""One cycle, read as a sentence: observe, resolve, decide, notify, act, record.

A replica that does not lead goes half the way: it observes and decides, so that it can answer and
take over at any time, and notifies, acts and records nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import structs

from gpu_pruner.decide.breaker import find_breakers
from gpu_pruner.decide.plan import plan
from gpu_pruner.decide.pulse import Pulse, applied, feel
from gpu_pruner.loop.absence import Absence
from gpu_pruner.loop.alone import Alone
from gpu_pruner.loop.books import Books
from gpu_pruner.loop.execution import Executor
from gpu_pruner.loop.explaining import Answer, Question, answered, as_it_runs
from gpu_pruner.loop.observation import Observation, Observer
from gpu_pruner.loop.ports import History, Leadership, Switch, Term
from gpu_pruner.loop.refusals import Refusals
from gpu_pruner.loop.verification import verify
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.cluster import ClusterView
from gpu_pruner.model.plan import Action, Plan, Verification
from gpu_pruner.model.rules import Rules
from gpu_pruner.model.snapshot import Snapshot
from gpu_pruner.model.telemetry import TelemetrySource
from gpu_pruner.model.units import Timestamp
from gpu_pruner.record.aftermath import turned_out
from gpu_pruner.record.board import Board
from gpu_pruner.record.decisions import DecisionLog
from gpu_pruner.record.report import Counts, CycleReport
from gpu_pruner.resolve.assemble import assemble


@dataclass(slots=True, kw_only=True)
class Cycle:
    """The six verbs over the stages that carry them out."""

    observer: Observer
    source: TelemetrySource
    books: Books
    executor: Executor
    board: Board
    clock: Clock
    rules: Rules
    honor_labels: bool | None = None
    log: DecisionLog = field(default_factory=DecisionLog)
    refusals: Refusals = field(default_factory=Refusals)
    leadership: Leadership = field(default_factory=Alone)
    absence: Absence = field(default_factory=Absence)
    switch: Switch | None = None
    """None where nothing can be written, so that there is nothing to hold."""
    history: History | None = None
    """None where none is kept."""
    _term: Term | None = None
    """The term of the running cycle; None where another replica leads."""
    _hold: str = ""
    """Why everything is held."""
    _number: int = 0
    _pulse: Pulse | None = None
    _latest: Snapshot | None = None
    """For whoever asks between two cycles."""

    async def run(self) -> CycleReport:
        """Run one cycle, from the first look to the record of it.

        Raises:
            PrunerError: a stage failed as a whole. What was done until then stands in the books.
        """
        started_at = self.clock.now()
        self._term = self.leadership.begin_cycle()
        observation = await self._look(started_at)
        snapshot = self._resolve(observation)
        if self._term is None:
            return self._look_on(plan(snapshot, self.rules), observation)
        decided, verified = await self._decide(snapshot, observation)
        deliveries = await self.executor.notify(decided)
        outcomes = await self.executor.act(decided, deliveries)
        self.refusals.remember(outcomes)
        self.absence.remember(outcomes)
        counting = self.rules.delivering_channels
        ended = turned_out(decided, outcomes, deliveries, counting=counting)
        self._number += 1
        report = CycleReport(
            number=self._number,
            started_at=started_at,
            finished_at=self.clock.now(),
            plan=ended,
            outcomes=outcomes,
            deliveries=deliveries,
            breakers=decided.breakers,
            counts=_counts(observation, verified),
            telemetry_available=observation.screen is not None,
        )
        self._publish(report)
        self.log.record(ended)
        self.log.record_troubles(outcomes)
        self.leadership.complete_cycle(self._term, started_at)
        return report

    def _look_on(self, found: Plan, observation: Observation) -> CycleReport:
        """Publish what is known, for reading: workloads as the leader's books have them."""
        self._number += 1
        standing = tuple(
            structs.replace(one, book=one.workload.book, action=Action.NONE)
            for one in found.decisions
        )
        report = CycleReport(
            number=self._number,
            started_at=observation.at,
            finished_at=self.clock.now(),
            plan=replace(found, decisions=standing),
            breakers=found.breakers,
            counts=_counts(observation, ()),
            telemetry_available=observation.screen is not None,
            leading=False,
        )
        self._publish(report)
        return report

    def obey(self, rules: Rules) -> None:
        """Go by other rules from the next cycle on; to be called between two cycles."""
        self.rules = rules
        self.observer.obey(rules)
        self.executor = replace(self.executor, rules=rules)

    def failed(self, started_at: Timestamp, failure: str) -> None:
        """Record a cycle that did not come to its end.

        Args:
            started_at: when it began.
            failure: why, in one sentence.
        """
        self._number += 1
        self._publish(
            CycleReport(
                number=self._number,
                started_at=started_at,
                finished_at=self.clock.now(),
                telemetry_available=False,
                failure=failure,
                leading=self._term is not None,
            )
        )

    def _publish(self, report: CycleReport) -> None:
        self.board.publish(report)
        if self.history is not None:
            self.history.record(report)

    async def explain(self, question: Question) -> Answer:
        """Look anew, and answer what somebody asks; notify, do and remember nothing.

        For a process of its own: between the cycles of a controller it would count as a look.
        """
        observation = await self._look(self.clock.now())
        view = observation.view
        resolved = self._resolve(observation)
        snapshot, rules = as_it_runs(question, resolved, view, rules=self.rules)
        return await self._answered(question, snapshot, view, rules=rules)

    async def explain_latest(self, question: Question) -> Answer | None:
        """Answer what somebody asks from the latest look, with a measurement of its own.

        Returns:
            None before the first look.
        """
        if self._latest is None:
            return None
        return await self._answered(question, self._latest, self.observer.view(), rules=self.rules)

    async def _answered(
        self, question: Question, snapshot: Snapshot, view: ClusterView, *, rules: Rules
    ) -> Answer:
        return await answered(
            question, snapshot, view, source=self.source, clock=self.clock, rules=rules
        )

    async def _look(self, now: Timestamp) -> Observation:
        """Look at the telemetry, the cluster, and the switch."""
        observation = await self.observer.look(now)
        await self._look_at_switch()
        return observation

    async def _look_at_switch(self) -> None:
        self._hold = "" if self.switch is None else await self.switch.hold()

    def _resolve(self, observation: Observation) -> Snapshot:
        """Assemble the snapshot, and compare it with the one before."""
        snapshot = self._assembled(observation)
        if observation.screen is not None:
            view = observation.view
            self._pulse = feel(
                snapshot,
                view,
                before=self._pulse,
                rules=self.rules,
                proven=observation.screen.proven,
            )
        self._latest = applied(snapshot, self._pulse)
        return self._latest

    def _assembled(self, observation: Observation) -> Snapshot:
        """Assemble a snapshot, at a whole second: books are written to the second.

        A book that came back from the cluster then equals the one that was written, and the same
        warning keeps the same decision id.
        """
        view = self.books.applied_to(observation.view)
        found = find_breakers(
            view,
            self.rules,
            screen=observation.screen,
            failure=observation.failure,
            hold=self._hold,
        )
        snapshot = assemble(
            view,
            self.observer.reading(observation.at, honor_labels=self.honor_labels),
            now=float(int(observation.at)),
            rules=self.rules,
            breakers=found,
        )
        unattended = self.absence.unattended(view, self._term)
        return self.refusals.marked(replace(snapshot, unattended=unattended))

    async def _decide(
        self, snapshot: Snapshot, observation: Observation
    ) -> tuple[Plan, tuple[Verification, ...]]:
        """Plan; measure what the plan rests on; plan again on the measurement.

        Measuring takes its time, so the second plan looks at the cluster anew: what people said
        meanwhile counts.
        """
        first = plan(snapshot, self.rules)
        wanted = first.with_action(Action.VERIFY)
        if not wanted:
            return first, ()
        verified = await verify(wanted, self.source, clock=self.clock, rules=self.rules)
        await self._look_at_switch()
        anew = replace(observation, view=self.observer.view())
        self._latest = snapshot = applied(self._assembled(anew), self._pulse)
        second = plan(snapshot, self.rules, verifications=verified)
        self.refusals.remember_unproven(wanted, second)
        return second, tuple(verified.values())


def _counts(observation: Observation, verified: tuple[Verification, ...]) -> Counts:
    failed = sum(bool(one.failure) for one in verified) + (observation.screen is None)
    return Counts(query_successes=1 + len(verified) - failed, query_failures=failed)
