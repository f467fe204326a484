"""What a Hub can do to us on a bad day: a scripted server in its place."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpu_pruner.errors import HubError
from gpu_pruner.jupyterhub import client as hub_client
from gpu_pruner.jupyterhub.client import HubClient
from gpu_pruner.model.jupyterhub import ServerName
from gpu_pruner.settings.hubs import HubSettings

ALICE = ServerName("team-a", "alice")
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer, directory: Path) -> Iterator[tuple[HubClient, list[str]]]:
    """Answer everything in one way; yields a client of it, and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(f"{self.command} {self.path} {body.decode()}".strip())
            answer(self)

        do_POST = do_DELETE = do_GET  # noqa: N815 - as the library calls them

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
            pass

    token = directory / "token"
    token.write_text("s3cret\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/base"
    settings = HubSettings(namespace="team-a", url=url, token_file=token, timeout_seconds=5)
    try:
        yield HubClient(settings), asked
    finally:
        server.shutdown()
        server.server_close()


def saying(body: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


async def test_a_stop_and_a_start_have_no_body_and_go_to_one_server(tmp_path: Path) -> None:
    gpu = ServerName("team-a", "a/b@example.org", "gpu 1")
    with serving(saying(b""), tmp_path) as (client, asked):
        await client.stop(ALICE)
        await client.start(ALICE)
        await client.stop(gpu)
        await client.close()

    assert asked == [
        "DELETE /base/hub/api/users/alice/server",
        "POST /base/hub/api/users/alice/server",
        "DELETE /base/hub/api/users/a%2Fb@example.org/servers/gpu%201",
    ]


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with serving(saying(b"", 302, Location="/elsewhere"), tmp_path) as (client, asked):
        with pytest.raises(HubError, match="redirect") as refused:
            await client.stop(ALICE)
        await client.close()

    assert len(asked) == 1
    assert refused.value.status == 302


async def test_a_list_that_goes_in_a_circle_is_no_list(tmp_path: Path) -> None:
    page = {"items": [], "_pagination": {"next": {"offset": 200}}}
    with serving(saying(json.dumps(page).encode()), tmp_path) as (client, asked):
        with pytest.raises(HubError, match="circle"):
            await client.servers()
        await client.close()

    assert len(asked) == 2


async def test_an_endless_answer_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "_MOST_BYTES", 1000)
    with serving(saying(b"x" * 100_000), tmp_path) as (client, _):
        with pytest.raises(HubError, match="too long"):
            await client.servers()
        await client.close()


async def test_an_answer_that_breaks_off_leaves_open_what_happened(tmp_path: Path) -> None:
    def breaks_off(request: BaseHTTPRequestHandler) -> None:
        request.connection.close()

    with serving(breaks_off, tmp_path) as (client, _):
        with pytest.raises(HubError, match="cannot be reached") as broken:
            await client.stop(ALICE)
        await client.close()

    assert broken.value.status is None
    assert "s3cret" not in str(broken.value)


@pytest.mark.parametrize("words", ["bad token: Bearer s3cret", "is s3cret known?"])
@pytest.mark.parametrize("code", [400, 403, 404, 429, 500])
async def test_our_token_is_not_repeated_when_the_hub_does(
    tmp_path: Path, words: str, code: int
) -> None:
    body = json.dumps({"message": words}).encode()
    answer = saying(body, code, **{"Retry-After": "s3cret"})
    with serving(answer, tmp_path) as (client, _):
        with pytest.raises(HubError) as refused:
            await client.servers()
        await client.close()
    assert "s3cret" not in str(refused.value)
