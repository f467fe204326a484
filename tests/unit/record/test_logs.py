from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from support.manual_clock import ManualClock

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.record.logs import LogFormat, configure_logging


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("gpu_pruner")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    structlog.reset_defaults()


def logged(log_format: str) -> str:
    stream = io.StringIO()
    configure_logging(log_format, clock=ManualClock(), stream=stream)
    structlog.get_logger("gpu_pruner.loop").info("cycle", gpus=4, text="a\nb")
    logging.getLogger("gpu_pruner.kube").warning("plain %s", "words")
    logging.getLogger("some.library").info("chatter")
    logging.getLogger("some.library").warning("trouble")
    return stream.getvalue()


def test_json_is_one_object_per_line_with_the_clocks_time() -> None:
    lines = [json.loads(line) for line in logged("json").splitlines()]
    assert [line["event"] for line in lines] == ["cycle", "plain words", "trouble"]
    assert lines[0] == {
        "event": "cycle",
        "gpus": 4,
        "text": "a\nb",
        "level": "info",
        "logger": "gpu_pruner.loop",
        "at": "2026-01-31T12:00:00Z",
    }


def test_the_default_form_is_plain_text_in_one_line_per_event() -> None:
    text = logged("default")
    assert "\x1b" not in text
    assert "2026-01-31T12:00:00Z" in text
    assert "cycle" in text
    assert len(text.splitlines()) == 3


def test_pretty_has_colours() -> None:
    assert "\x1b[" in logged("pretty")


@pytest.mark.parametrize("log_format", LogFormat)
def test_an_exception_is_written_with_its_place_and_without_its_words(
    log_format: LogFormat,
) -> None:
    stream = io.StringIO()
    configure_logging(log_format, clock=ManualClock(), stream=stream)
    secret = "canary"
    try:
        try:
            int(secret)
        except ValueError as error:
            raise LookupError(secret) from error
    except LookupError:
        structlog.get_logger("gpu_pruner.loop").exception("cycle failed")
        logging.getLogger("some.library").exception("trouble")
    text = stream.getvalue()
    assert text.count("ValueError") >= 2
    assert text.count("LookupError") >= 2
    assert "test_logs.py" in text
    assert secret not in text


def test_configuring_twice_writes_each_line_once() -> None:
    logged("json")
    assert len(logged("json").splitlines()) == 3


def test_an_unknown_form_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="default, json, pretty"):
        configure_logging("xml")
