"""What `hub.client` relies on, asked of a real JupyterHub."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.jupyterhubs import SCOPES, JupyterHub
from support.memory_hub import MemoryHub

from gpu_pruner.check.hub_questions import look_at
from gpu_pruner.check.hubs import findings as hub_findings
from gpu_pruner.errors import ConfigurationError, HubError
from gpu_pruner.jupyterhub import client as hub_client
from gpu_pruner.jupyterhub.client import HubClient
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.model.rules import Mode
from gpu_pruner.settings.hubs import HubSettings

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("jupyterhub")]

SPACE = "jhub"
ODD = "dr. o'hara+lab@example.org"
USERS = ("lister", "stopper", "slow", "named", "guarded", "survivor", "first", "second", "twin")
ALICE = ServerName(SPACE, "alice")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterHub]:
    scopes = {
        "may-not-stop": [one for one in SCOPES if one != "delete:servers"],
        "may-not-start": [one for one in SCOPES if one != "start:servers"],
        "may-not-read": [one for one in SCOPES if one != "read:servers"],
        "may-not-list": [one for one in SCOPES if one != "list:users"],
    }
    directory = tmp_path_factory.mktemp("jupyterhub")
    users = ("alice", *USERS, ODD)
    with JupyterHub(directory, users=users, scopes=scopes, concurrent_spawn_limit=1) as running:
        yield running


def settings(hub: JupyterHub, token: Path) -> HubSettings:
    return HubSettings(namespace=SPACE, url=hub.url, token_file=token, timeout_seconds=15)


@asynccontextmanager
async def talking(hub: JupyterHub, who: str = "gpu-pruner") -> AsyncIterator[HubClient]:
    client = HubClient(settings(hub, hub.token_file(who)))
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def client(hub: JupyterHub) -> AsyncIterator[HubClient]:
    async with talking(hub) as one:
        yield one


async def test_active_servers_are_listed_and_no_others(hub: JupyterHub, client: HubClient) -> None:
    name = ServerName(SPACE, "lister")
    assert name not in await client.servers()

    hub.user_starts("lister")

    found = (await client.servers())[name]
    assert found == await client.server(name)
    assert found.ready
    assert found.started == hub.server("lister")["started"]


async def test_a_stopped_server_starts_again_with_the_options_that_it_had(
    hub: JupyterHub, client: HubClient
) -> None:
    name = ServerName(SPACE, "stopper")
    options = {"profile": "gpu-large", "image": "example.org/notebook:2"}
    hub.user_starts("stopper", options=options)
    before = await client.server(name)

    await client.stop(name)
    assert await client.server(name) is None
    await client.stop(name)  # once more is no error

    await client.start(name)
    hub.until(lambda: hub.server("stopper").get("ready"))
    assert hub.server("stopper")["user_options"] == options
    after = await client.server(name)
    assert before is not None
    assert after is not None
    assert after.started != before.started


async def test_a_slow_stop_is_pending_until_it_is_over(hub: JupyterHub, client: HubClient) -> None:
    name = ServerName(SPACE, "slow")
    hub.user_starts("slow", options={"hold_stop": True})

    await client.stop(name)

    pending = await client.server(name)
    assert pending is not None
    assert pending.is_stopping
    assert not pending.ready
    with pytest.raises(HubError, match="pending stop"):
        await client.start(name)
    hub.let("hold_stop")
    hub.until(lambda: not hub.server("slow"))
    assert await client.server(name) is None


async def test_a_named_server_is_stopped_and_stays_known(
    hub: JupyterHub, client: HubClient
) -> None:
    default, named = ServerName(SPACE, "named"), ServerName(SPACE, "named", "gpu")
    hub.user_starts("named")
    hub.user_starts("named", "gpu", {"profile": "gpu"})

    await client.stop(named)

    assert await client.server(named) is None
    assert await client.server(default) is not None
    shown = hub.ask("GET", "/users/named?include_stopped_servers=1").json()["servers"]
    assert shown["gpu"]["stopped"]
    await client.start(named)
    hub.until(lambda: hub.server("named", "gpu").get("ready"))
    assert hub.server("named", "gpu")["user_options"] == {"profile": "gpu"}


async def test_odd_names_lead_to_nobody_else(hub: JupyterHub, client: HubClient) -> None:
    name = ServerName(SPACE, ODD)
    hub.user_starts(ODD)

    assert await client.server(name) is not None
    await client.stop(name)

    assert not hub.server(ODD)
    for odd in ("..", ".", ""):
        with pytest.raises(HubError, match="is not a name"):
            await client.stop(ServerName(SPACE, odd))


async def test_a_user_whom_nobody_knows_is_told_from_a_stopped_server(client: HubClient) -> None:
    nobody = ServerName(SPACE, "nobody")

    for asking in (client.server, client.stop, client.start):
        with pytest.raises(HubError, match="knows no such user") as refused:
            await asking(nobody)
        assert refused.value.status == 404


async def test_a_hub_tells_its_version_to_anybody_and_scopes_to_a_token(
    hub: JupyterHub, client: HubClient
) -> None:
    assert re.fullmatch(r"[2-9]\.\d+\.\d+.*", await client.version())
    assert set(SCOPES) <= (await client.scopes() or set())

    wrong = hub.directory / "token-wrong"
    wrong.write_text("no-such-token")
    stranger = HubClient(settings(hub, wrong))
    try:
        assert await stranger.version() == await client.version()
        with pytest.raises(HubError, match="refuses the token") as refused:
            await stranger.scopes()
    finally:
        await stranger.close()
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("who", "level", "told"),
    [
        ("gpu-pruner", "OK", "accepts our token and shows "),
        ("may-not-stop", "FAIL", "lacks delete:servers, so none of its servers can be stopped"),
        ("may-not-start", "FAIL", "lacks start:servers, so none of its servers can be started"),
        ("may-not-read", "FAIL", "lacks read:servers, so no server"),
        ("may-not-list", "FAIL", "lacks list:users, so no server"),
        ("nobody", "FAIL", "it refuses the token (403)"),
        ("absent", "FAIL", "cannot be read: No such file or directory"),
    ],
)
async def test_a_check_finds_what_a_token_lacks(
    hub: JupyterHub, who: str, level: str, told: str
) -> None:
    (hub.directory / "token-nobody").write_text("no-such-token")
    look = await look_at(settings(hub, hub.token_file(who)))
    first, *rest = hub_findings(look, mode=Mode.SCALE_DOWN)
    assert (first.level, "it is JupyterHub" in first.sentence) == ("OK", True)
    assert [one.level for one in rest] == [level]
    assert told in rest[0].sentence
    assert ("c.JupyterHub.load_roles" in rest[0].fix) is (level == "FAIL" and who != "absent")
    assert "secret-of" not in repr((first, rest))


async def test_a_check_finds_a_hub_away_and_an_address_that_is_no_hub(hub: JupyterHub) -> None:
    places = {"http://127.0.0.1:9": "it cannot be reached", f"{hub.url}/elsewhere": "302"}
    for url, why in places.items():
        token = hub.token_file()
        look = await look_at(HubSettings(namespace=SPACE, url=url, token_file=token))
        [found] = hub_findings(look, mode=Mode.SCALE_DOWN)
        assert found.level == "FAIL"
        assert why in found.sentence
        assert "not of its proxy" in found.fix


async def test_a_long_list_comes_in_pages(
    hub: JupyterHub, client: HubClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("first", "second"):
        hub.user_starts(user)
    whole = await client.servers()

    monkeypatch.setattr(hub_client, "_PAGE", 1)

    assert await client.servers() == whole
    assert {"first", "second"} <= {one.user for one in whole}


@pytest.mark.parametrize(
    ("token", "refused"), [("may-not-stop", "stop"), ("may-not-start", "start")]
)
async def test_a_token_without_a_scope_is_refused_and_nothing_happens(
    hub: JupyterHub, token: str, refused: str
) -> None:
    name = ServerName(SPACE, "guarded")
    if not hub.server("guarded"):
        hub.user_starts("guarded")
    if refused == "start":
        hub.user_stops("guarded")
    before = hub.server("guarded")

    async with talking(hub, token) as weak:
        with pytest.raises(HubError, match="refuses the token") as error:
            await getattr(weak, refused)(name)

    assert error.value.status == 403
    assert hub.server("guarded") == before


@pytest.mark.parametrize(
    ("token", "why"), [("may-not-read", "may not read"), ("may-not-list", "refuses the token")]
)
async def test_a_token_that_sees_too_little_gives_no_list(
    hub: JupyterHub, token: str, why: str
) -> None:
    if not hub.server("alice"):
        hub.user_starts("alice")

    async with talking(hub, token) as weak:
        with pytest.raises(HubError, match=why):
            await weak.servers()


async def test_a_token_is_read_anew_and_never_told(hub: JupyterHub, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("wrong-secret\n")
    client = HubClient(settings(hub, file))
    try:
        with pytest.raises(HubError, match="refuses the token") as refused:
            await client.servers()
        assert "wrong-secret" not in str(refused.value)

        file.write_text(hub.token_file().read_text())
        await client.servers()

        file.write_text("two\nlines")
        with pytest.raises(HubError, match="holds no token"):
            await client.servers()
        file.unlink()
        with pytest.raises(HubError, match="cannot be read"):
            await client.servers()
    finally:
        await client.close()


async def test_a_start_that_is_throttled_or_needless_is_refused(
    hub: JupyterHub, client: HubClient
) -> None:
    if not hub.server("alice"):
        hub.user_starts("alice")
    hub.user_starts("survivor", options={"hold_start": True})
    if hub.server("stopper"):
        hub.user_stops("stopper")

    with pytest.raises(HubError, match="too many servers are starting") as refused:
        await client.start(ServerName(SPACE, "stopper"))
    assert refused.value.status == 429
    with pytest.raises(HubError, match="already running"):
        await client.start(ALICE)

    pending = await client.server(ServerName(SPACE, "survivor"))
    assert pending is not None
    assert (pending.ready, pending.pending) == (False, "spawn")
    hub.let("hold_start")
    hub.until(lambda: hub.server("survivor").get("ready"))


async def test_a_hub_that_is_down_tells_nothing_and_comes_back_with_the_same_servers(
    hub: JupyterHub, client: HubClient
) -> None:
    if not hub.server("alice"):
        hub.user_starts("alice")
    before = await client.server(ALICE)

    hub.stop()
    with pytest.raises(HubError, match="cannot be reached") as refused:
        await client.server(ALICE)
    assert refused.value.status is None

    hub.start()
    hub.until(lambda: hub.server("alice").get("ready"))
    assert await client.server(ALICE) == before


@pytest.mark.parametrize("kind", ["real", "memory"])
async def test_the_one_in_memory_answers_as_a_real_one(hub: JupyterHub, kind: str) -> None:
    name, nobody = ServerName(SPACE, "twin"), ServerName(SPACE, "nobody")
    if kind == "real" and not hub.server("twin"):
        hub.user_starts("twin")
    memory = MemoryHub(namespace=SPACE, users=("twin",))
    memory.runs(name)
    async with talking(hub) as real:
        one = real if kind == "real" else memory
        before = await one.server(name)
        assert before is not None
        assert (await one.servers())[name] == before
        with pytest.raises(HubError, match="already running") as running:
            await one.start(name)
        await one.stop(name)
        assert await one.server(name) is None
        await one.stop(name)
        await one.start(name)
        if kind == "real":
            hub.until(lambda: hub.server("twin").get("ready"))
        after = await one.server(name)
        with pytest.raises(HubError, match="knows no such user") as unknown:
            await one.server(nobody)

    assert (running.value.status, unknown.value.status) == (400, 404)
    assert before.ready
    assert after is not None
    assert after.started > before.started


def test_an_authority_that_is_none_is_a_configuration_error(
    hub: JupyterHub, tmp_path: Path
) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("not PEM")
    wrong = settings(hub, hub.token_file()).model_copy(update={"ca_file": file})

    with pytest.raises(ConfigurationError, match="jupyter_hubs.ca_file"):
        HubClient(wrong)
