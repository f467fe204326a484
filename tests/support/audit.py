"""The API server's own record of what everybody asked it: the witness of the lab's tests.

Reads the audit file. An entry appears within moments after its request was answered: `until` waits
for one, and `Lab.audited` for everything that was asked before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_WAIT_SECONDS = 20.0

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None # the server talking to itself, and probes
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/openapi*"]
- level: Metadata # the control plane and what plays the kubelet
  users: ["lab-kubelet", "system:kube-controller-manager", "system:kube-scheduler"]
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata # bodies with tokens in them
  resources:
  - group: authentication.k8s.io
  - group: ""
    resources: ["serviceaccounts/token", "secrets"]
- level: Request # what everybody else changes, with the body
  verbs: ["create", "update", "patch", "delete", "deletecollection"]
- level: Metadata
"""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """Fields that we do not read are ignored."""


class User(_Part, frozen=True):
    username: str
    groups: tuple[str, ...] = ()


class ObjectRef(_Part, frozen=True):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""


class Answer(_Part, frozen=True):
    code: int = 0
    reason: str = ""


class Entry(_Part, frozen=True):
    """One request. A watch has two entries: when it begins and when it ends."""

    audit_id: str = msgspec.field(name="auditID")
    stage: str
    verb: str
    user: User
    request_received_timestamp: str
    request_uri: str = msgspec.field(name="requestURI")
    user_agent: str = ""
    object_ref: ObjectRef = ObjectRef()
    response_status: Answer = Answer()
    request_object: object = None
    """The decoded body of a write, where the policy keeps it."""

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    @property
    def is_refused(self) -> bool:
        """Whether the server said no, and not because a person's order came at the same moment.

        A command notes what it did in the book, and so does the cycle: one of the two is told 409.
        """
        at, code = self.object_ref, self.response_status.code
        is_race = (at.resource, at.subresource, code) == ("gpuworkloads", "status", 409)
        return code >= 300 and not is_race

    @property
    def told(self) -> str:
        """The request in a line, for messages of failed tests."""
        at = self.object_ref
        place = "/".join(one for one in (at.namespace, at.name, at.subresource) if one)
        return f"{self.verb} {at.resource} {place} -> {self.response_status.code}"


class AuditLog:
    """What was asked since a mark, which is where the file ended when it was set."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from = 0

    def mark(self) -> None:
        """Forget what was asked until now."""
        self._from = self._path.stat().st_size if self._path.exists() else 0

    def entries(self, *, user: str = "") -> Sequence[Entry]:
        """Return what was asked since the mark, by everybody or by one user, in order."""
        return [one for one in self._read() if user in {"", one.user.username}]

    def until(self, wanted: Callable[[Entry], bool]) -> Entry:
        """Wait for an entry since the mark, and return the first.

        Raises:
            AssertionError: none came.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            for one in self._read():
                if wanted(one):
                    return one
            time.sleep(0.05)
        raise AssertionError("the audit log never showed it; it shows:\n" + self._tail())

    def _tail(self) -> str:
        return "\n".join(f"{one.user.username}: {one.told}" for one in list(self._read())[-30:])

    def _read(self) -> Iterator[Entry]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._from)
            for line in file:
                if line.endswith(b"\n"):  # else it is still being written
                    yield msgspec.json.decode(line, type=Entry)
