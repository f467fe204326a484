"""Every error that this program raises on purpose.

    PrunerError
    ├── ConfigurationError(path)      a setting, flag or file is wrong; exit code 2
    ├── ObservationError              telemetry could not be read
    │   ├── PrometheusError           the server answered with an error, or not at all
    │   └── IncompleteData            the answer is partial (warnings): conclude nothing
    ├── ClusterError                  the Kubernetes API could not be used
    │   ├── NotFound
    │   ├── Conflict                  the object changed since it was read
    │   ├── Forbidden                 our ServiceAccount may not do this
    │   ├── Gone                      the resource version is too old; list again
    │   ├── Throttled                 asked to slow down
    │   └── NotLeading                another replica leads: nothing was sent
    ├── HubError(status)              a JupyterHub could not be used
    ├── NotificationError             a message was not delivered
    ├── ActionRefused(reason)         a last check before an act said no
    └── LedgerError                   history could not be written or read
        └── LedgerBusy                too many ask about it at once

Adapters translate library errors into these and chain the cause. Messages never carry
tokens, URLs with credentials, or bodies longer than 256 characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PrunerError(Exception):
    """Root of the tree: catch this to catch everything that we raise on purpose."""


class ConfigurationError(PrunerError):
    """A setting, flag or file is wrong. The command ends with exit code 2."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class ObservationError(PrunerError):
    """Telemetry could not be read."""


class PrometheusError(ObservationError):
    """Prometheus refused, failed or did not answer."""


class IncompleteData(ObservationError):
    """The answer is partial, so nothing may be concluded from it."""


class ClusterError(PrunerError):
    """The Kubernetes API could not be used."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status of the answer, or None where there was none."""


class NotFound(ClusterError):
    """The object, or its kind, does not exist."""


class Conflict(ClusterError):
    """The object changed since it was read; read it again and decide again."""


class Forbidden(ClusterError):
    """Our credentials do not allow this."""


class Gone(ClusterError):
    """The resource version or continue token is too old; list again."""


class Throttled(ClusterError):
    """The server asks us to slow down."""

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message, status=429)
        self.retry_after_seconds = retry_after_seconds


class NotLeading(ClusterError):
    """This replica does not hold the Lease, or not for long enough: the write was not sent."""


class HubError(PrunerError):
    """A JupyterHub refused, failed or did not answer."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status of the answer, or None where there was none: then it may have acted."""


class NotificationError(PrunerError):
    """A message was not delivered."""


class ActionRefused(PrunerError):
    """The last check before an act said no. Nothing was changed."""


class LedgerError(PrunerError):
    """History could not be written or read. Deciding never depends on it."""


class LedgerBusy(LedgerError):
    """So many ask about history that one more would wait too long."""


@contextmanager
def out_of_groups() -> Iterator[None]:
    """Let an error of ours leave a task group as itself, so that whoever expects it meets it.

    Put it around every `asyncio.TaskGroup`. Of several the first is told, a ConfigurationError
    before any other. A group with anything else in it is a bug, and stays as it is.
    """
    try:
        yield
    except ExceptionGroup as group:
        ours = list(_single(group))
        told = [one for one in ours if isinstance(one, PrunerError)]
        if len(told) < len(ours):
            raise
        raise min(told, key=lambda one: not isinstance(one, ConfigurationError)) from None


def _single(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for one in group.exceptions:
        if isinstance(one, ExceptionGroup):
            yield from _single(one)
        else:
            yield one
