"""A real Prometheus (Debian package) on loopback: back-filled history, live scraping, both at once.

Nothing here ever touches a Prometheus that it did not start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

EXPORTER_NAMESPACE = "gpu-operator"
EXPORTER_POD = "exporter-x"
"""What a ServiceMonitor's target labels say: the exporter's own namespace and pod."""

PROMETHEUS3 = Path(__file__).with_name("prometheus3.sh")

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


def require_prometheus() -> None:
    """Skip the calling test where Prometheus is absent; with CI=true a skip is a failure."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: apt-get install prometheus")


def prometheus_binaries() -> dict[str, str]:
    """Return the Prometheus generations to test with: Debian's, and a 3.x where it was built."""
    where = subprocess.run(["sh", PROMETHEUS3, "--where"], check=True, capture_output=True)
    built = where.stdout.decode().strip()
    return {"2.42": "prometheus"} | ({"3.x": built} if Path(built).exists() else {})


@dataclass(frozen=True)
class History:
    """One series' past."""

    metric: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    """(Unix seconds, value), ascending."""


def every(seconds: float, start: float, end: float) -> list[float]:
    """Return scrape times from start, up to and with end."""
    return [start + n * seconds for n in range(int((end - start) // seconds) + 1)]


def as_stored(
    labels: Mapping[str, str], *, honor_labels: bool, target: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return an exposed series' labels as Prometheus stores them under a ServiceMonitor.

    Args:
        labels: as the exporter shows them.
        honor_labels: whether they win over the target's.
        target: labels of the target that differ from the usual exporter's.
    """
    usual = {"namespace": EXPORTER_NAMESPACE, "pod": EXPORTER_POD, "job": "dcgm-exporter"}
    usual |= {"instance": "10.0.0.1:9400", "container": "exporter"}
    target = usual | dict(target or {})
    if honor_labels:
        stored = target | dict(labels)
    else:
        renamed = {f"exported_{key}" if key in target else key: labels[key] for key in labels}
        stored = renamed | target
    return {name: value for name, value in stored.items() if value}


def openmetrics(histories: Iterable[History]) -> str:
    """Write histories as OpenMetrics text, as promtool wants it."""
    lines = []
    ordered = sorted(histories, key=lambda one: one.metric)
    for metric, family in groupby(ordered, key=lambda one: one.metric):
        lines.append(f"# TYPE {metric} gauge")
        for one in family:
            labels = ",".join(f"{name}={json.dumps(text)}" for name, text in one.labels.items())
            lines += [f"{metric}{{{labels}}} {value!r} {at:.3f}" for at, value in one.points]
    return "\n".join([*lines, "# EOF\n"]).replace(" nan ", " NaN ").replace(" inf ", " +Inf ")


def backfill(text: str, directory: Path) -> Path:
    """Turn OpenMetrics text into blocks that a `PrometheusServer` can open.

    Returns:
        The data directory, made below the given one.
    """
    require_prometheus()
    source, data = directory / "history.om", directory / "data"
    source.write_text(text, encoding="utf-8")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(source), str(data)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return data


@dataclass
class PrometheusServer:
    """A context manager around one prometheus process."""

    directory: Path
    """For its configuration, log and, unless `data` is set, its data."""
    data: Path | None = None
    """Data directory, for example of `backfill`."""
    targets: tuple[str, ...] = ()
    """host:port of exporters to scrape."""
    static_configs: tuple[Mapping[str, object], ...] = ()
    """More targets, in Prometheus' own form."""
    honor_labels: bool = False
    scrape_interval: str = "15s"
    arguments: tuple[str, ...] = ()
    """More command-line arguments, for example ``--query.max-samples=1000``."""
    binary: str = "prometheus"
    """One of `prometheus_binaries`."""
    url: str = field(default="", init=False)

    def __enter__(self) -> Self:
        require_prometheus()
        self.directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        configuration = self.directory / "prometheus.json"
        # JSON is YAML.
        configuration.write_text(json.dumps(self._configuration()), encoding="utf-8")
        self._log = (self.directory / "prometheus.log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [
                self.binary,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self.data or self.directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--storage.tsdb.retention.time=10y",
                *self.arguments,
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def process_id(self) -> int:
        """Return the process that runs."""
        return self._process.pid

    def _configuration(self) -> dict[str, object]:
        target_labels = {"namespace": EXPORTER_NAMESPACE, "pod": EXPORTER_POD}
        job = {
            "job_name": "dcgm-exporter",
            "honor_labels": self.honor_labels,
            "static_configs": [
                {"targets": list(self.targets), "labels": target_labels},
                *self.static_configs,
            ],
        }
        return {
            "global": {"scrape_interval": self.scrape_interval, "scrape_timeout": "1s"},
            "scrape_configs": [job] if self.targets or self.static_configs else [],
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"prometheus ended at once: {self._tail()}")
            if self._is_ready():
                return
            time.sleep(0.05)
        raise RuntimeError(f"prometheus did not get ready: {self._tail()}")

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", int(self.url.rpartition(":")[2]), timeout=2)
        try:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _tail(self) -> str:
        return Path(self._log.name).read_text(encoding="utf-8")[-2000:]

    def _stop(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._log.close()


def free_port() -> int:
    """Return a TCP port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
