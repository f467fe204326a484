"""Asking a running controller to explain or to report, over its HTTP API.

For whoever cannot measure, because a controller that scrapes exporters itself is the only one who
holds a window of samples; or cannot read the history, because that is a file beside the controller.
It reads one answer and writes nothing.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import msgspec
from pydantic import TypeAdapter, ValidationError
from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPResponse

from gpu_pruner.errors import ConfigurationError, PrunerError
from gpu_pruner.loop.explaining import Question
from gpu_pruner.model.units import Seconds
from gpu_pruner.record.explanation_rows import Explanation
from gpu_pruner.settings.addresses import ServerAddress

T = TypeVar("T", bound=msgspec.Struct)

FLAG = "--controller"
_PATIENCE: Seconds = 60.0
"""Real seconds to wait: a large window takes the controller a while to measure."""


class _Refused(msgspec.Struct, frozen=True):
    error: str


def controller_address(url: str) -> str:
    """Return the address of a controller's API, checked.

    Raises:
        ConfigurationError: it is no such address.
    """
    try:
        return TypeAdapter(ServerAddress).validate_python(url)
    except ValidationError as error:
        told = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise ConfigurationError(told, path=FLAG) from None


async def ask_controller(url: str, question: Question) -> Explanation:
    """Return what a controller explains of a workload or a pod.

    Args:
        url: of its listener, as `controller_address` returns it.
        question: about a workload or a pod.

    Raises:
        ConfigurationError: nothing is called so there, or the question is about another sort.
        PrunerError: it does not answer, or not now.
    """
    if question.root is None:
        told = "a controller explains kind/namespace/name or pod/namespace/name, not"
        raise ConfigurationError(f"{told} {question}", path=FLAG)
    address = f"{url}/api/v1/workloads/{quote(question.root.ref)}/explain"
    return _read(await _fetched(address, url), url, Explanation)


async def ask_for_report(url: str, seconds: Seconds, kind: type[T]) -> T:
    """Return what a controller reports.

    Args:
        url: of its listener, as `controller_address` returns it.
        seconds: how far to look back.
        kind: `record.savings.Savings`, which loads the database's libraries.

    Raises:
        PrunerError: it does not answer, keeps no history, or cannot read it now.
    """
    address = f"{url}/api/v1/report?since={round(seconds)}s"
    return _read(await _fetched(address, url), url, kind)


async def _fetched(address: str, url: str) -> HTTPResponse:
    try:
        return await AsyncHTTPClient().fetch(
            address, raise_error=False, request_timeout=_PATIENCE, follow_redirects=False
        )
    except (HTTPError, OSError) as error:
        raise PrunerError(f"the controller at {url} does not answer: {error}") from error


def _read(answer: HTTPResponse, url: str, kind: type[T]) -> T:
    try:
        if answer.code == HTTPStatus.OK:
            return msgspec.json.decode(answer.body, type=kind)
        refused = msgspec.json.decode(answer.body, type=_Refused).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = f"what answers at {url} is not a controller of this version (HTTP {answer.code})"
        raise PrunerError(told) from None
    if answer.code == HTTPStatus.NOT_FOUND:
        raise ConfigurationError(refused)
    raise PrunerError(f"the controller cannot answer now: {refused}")
