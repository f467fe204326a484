"""Credentials are added to requests, kept fresh, and never told."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from requests import PreparedRequest, Request

from gpu_pruner.errors import PrometheusError
from gpu_pruner.observe.prometheus_auth import Auth, Bearer, auth_for
from gpu_pruner.settings.schema import PrometheusSettings

URL = "http://prometheus:9090"


def header(auth: Auth) -> str | None:
    request: PreparedRequest = Request("POST", URL).prepare()
    return auth(request).headers.get("Authorization")


def settings(**more: object) -> PrometheusSettings:
    return PrometheusSettings.model_validate({"url": URL, **more})


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n", encoding="ascii")
    auth = Bearer(file=file)
    assert header(auth) == "Bearer first"
    rotated = tmp_path / "..data"
    rotated.write_text("other\n", encoding="ascii")
    rotated.rename(file)
    assert header(auth) == "Bearer other"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "not ASCII"),
        (b"a\nb", "line break"),
    ],
)
def test_an_unusable_token_file_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PrometheusError, match=said) as caught:
        header(Bearer(file=file))
    assert str(file) in str(caught.value)


def test_file_wins_over_token_and_token_over_the_url(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file", encoding="ascii")
    url = "http://u:p@prometheus:9090"
    assert header(auth_for(settings(url=url, token="fixed", token_file=file))) == "Bearer from-file"
    assert header(auth_for(settings(url=url, token="fixed"))) == "Bearer fixed"
    assert header(auth_for(settings(url=url))) == "Basic dTpw"


def test_a_login_is_sent_as_utf_8() -> None:
    told = settings(url="http://u:%E2%82%AC%2F@prometheus:9090")
    sent = b64encode("u:\u20ac/".encode()).decode()
    assert header(auth_for(told)) == f"Basic {sent}"


def test_without_credentials_nothing_is_added() -> None:
    assert header(auth_for(settings())) is None
