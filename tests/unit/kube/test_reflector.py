"""A reflector survives whatever an API server does to it, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import pytest
from structlog.testing import capture_logs
from support.manual_clock import NOON, ManualClock
from support.scripted_api import (
    TOKEN,
    Reply,
    ScriptedApi,
    Watch,
    bookmark,
    event,
    eventually,
    page,
    status,
    thing,
)

from gpu_pruner.kube.reflector import Feed, Reflector
from gpu_pruner.kube.resources import DEPLOYMENTS
from gpu_pruner.kube.throttle import Pace
from gpu_pruner.kube.wire import Owner

PATH = "/apis/apps/v1/deployments"
MANY = 8


@dataclass
class Naps:
    """Stands in for waiting: notes each wait, lets `allowed` pass at once, then blocks."""

    allowed: int = 1_000
    waits: list[float] = field(default_factory=list)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._gate.set()

    def pause(self) -> None:
        self._gate.clear()

    def go_on(self) -> None:
        self._gate.set()

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if len(self.waits) > self.allowed:
            await asyncio.Event().wait()
        await self._gate.wait()
        await asyncio.sleep(0)


@dataclass
class Bench:
    api: ScriptedApi
    copy: Reflector[Owner, str]
    naps: Naps
    clock: ManualClock

    @property
    def names(self) -> set[str]:
        return set(self.copy.items.values())

    async def holds(self, *names: str) -> None:
        await eventually(lambda: self.names == set(names))

    def versions_watched(self) -> list[str]:
        return [one.query["resourceVersion"] for one in self.api.of(PATH, watch=True)]


@asynccontextmanager
async def bench(
    folder: Path,
    *,
    lists: list[Reply],
    watches: list[Reply | Watch],
    allowed: int = 1_000,
    silence: float = 60.0,
    brief: float = 60.0,
) -> AsyncIterator[Bench]:
    naps = Naps(allowed)
    clock = ManualClock()
    api = ScriptedApi(lists={PATH: list(lists)}, watches={PATH: list(watches)})
    async with api:
        client = await api.client(folder)
        feed = Feed(
            resource=DEPLOYMENTS,
            decode=Owner,
            keep=lambda one: one.metadata.name if (one.spec is not None) else None,
            unreadable=lambda meta: f"?{meta.name}",
        )
        pace = Pace(silence=silence, brief=brief, sleep=naps.sleep, jitter=lambda: 1.0)
        copy = Reflector(client, feed, clock, pace)
        task = asyncio.create_task(copy.run())
        try:
            yield Bench(api, copy, naps, clock)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await client.close()


def one(name: str, version: int = 1) -> dict[str, object]:
    return thing(name, version=version, spec={})


async def test_lists_in_pages_and_follows_changes(tmp_path: Path) -> None:
    first = page([one("a"), one("b")], version=7, more="token/=+")
    changes = Watch(
        [
            event("ADDED", one("d", 8)),
            event("MODIFIED", one("a", 9)),
            event("DELETED", one("b", 10)),
        ]
    )
    async with bench(tmp_path, lists=[first, page([one("c")], version=7)], watches=[changes]) as it:
        await it.holds("a", "c", "d")
        pages = it.api.of(PATH, watch=False)
        assert [asked.query.get("continue") for asked in pages] == [None, "token/=+"]
        assert {asked.query["limit"] for asked in pages} == {"500"}
        assert it.versions_watched() == ["7"]
        assert it.api.of(PATH, watch=True)[0].query["allowWatchBookmarks"] == "true"
        assert it.copy.synced


async def test_an_object_of_which_nothing_is_kept_any_more_leaves(tmp_path: Path) -> None:
    changes = Watch([event("MODIFIED", thing("a", version=2))])
    async with bench(tmp_path, lists=[page([one("a"), one("b")])], watches=[changes]) as it:
        await it.holds("b")


async def test_a_bookmark_moves_the_version_that_a_watch_resumes_from(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [Watch([bookmark(42)], then="end"), Watch()]
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches) as it:
        await eventually(lambda: it.versions_watched() == ["1", "42"])
        assert it.names == {"a"}
        assert it.api.count(PATH, watch=False) == 1


@pytest.mark.parametrize(
    "forgotten",
    [
        status(410, "too old", reason="Expired"),
        Watch([event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})]),
        Watch([event("ERROR", {"reason": "Expired"})]),
        Watch([b"this is not JSON\n"]),
        Watch([b'{"type":"ADDED","object":{"metadata":7}}\n']),
    ],
    ids=["as HTTP", "as an event", "as an event without a code", "garbage", "odd metadata"],
)
async def test_lists_again_when_changes_were_lost(tmp_path: Path, forgotten: Reply | Watch) -> None:
    lists = [page([one("a"), one("b")], version=3), page([one("b"), one("c")], version=9)]
    async with bench(tmp_path, lists=lists, watches=[forgotten, Watch()]) as it:
        await it.holds("b", "c")
        await eventually(lambda: it.versions_watched() == ["3", "9"])


async def test_keeps_what_it_had_while_it_lists_again(tmp_path: Path) -> None:
    lists = [
        page([one("a")], version=3),
        page([one("b")], version=9, more="next"),
        Reply(hang=True),
    ]
    async with bench(tmp_path, lists=lists, watches=[status(410)]) as it:
        await eventually(lambda: it.api.count(PATH, watch=False) == 3)
        assert it.names == {"a"}


@pytest.mark.parametrize(
    "failure",
    [status(500, "etcd"), status(503), Reply(b"<html>", 200, {"Content-Type": "text/html"})],
    ids=["500", "503", "web page"],
)
async def test_tries_again_after_a_failed_list(tmp_path: Path, failure: Reply) -> None:
    async with bench(tmp_path, lists=[failure, page([one("a")])], watches=[Watch()]) as it:
        await it.holds("a")
        assert it.naps.waits[0] == 0.5


async def test_a_failed_watch_keeps_the_copy_and_resumes(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [status(500), Watch([event("ADDED", one("b", 2))])]
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches) as it:
        await it.holds("a", "b")
        assert it.api.count(PATH, watch=False) == 1


async def test_waits_as_long_as_the_server_asks(tmp_path: Path) -> None:
    busy = status(429, "slow down", Retry_After="7")
    async with bench(tmp_path, lists=[busy, page([one("a")])], watches=[Watch()]) as it:
        await it.holds("a")
        assert it.naps.waits[0] == 7.0


@pytest.mark.parametrize(
    "broken",
    [
        Watch([event("ADDED", one("b", 5))], then="cut"),
        Watch([event("ADDED", one("b", 5)), b'{"type":"DELETED","object":{"meta'], then="end"),
    ],
    ids=["connection lost", "ended in the middle of a line"],
)
async def test_a_cut_watch_resumes_after_the_last_whole_event(
    tmp_path: Path, broken: Watch
) -> None:
    async with bench(tmp_path, lists=[page([one("a")])], watches=[broken, Watch()]) as it:
        await eventually(lambda: it.versions_watched() == ["1", "5"])
        assert it.names == {"a", "b"}


async def test_a_silent_peer_is_given_up_and_the_watch_resumed(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [
        Watch([bookmark(6)], then="hold"),
        Watch([event("ADDED", one("b", 7))], then="hold"),
    ]
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches, silence=0.5) as it:
        await it.holds("a", "b")
        assert it.versions_watched()[:2] == ["1", "6"]


@pytest.mark.parametrize(
    "watch",
    [status(410), Watch([event("ERROR", {"code": 410})]), status(500), Watch([b"garbage\n"])],
    ids=["410", "410 event", "500", "garbage"],
)
async def test_an_endless_failure_makes_no_hot_loop(tmp_path: Path, watch: Reply | Watch) -> None:
    async with bench(tmp_path, lists=[page([one("a")])], watches=[watch], allowed=MANY) as it:
        await eventually(lambda: len(it.naps.waits) > MANY)
        assert it.api.count(PATH) <= 2 * (MANY + 1)
        assert it.naps.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
        assert it.names == {"a"}


async def test_our_token_is_not_repeated_when_a_watch_does(tmp_path: Path) -> None:
    bad = event("ERROR", {"code": 500, "message": f"bad token: Bearer {TOKEN}; {TOKEN}?"})
    async with bench(tmp_path, lists=[page([one("a")])], watches=[Watch([bad])], allowed=1) as it:
        await eventually(lambda: len(it.naps.waits) > 1)
        assert "the API server answered 500. bad" in str(it.copy.error)
        assert TOKEN not in str(it.copy.error)


async def test_a_watch_goes_on_after_a_line_without_end(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [
        Watch(then="flood"),
        Watch([event("ADDED", thing("b", version=7, spec={}))]),
    ]
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches) as it:
        await it.holds("a", "b")


async def test_a_watch_that_ends_at_once_again_and_again_makes_no_hot_loop(tmp_path: Path) -> None:
    async with bench(
        tmp_path, lists=[page([one("a")])], watches=[Watch(then="end")], allowed=MANY
    ) as it:
        await eventually(lambda: len(it.naps.waits) > MANY)
        assert it.naps.waits[-1] == 30.0


async def test_a_list_that_outlives_its_token_starts_again_and_at_last_without_pages(
    tmp_path: Path,
) -> None:
    async with bench(
        tmp_path,
        lists=[
            *(reply for _ in range(3) for reply in (page([one("a")], more="t"), status(410))),
            page([one("b")]),
        ],
        watches=[Watch()],
    ) as it:
        await it.holds("b")
        limits = [asked.query.get("limit") for asked in it.api.of(PATH, watch=False)]
        assert limits == ["500"] * 6 + [None]


async def test_a_kind_that_is_not_installed_is_said_once_and_found_when_it_comes(
    tmp_path: Path,
) -> None:
    lists = [status(404, "page not found")] * 3 + [page([one("a")])]
    with capture_logs() as logs:
        async with bench(tmp_path, lists=lists, watches=[Watch()], allowed=0) as it:
            await it.copy.settled.wait()
            assert "not found" in it.copy.absent
            assert not it.copy.synced
            assert it.naps.waits == [48.0]
    with capture_logs() as logs:
        async with bench(tmp_path, lists=lists, watches=[Watch()]) as it:
            await it.holds("a")
            await eventually(lambda: it.copy.absent == "")
    assert [log["event"] for log in logs] == ["kind is not available", "kind is there now"]


async def test_some_404s_do_not_make_objects_disappear_but_a_minute_of_them_does(
    tmp_path: Path,
) -> None:
    lists = [page([one("a")])] + [status(404)] * 8
    async with bench(tmp_path, lists=lists, watches=[status(410)], allowed=7) as it:
        await eventually(lambda: len(it.naps.waits) == 8)
        assert it.names == {"a"}
        assert it.copy.absent
        assert 30.0 < sum(it.naps.waits[1:]) < 90.0
    async with bench(tmp_path, lists=lists, watches=[status(410)]) as it:
        await it.holds()


@pytest.mark.parametrize("refusal", [status(403), status(404)])
async def test_a_kind_that_was_there_is_soon_asked_for_again(
    tmp_path: Path, refusal: Reply
) -> None:
    """As after the restart of a server, which for a moment knows neither rights nor kinds."""
    lists = [page([one("a")]), refusal, refusal, page([one("b")])]
    async with bench(tmp_path, lists=lists, watches=[status(410), Watch()]) as it:
        await it.holds("b")
        await eventually(lambda: it.copy.absent == "")
        assert sum(it.naps.waits) < 5.0


async def test_a_kind_that_becomes_forbidden_keeps_its_copy_and_says_why(tmp_path: Path) -> None:
    lists = [page([one("a")]), status(403, "user x cannot list deployments")]
    async with bench(tmp_path, lists=lists, watches=[status(410)]) as it:
        await eventually(lambda: it.copy.absent != "")
        assert "user x cannot list deployments" in it.copy.absent
        assert "ClusterRoles" in it.copy.absent
        assert it.names == {"a"}


async def test_one_odd_object_costs_neither_the_kind_nor_more_than_one_log_line(
    tmp_path: Path,
) -> None:
    odd = thing("odd", spec={"replicas": "many"})
    watch = Watch([event("MODIFIED", odd), event("ADDED", one("b", 2))])
    with capture_logs() as logs:
        async with bench(tmp_path, lists=[page([one("a"), odd])], watches=[watch]) as it:
            await it.holds("a", "?odd", "b")
    said = [log for log in logs if log["event"] == "object cannot be read"]
    assert [(log["name"], log["namespace"]) for log in said] == [("odd", "team-a")]


async def test_after_an_outage_the_watch_resumes_without_a_new_list(tmp_path: Path) -> None:
    async with bench(tmp_path, lists=[page([one("a")], version=5)], watches=[Watch()]) as it:
        await eventually(lambda: it.copy._following)
        it.naps.pause()
        await it.api.close()
        await eventually(lambda: it.copy.failures > 0)
        assert it.names == {"a"}
        it.api.watches[PATH] = [Watch([event("ADDED", one("b", 6))])]
        await it.api.open()
        it.naps.go_on()
        await it.holds("a", "b")
        assert it.api.count(PATH, watch=False) == 1
        assert it.versions_watched() == ["5", "5"]


async def test_the_first_good_answer_after_an_outage_lets_everybody_go_on(tmp_path: Path) -> None:
    """However long this one had still to wait for its own turn."""
    async with bench(tmp_path, lists=[page([one("a")], version=5)], watches=[Watch()]) as it:
        await eventually(lambda: it.copy._following)
        it.naps.pause()
        await it.api.close()
        await eventually(lambda: it.copy.failures > 0)
        it.copy.failures = MANY
        it.api.watches[PATH] = [status(503), Watch([event("ADDED", one("b", 6))])]
        await it.api.open()
        it.copy.client.outage.monotonic = lambda: monotonic() + 60.0
        await anybody_asks(it)
        await eventually(lambda: len(it.naps.waits) == 2)
        assert it.naps.waits[1] <= 1.0, "the server stumbled once more"
        it.naps.go_on()
        await it.holds("a", "b")


async def test_a_watch_that_fails_alone_is_not_hurried_by_good_answers(tmp_path: Path) -> None:
    watches = [status(503)] * 5
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches) as it:
        it.naps.pause()
        await eventually(lambda: it.copy.failures == 1)
        for _ in range(3):
            await anybody_asks(it)
        assert it.copy.failures == 1


async def anybody_asks(it: Bench) -> None:
    """Let another part of the program get a good answer from the same server."""
    it.api.lists[PATH].append(page([]))
    async for _ in it.copy.client.list_pages(DEPLOYMENTS, decode=Owner):
        pass


async def test_an_outage_longer_than_the_servers_memory_shows_deletions(tmp_path: Path) -> None:
    lists = [page([one("a"), one("b")], version=5), page([one("b")], version=50)]
    async with bench(tmp_path, lists=lists, watches=[Watch()]) as it:
        await eventually(lambda: it.copy._following)
        it.naps.pause()
        await it.api.close()
        await eventually(lambda: it.copy.failures > 0)
        assert it.names == {"a", "b"}
        it.api.watches[PATH] = [status(410), Watch()]
        await it.api.open()
        it.naps.go_on()
        await it.holds("b")


async def test_a_watch_that_is_refused_again_and_again_is_tried_with_a_new_list(
    tmp_path: Path,
) -> None:
    refused = status(504, "Too large resource version")
    async with bench(
        tmp_path,
        lists=[page([one("a")], version=900), page([one("b")], version=7)],
        watches=[refused, refused, refused, Watch()],
    ) as it:
        await it.holds("b")
        await eventually(lambda: it.versions_watched() == ["900"] * 3 + ["7"])


async def test_a_long_watch_that_breaks_is_no_second_failure(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [status(500), status(500), Watch([bookmark(2)], then="cut")]
    async with bench(
        tmp_path, lists=[page([one("a")])], watches=[*watches, Watch()], brief=0.0
    ) as it:
        await eventually(lambda: len(it.naps.waits) == 3 and it.copy._following)
        assert it.naps.waits == [0.5, 1.0, 0.5]


async def test_a_kind_that_may_be_listed_but_not_watched_is_not_called_there(
    tmp_path: Path,
) -> None:
    with capture_logs() as logs:
        async with bench(
            tmp_path, lists=[page([one("a")])], watches=[status(403, "no watch")], allowed=3
        ) as it:
            await eventually(lambda: len(it.naps.waits) > 3)
            assert "no watch" in it.copy.absent
            assert it.names == {"a"}
    assert [log["event"] for log in logs] == ["kind is not available"]


async def test_an_outage_is_said_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with bench(tmp_path, lists=[status(500)], watches=[Watch()]) as it:
            await eventually(lambda: it.copy.failures > 5)
    assert [log["log_level"] for log in logs][:3] == ["info", "debug", "debug"]


async def test_the_copy_is_fresh_while_a_watch_is_open_and_ages_from_its_end(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, lists=[page([one("a")])], watches=[Watch()]) as it:
        await eventually(lambda: it.copy._following)
        it.clock.at = NOON + 600
        assert it.copy.stale_seconds == 0.0
        await it.api.close()
        await eventually(lambda: not it.copy._following)
        it.clock.at = NOON + 700
        assert it.copy.stale_seconds == 100.0


async def test_a_copy_whose_server_fell_silent_ages_from_the_last_word(tmp_path: Path) -> None:
    watches: list[Reply | Watch] = [Watch(then="hold"), Reply(hang=True)]
    async with bench(tmp_path, lists=[page([one("a")])], watches=watches, silence=0.5) as it:
        await eventually(lambda: it.copy._following)
        it.clock.at = NOON + 600
        await eventually(lambda: not it.copy._following)
        assert it.copy.stale_seconds == 600.0


async def test_a_list_without_a_version_is_not_believed(tmp_path: Path) -> None:
    odd = Reply({"metadata": {}, "items": []})
    async with bench(tmp_path, lists=[odd, page([one("a")])], watches=[Watch()]) as it:
        await it.holds("a")
