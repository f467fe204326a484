"""The client asks what it should, and says in our words what went wrong."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import msgspec
import pytest
from kubernetes.aio.config import ConfigException
from support.manual_clock import NOON, ManualClock
from support.scripted_api import (
    TOKEN,
    Reply,
    ScriptedApi,
    Watch,
    eventually,
    kubeconfig,
    page,
    status,
    thing,
)

from gpu_pruner.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    NotLeading,
    Throttled,
)
from gpu_pruner.kube.client import ClusterClient, Page
from gpu_pruner.kube.resources import DEPLOYMENTS, EVENTS, GPUWORKLOADS, NAMESPACES, NODES, PODS
from gpu_pruner.kube.wire import Bare, Owner
from gpu_pruner.settings.clock import SystemClock
from gpu_pruner.settings.schema import KubernetesSettings

ONE = "/apis/apps/v1/namespaces/team-a/deployments/train"


async def test_reads_one_object_with_our_credentials_and_name(tmp_path: Path) -> None:
    async with ScriptedApi(lists={ONE: [Reply(thing("train", spec={"replicas": 3}))]}) as api:
        client = await api.client(tmp_path)
        found = await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Owner)
        await client.close()
    assert found.spec is not None
    assert found.spec.replicas == 3
    assert api.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert api.asked[0].headers["user-agent"] == "gpu-pruner"


async def test_a_patch_is_a_merge_patch_with_the_preconditions_of_its_caller(
    tmp_path: Path,
) -> None:
    body = {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 0}, "x": None}
    async with ScriptedApi(others={ONE: [Reply({"stored": True})]}) as api:
        client = await api.client(tmp_path)
        answer = await client.patch(DEPLOYMENTS, "train", body, namespace="team-a")
        await client.close()
    assert msgspec.json.decode(answer) == {"stored": True}
    assert api.asked[0].method == "PATCH"
    assert api.asked[0].headers["content-type"] == "application/merge-patch+json"
    assert api.asked[0].json == body


async def test_a_status_is_patched_through_its_subresource(tmp_path: Path) -> None:
    path = "/apis/gpu-pruner.io/v1alpha1/namespaces/team-a/gpuworkloads/w/status"
    async with ScriptedApi(others={path: [Reply({})]}) as api:
        client = await api.client(tmp_path)
        await client.patch(GPUWORKLOADS, "w", {}, namespace="team-a", subresource="status")
        await client.close()
    assert api.asked[0].path == path
    assert api.asked[0].json == {}


async def test_creates_in_a_namespace(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/team-a/events"
    async with ScriptedApi(others={path: [Reply({"made": 1}, 201)]}) as api:
        client = await api.client(tmp_path)
        answer = await client.create(EVENTS, {"reason": "Idle"}, namespace="team-a")
        await client.close()
    assert msgspec.json.decode(answer) == {"made": 1}
    assert (api.asked[0].method, api.asked[0].json) == ("POST", {"reason": "Idle"})


async def test_a_list_comes_in_pages_with_the_version_to_watch_from(tmp_path: Path) -> None:
    pages = [page([thing("a")], version=5, more="t"), Reply({"metadata": {}, "items": None})]
    async with ScriptedApi(lists={"/api/v1/nodes": list(pages)}) as api:
        client = await api.client(tmp_path)
        found: list[Page[Bare]] = [
            one
            async for one in client.list_pages(
                NODES, decode=Bare, limit=1, params=[("labelSelector", "a in (b,c)")]
            )
        ]
        await client.close()
    assert [one.metadata.name for one in found[0].items] == ["a"]
    assert found[0].resource_version == "5"
    assert found[1].items == ()
    assert api.asked[1].query == {"labelSelector": "a in (b,c)", "limit": "1", "continue": "t"}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, ClusterError),
        (401, ClusterError),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, ClusterError),
        (429, Throttled),
        (500, ClusterError),
        (503, ClusterError),
    ],
)
async def test_each_refusal_has_its_error_with_the_servers_words(
    tmp_path: Path, code: int, error: type[ClusterError]
) -> None:
    async with ScriptedApi(others={ONE: [status(code, "the server's words")]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError) as caught:
            await client.patch(DEPLOYMENTS, "train", {}, namespace="team-a")
        await client.close()
    assert type(caught.value) is error
    assert caught.value.status == code
    assert f"PATCH {ONE}" in str(caught.value)
    assert ("the server's words" in str(caught.value)) == (code != 429)


async def test_a_name_that_another_object_has_now_is_a_conflict(tmp_path: Path) -> None:
    cause = {"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "is immutable"}
    body = {"kind": "Status", "code": 422, "message": "invalid", "details": {"causes": [cause]}}
    async with ScriptedApi(others={ONE: [Reply(body, 422)]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(Conflict, match="another object has that name now"):
            await client.patch(DEPLOYMENTS, "train", {}, namespace="team-a")
        await client.close()


async def test_a_write_is_never_repeated(tmp_path: Path) -> None:
    async with ScriptedApi(others={ONE: [status(503)]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError):
            await client.patch(DEPLOYMENTS, "train", {}, namespace="team-a")
        await client.close()
        assert len(api.asked) == 1


async def test_messages_hold_no_secrets_and_no_long_bodies(tmp_path: Path) -> None:
    body = f"<p>Authorization: Bearer {TOKEN} at http://me:pw@proxy/ \x1b[31m{'x' * 5000}"
    async with ScriptedApi(lists={ONE: [Reply(body.encode(), 502)]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError) as caught:
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    said = str(caught.value)
    assert TOKEN not in said
    assert "me:pw" not in said
    assert said.isprintable()
    assert len(said) < 256 + 200


@pytest.mark.parametrize(
    "words",
    [
        f"bad token: Bearer {TOKEN}",
        f"what is {TOKEN}?",
        f"{'x' * 60} {TOKEN[:9]}{TOKEN} {TOKEN[:9]}",
        f'{{"token":"{TOKEN}"}}',
    ],
)
@pytest.mark.parametrize("code", [400, 401, 403, 500])
async def test_our_token_is_not_repeated_when_the_server_does(
    tmp_path: Path, words: str, code: int
) -> None:
    async with ScriptedApi(lists={ONE: [status(code, words)]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError) as caught:
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    assert TOKEN not in str(caught.value)


async def test_an_object_without_end_is_given_up(tmp_path: Path) -> None:
    async with ScriptedApi(lists={ONE: [Watch(then="flood")]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError, match="has more than 32 MiB"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await eventually(lambda: api.connections == 0)
        await client.close()


async def test_a_list_without_end_is_given_up_later(tmp_path: Path) -> None:
    async with ScriptedApi(lists={"/api/v1/nodes": [Watch(then="flood")]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError, match="has more than 256 MiB"):
            await anext(client.list_pages(NODES, decode=Bare))
        await client.close()


async def test_a_line_of_a_watch_without_end_is_given_up(tmp_path: Path) -> None:
    async with ScriptedApi(watches={"/api/v1/pods": [Watch(then="flood")]}) as api:
        client = await api.client(tmp_path)
        async with client.watch(PODS, query=[], silence_seconds=60) as lines:
            with pytest.raises(ClusterError, match="a line has no end"):
                await anext(lines)
        await client.close()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_its_host_is_named(tmp_path: Path, code: int) -> None:
    elsewhere = "/api/v1/namespaces/elsewhere"
    async with ScriptedApi(lists={elsewhere: [Reply(thing("train"))]}) as api:
        target = f"http://me:pw@localhost:{api.port}{elsewhere}?token={TOKEN}"
        away = Reply(b"", code, {"Location": target})
        api.lists[ONE] = api.others[ONE] = [away]
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError) as read:
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        with pytest.raises(ClusterError) as written:
            await client.patch(DEPLOYMENTS, "train", {}, namespace="team-a")
        await client.close()
    said = f"The Kubernetes API at {api.url} redirects to localhost (HTTP {code})"
    for caught in (read.value, written.value):
        assert str(caught).startswith(said)
        assert "set the server in the kubeconfig" in str(caught)
        assert "pw" not in str(caught)
        assert TOKEN not in str(caught)
        assert caught.status == code
    assert [one.path for one in api.asked] == [ONE, ONE]


@pytest.mark.parametrize("code", [200, 403, 502])
async def test_a_web_page_is_called_one(tmp_path: Path, code: int) -> None:
    login = Reply(b"<html>log in</html>", code, {"Content-Type": "text/html; charset=utf-8"})
    async with ScriptedApi(lists={ONE: [login]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError, match="web page; is that the address of a login page"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"metadata":7}', b"\xff\xfe"])
async def test_an_answer_that_is_not_the_object_is_called_unreadable(
    tmp_path: Path, body: bytes
) -> None:
    async with ScriptedApi(lists={ONE: [Reply(body)]}) as api:
        client = await api.client(tmp_path)
        with pytest.raises(ClusterError, match=r"the answer cannot be read"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()


async def test_an_address_where_nobody_listens_is_named(tmp_path: Path) -> None:
    api = ScriptedApi()
    await api.open()
    client = await api.client(tmp_path)
    await api.close()
    with pytest.raises(ClusterError) as caught:
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
    await client.close()
    assert f"The Kubernetes API at {api.url} cannot be reached: Connection refused" in str(
        caught.value
    )
    assert caught.value.status is None


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with ScriptedApi(lists={ONE: [Reply(hang=True)]}) as api:
        client = await api.client(tmp_path, timeout_seconds=0.05)
        with pytest.raises(ClusterError, match=r"gave no answer within 0\.05 s"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()


async def test_plain_http_where_tls_was_expected_is_told_apart(tmp_path: Path) -> None:
    async with ScriptedApi() as api:
        secure = api.url.replace("http:", "https:")
        path = tmp_path / "secure"
        path.write_bytes(msgspec.json.encode(kubeconfig(secure)))
        client = await ClusterClient.connect(
            KubernetesSettings(kubeconfig=path), clock=SystemClock()
        )
        with pytest.raises(ClusterError, match="does not speak TLS as expected"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()


async def test_a_refused_token_is_read_again_for_the_next_request(tmp_path: Path) -> None:
    answers = [status(401, "expired"), Reply(thing("train"))]
    async with ScriptedApi(lists={ONE: list(answers)}) as api:
        client = await api.client(tmp_path)
        api.kubeconfig(tmp_path, token="renewed")
        with pytest.raises(ClusterError, match="does not accept our credentials"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    assert [asked.headers["authorization"] for asked in api.asked] == [
        f"Bearer {TOKEN}",
        "Bearer renewed",
    ]


async def test_credentials_that_cannot_be_renewed_are_said_to_be(tmp_path: Path) -> None:
    async with ScriptedApi(lists={ONE: [status(401)]}) as api:
        client = await api.client(tmp_path)
        (tmp_path / "kubeconfig").write_text("token: t0psecret", encoding="utf-8")
        with pytest.raises(ClusterError, match="They cannot be renewed") as caught:
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    assert "t0psecret" not in str(caught.value)


async def test_a_token_file_that_is_gone_is_a_failure_of_this_request_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedApi(lists={ONE: [Reply(thing("train"))]}) as api:
        client = await api.client(tmp_path)

        def gone(_configuration: object) -> None:
            raise ConfigException("Token file exists but empty.")

        monkeypatch.setattr(client._api.configuration, "refresh_api_key_hook", gone)
        with pytest.raises(ClusterError, match="Our credentials cannot be read: Token file"):
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()


async def test_an_address_without_a_scheme_is_named(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(msgspec.json.encode(kubeconfig("me:pw@localhost:8080")))
    client = await ClusterClient.connect(KubernetesSettings(kubeconfig=path), clock=SystemClock())
    with pytest.raises(ClusterError, match="at localhost:8080 has no address") as caught:
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
    await client.close()
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("ahead", "skew"), [(0.0, 0.0), (-1.0, 0.0), (-61.0, -60.0), (+45.0, 45.0)]
)
async def test_the_servers_clock_is_compared_with_ours(
    tmp_path: Path, ahead: float, skew: float
) -> None:
    async with ScriptedApi(lists={ONE: [Reply(thing("train"))]}) as api:
        api.date = formatdate(NOON + ahead, usegmt=True)
        client = await api.client(tmp_path, clock=ManualClock())
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    assert client.clock_skew_seconds == skew


async def test_an_unreadable_date_changes_nothing(tmp_path: Path) -> None:
    async with ScriptedApi(lists={ONE: [Reply(thing("train"))]}) as api:
        api.date = "yesterday"
        client = await api.client(tmp_path)
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Bare)
        await client.close()
    assert client.clock_skew_seconds == 0.0


async def test_leaving_a_watch_closes_its_connection(tmp_path: Path) -> None:
    async with ScriptedApi(watches={"/api/v1/pods": [Watch([{"a": 1}], then="talk")]}) as api:
        client = await api.client(tmp_path)
        async with client.watch(PODS, query=[], silence_seconds=60) as lines:
            assert await anext(lines) == b'{"a": 1}\n'
            assert api.connections == 1
        await eventually(lambda: api.connections == 0)
        await client.close()
        assert api.asked[0].query == {"watch": "true"}


async def test_a_name_cannot_leave_its_path(tmp_path: Path) -> None:
    async with ScriptedApi() as api:
        client = await api.client(tmp_path)
        with pytest.raises(NotFound):
            await client.get(DEPLOYMENTS, "../a/b?c#d", namespace="team-a", decode=Bare)
        await client.close()
    assert api.asked[0].path == "/apis/apps/v1/namespaces/team-a/deployments/..%2Fa%2Fb%3Fc%23d"


@pytest.mark.parametrize("token", ["can\nary", "can\rary", "can\x00ary"])
async def test_a_token_that_no_header_can_carry_is_told_without_it(
    tmp_path: Path, token: str
) -> None:
    async with ScriptedApi(lists={ONE: [Reply(thing("train"))]}) as api:
        file = api.kubeconfig(tmp_path, token=token)
        settings = KubernetesSettings(kubeconfig=file)
        client = await ClusterClient.connect(settings, clock=SystemClock())
        with pytest.raises(ClusterError, match="our token") as caught:
            await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Owner)
        await client.close()
    assert "ary" not in "".join(traceback.format_exception(caught.value)).replace("library", "")


@pytest.mark.parametrize(
    "address", ["http://[bad", "http://a..b", "http://admin:canary@127.0.0.1:9"]
)
async def test_an_address_that_cannot_be_asked_is_told(tmp_path: Path, address: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(kubeconfig(address)), encoding="utf-8")
    client = await ClusterClient.connect(KubernetesSettings(kubeconfig=file), clock=SystemClock())
    with pytest.raises(ClusterError, match="cannot be asked|has no address") as caught:
        await client.get(DEPLOYMENTS, "train", namespace="team-a", decode=Owner)
    await client.close()
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@dataclass
class Gate:
    left: float

    def seconds_left(self) -> float:
        return self.left


async def test_a_write_behind_a_closed_fence_is_not_sent_and_a_read_is(tmp_path: Path) -> None:
    path = NAMESPACES.path(name="team-a")
    async with ScriptedApi(lists={path: [Reply(thing("team-a"))]}) as api:
        client = await api.client(tmp_path)
        gate = Gate(0.0)
        fenced = client.fenced(gate)
        with pytest.raises(NotLeading, match="another replica may lead"):
            await fenced.patch(NAMESPACES, "team-a", {})
        with pytest.raises(NotLeading):
            await fenced.create(EVENTS, {}, namespace="team-a")
        assert (await fenced.get(NAMESPACES, "team-a", decode=Bare)).metadata.name == "team-a"
        assert [one.method for one in api.asked] == ["GET"]
        await client.close()


async def test_an_open_fence_lets_writes_through_and_the_connection_itself_has_none(
    tmp_path: Path,
) -> None:
    path = NAMESPACES.path(name="team-a")
    async with ScriptedApi(others={path: [Reply(thing("team-a"))]}) as api:
        client = await api.client(tmp_path)
        await client.fenced(Gate(5.0)).patch(NAMESPACES, "team-a", {})
        client.fenced(Gate(0.0))
        await client.patch(NAMESPACES, "team-a", {})
        assert api.count(path) == 2
        await client.close()


async def test_a_write_is_given_up_when_the_fence_closes_on_it(tmp_path: Path) -> None:
    path = NAMESPACES.path(name="team-a")
    async with ScriptedApi(others={path: [Reply(hang=True)]}) as api:
        client = await api.client(tmp_path, timeout_seconds=3600.0)
        with pytest.raises(ClusterError, match="gave no answer"):
            await client.fenced(Gate(0.2)).patch(NAMESPACES, "team-a", {})
        await client.close()
