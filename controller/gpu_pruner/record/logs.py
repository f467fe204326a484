"""How this program logs: one structured line per event, on standard error.

Answers in which form and from which level on. Standard output stays free for results. Called once
by `cli` at the start; everybody else asks `structlog.get_logger`. Of an exception the types and
places are written, never its words: those of a library may repeat a token.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from enum import StrEnum
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.clock import Clock
from gpu_pruner.model.units import rfc3339
from gpu_pruner.settings.clock import clock_from_environment


class LogFormat(StrEnum):
    """The values of `-l/--log-format`, as in the Rust tool."""

    DEFAULT = "default"
    """One plain line per event, without colour."""
    JSON = "json"
    """One JSON object per line."""
    PRETTY = "pretty"
    """Coloured, for a terminal."""


def configure_logging(
    log_format: str,
    *,
    clock: Clock | None = None,
    level: int = logging.INFO,
    stream: TextIO | None = None,
) -> None:
    """Send our own lines and those of libraries to one stream in one form.

    Args:
        log_format: a value of `LogFormat`.
        clock: whose time the lines carry; this process' own where None.
        level: lowest level that is written; libraries are written from WARNING on.
        stream: where to; standard error where None.

    Raises:
        ConfigurationError: there is no such form.
    """
    form = _format_of(log_format)
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _stamp(clock or clock_from_environment()),
        _trace,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(form, shared))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger("gpu_pruner").setLevel(level)


def _stamp(clock: Clock) -> Processor:
    """Return the step that adds the clock's time to a line."""

    def stamp(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["at"] = rfc3339(clock.now())
        return event

    return stamp


def _trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Write an exception, and those that led to it, as types and places."""
    told = event.pop("exc_info", None)
    if told is True or isinstance(told, tuple):
        told = (sys.exc_info() if told is True else told)[1]
    if isinstance(told, BaseException):
        event["exception"] = "\n".join(_chain(told))
    return event


def _chain(error: BaseException) -> Iterator[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _chain(cause)
        yield "which led to"
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip()
    yield type(error).__name__


def _formatter(form: LogFormat, shared: list[Processor]) -> logging.Formatter:
    """Return what turns a line into text; lines of libraries get the shared steps first."""
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[meta, _renderer(form)]
    )


def _format_of(text: str) -> LogFormat:
    try:
        return LogFormat(text)
    except ValueError as error:
        known = ", ".join(LogFormat)
        raise ConfigurationError(f"unknown log format {text[:40]!r}; known: {known}") from error


def _renderer(log_format: LogFormat) -> Processor:
    if log_format is LogFormat.JSON:
        return structlog.processors.JSONRenderer(sort_keys=False)
    return structlog.dev.ConsoleRenderer(colors=log_format is LogFormat.PRETTY)
