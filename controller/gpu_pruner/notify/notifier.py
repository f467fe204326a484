"""Delivering the messages of a cycle, and saying truthfully what arrived.

Puts letters into words and hands each message to every channel that takes it. All channels work at
the same time and each has so many seconds per cycle, so that a slow or dead one delays nothing
else. What a channel did not confirm is sent again in the next cycle under the same key, while it is
still true. Never decides, never raises for a message that could not be delivered. Called by `loop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from gpu_pruner.errors import NotificationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.letters import Letter
from gpu_pruner.model.orders import SEVERITIES, Delivery, Failure, MessageKind, Severity
from gpu_pruner.model.rules import Mode
from gpu_pruner.model.units import Seconds
from gpu_pruner.model.workload import RootRef
from gpu_pruner.notify.channel import Audience, Channel, audience_of
from gpu_pruner.notify.messages import Message, farewell, message_for

PATIENCE: Seconds = 5.0
"""Real seconds that the messages of one cycle get in one channel: what is then not confirmed is not
delivered. Short, because a pause may rest on a measurement of 15 seconds ago at most."""

AT_ONCE = 4
"""Messages under way in one channel at the same time."""

MOST_TRIES = 60
"""Cycles in which news is tried again: an hour, after which it is none. A warning that reached
nobody is no news but an open question, and is asked by the plan for as long as it takes."""

MOST_WAITING = 2_000
"""Messages that wait for their next try; the oldest give way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """One message on its way."""

    message: Message
    to: Audience
    only: frozenset[str] | None = None
    tries: int = 0
    """Cycles in which it was tried before."""

    def goes_through(self, channel: Channel) -> bool:
        """Return whether it is for this channel."""
        if self.only is not None:
            return channel.name in self.only
        return channel.takes(self.message.kind)


class Notifier:
    """Tells people through every channel there is."""

    def __init__(
        self,
        channels: Sequence[Channel],
        *,
        clock: Clock,
        mode: Mode,
        patience: Seconds = PATIENCE,
        may_tell: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a notifier.

        Args:
            channels: in the order in which deliveries name them.
            clock: dates the messages.
            mode: in dry run, messages are rehearsals.
            patience: real seconds of each channel with a timeout of its own, per cycle.
            may_tell: asked right before each message: False where another replica leads by now,
                which tells the same itself.
        """
        self._may_tell = may_tell
        self._channels = tuple(channels)
        self._clock = clock
        self._mode = mode
        self._patience = patience
        self._waiting: dict[tuple[str, RootRef], _Sending] = {}
        """What a channel has not confirmed yet; one message per channel and workload: the newest.
        """
        self._log = structlog.get_logger("gpu_pruner.notify")

    async def deliver(
        self, letters: Sequence[Letter], *, warned: frozenset[RootRef] = frozenset()
    ) -> tuple[Delivery, ...]:
        """Tell what there is to tell, once, and what was not confirmed before, again.

        Args:
            letters: of this cycle, one per workload.
            warned: workloads whose warning still runs; to all others none is sent again.

        Returns:
            One delivery per letter, in their order, and then one per message that was sent again.
        """
        new = [self._sending(one) for one in letters]
        again = self._again(new, warned)
        everything = [*new, *again]
        answers = await asyncio.gather(
            *(
                self._through(channel, [one for one in everything if one.goes_through(channel)])
                for channel in self._channels
            )
        )
        failed = {
            channel.name: answer for channel, answer in zip(self._channels, answers, strict=True)
        }
        self._remember(everything, failed)
        return tuple(self._told(one, failed) for one in everything)

    def _sending(self, letter: Letter) -> _Sending:
        decision, now = letter.decision, self._clock.now()
        if decision is None:
            message = farewell(letter.root, mode=self._mode, now=now)
        else:
            # What is only warned about is told in the words of a rehearsal.
            mode = Mode.DRY_RUN if decision.workload.warn_only else self._mode
            message = message_for(decision, letter.kind, mode=mode, now=now)
        return _Sending(message=message, to=audience_of(decision), only=letter.only)

    def _again(self, new: list[_Sending], warned: frozenset[RootRef]) -> list[_Sending]:
        """Return what waits and is still true, as one sending per message."""
        told = {
            (channel.name, one.message.root)
            for channel in self._channels
            for one in new
            if one.goes_through(channel)
        }
        found: dict[str, _Sending] = {}
        for (channel, root), one in list(self._waiting.items()):
            del self._waiting[channel, root]
            stale = SEVERITIES[one.message.kind] is Severity.WARNING and root not in warned
            if (channel, root) in told or stale or one.tries >= MOST_TRIES:
                continue
            before = found.get(one.message.key, one)
            only = frozenset({channel, *((before.only or ()) if before is not one else ())})
            found[one.message.key] = _Sending(
                message=one.message, to=one.to, only=only, tries=one.tries
            )
        return list(found.values())

    async def _through(self, channel: Channel, sendings: Iterable[_Sending]) -> dict[str, str]:
        """Send messages through one channel, in order.

        Returns:
            For each message's key, why it was not confirmed; empty where it was.
        """
        waiting = iter(list(sendings))
        found: dict[str, str] = {}
        loop = asyncio.get_running_loop()
        end = None if channel.timeout_seconds is None else loop.time() + self._patience

        async def work() -> None:
            for one in waiting:
                limit = None if end is None else end - loop.time()
                if self._may_tell():
                    found[one.message.key] = await _sent(channel, one, limit=limit)
                else:
                    found[one.message.key] = "another replica leads by now"

        # Events are written through a client that has its own turns and its own patience.
        await asyncio.gather(*(work() for _ in range(1 if end is None else AT_ONCE)))
        return found

    def _remember(self, sendings: Iterable[_Sending], failed: dict[str, dict[str, str]]) -> None:
        for one in sendings:
            for channel, answers in failed.items():
                if answers.get(one.message.key) and (one.only is None or channel in one.only):
                    again = _Sending(message=one.message, to=one.to, tries=one.tries + 1)
                    self._waiting[channel, one.message.root] = again
        while len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _told(self, one: _Sending, failed: dict[str, dict[str, str]]) -> Delivery:
        message, key = one.message, one.message.key
        mine = {name: answers[key] for name, answers in failed.items() if key in answers}
        via = tuple(name for name, why in mine.items() if not why)
        holding = {channel.name for channel in self._channels if channel.holds_alerts}
        delivery = Delivery(
            root=message.root,
            kind=message.kind,
            via=via,
            holding=tuple(name for name in via if name in holding),
            failures=tuple(Failure(channel=name, why=why) for name, why in mine.items() if why),
            is_repeat=one.tries > 0,
        )
        self._log.info(
            "message",
            ref=message.root.ref,
            kind=message.kind.value,
            via=list(via),
            text=message.text,
            problem=delivery.problem,
        )
        return delivery


async def _sent(channel: Channel, one: _Sending, *, limit: Seconds | None) -> str:
    """Return why a message was not confirmed; empty where it was."""
    if limit is not None and limit <= 0:
        return "there was no time left for it in this cycle"
    own = channel.timeout_seconds
    wait = own if own is None or limit is None else min(own, limit)
    try:
        async with asyncio.timeout(wait):
            await channel.send(one.message, one.to)
    except TimeoutError:
        return f"no confirmation within {wait or 0.0:.0f} s"
    except NotificationError as error:
        return str(error)
    return ""


def kinds_taken(channel: Channel) -> tuple[MessageKind, ...]:
    """Return the kinds of messages that go through a channel."""
    return tuple(kind for kind in MessageKind if channel.takes(kind))
