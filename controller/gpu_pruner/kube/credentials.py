"""Where the API server is and who we are: kubeconfig or in-cluster.

Finds the configuration that the official client needs, and renews it when a token has run out.
It never sends a request to the API server, and no message of it contains a credential. Only
`kube.client` uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.schema import KubernetesSettings

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_NOTHING = (
    "no Kubernetes API is configured: set kubernetes.kubeconfig or KUBECONFIG, "
    "or run inside a cluster with a ServiceAccount"
)


@dataclass(slots=True)
class Credentials:
    """The official client's configuration, and where it came from."""

    configuration: Configuration
    kubeconfig: str | None
    """Path or paths of the kubeconfig; None in a cluster."""
    context: str | None

    @classmethod
    async def load(
        cls, settings: KubernetesSettings, *, environment: Mapping[str, str] = os.environ
    ) -> Credentials:
        """Find the API server.

        The first of these that is there: `settings.kubeconfig`; ``KUBECONFIG``; the usual
        kubeconfig, if a context was asked for; the cluster that we run in; the usual kubeconfig.

        Args:
            settings: section ``kubernetes``.
            environment: environment variables.

        Raises:
            ConfigurationError: nothing is configured, or what is configured cannot be used.
        """
        found = cls(Configuration(), _kubeconfig(settings, environment), settings.context)
        await found.renew()
        return found

    async def renew(self) -> None:
        """Read the credentials anew, for example after the server refused a token.

        Raises:
            ConfigurationError: they cannot be read.
        """
        if self.kubeconfig is None:
            self._from_cluster()
        else:
            await self._from_file(self.kubeconfig)

    def _from_cluster(self) -> None:
        try:
            load_incluster_config(  # type: ignore[no-untyped-call]  # the library is not typed
                client_configuration=self.configuration
            )
        except (ConfigException, OSError) as error:
            raise ConfigurationError(f"{error} {_NOTHING}", path="in-cluster") from error

    async def _from_file(self, kubeconfig: str) -> None:
        if not _exists(kubeconfig):
            raise ConfigurationError("no such kubeconfig", path=kubeconfig)
        try:
            await load_kube_config(  # type: ignore[no-untyped-call]  # the library is not typed
                config_file=kubeconfig,
                context=self.context,
                client_configuration=self.configuration,
                persist_config=False,
            )
        # The loader walks the file without checking it, so a wrong shape shows as any of these.
        except (
            ConfigException,
            yaml.YAMLError,
            OSError,
            AttributeError,
            KeyError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise ConfigurationError(_shape(error, self.context), path=kubeconfig) from None


def _parts(kubeconfig: str) -> list[str]:
    """Return the files of a kubeconfig variable, which may name several."""
    return [part for part in kubeconfig.split(os.pathsep) if part]


def _exists(kubeconfig: str) -> bool:
    return any(Path(part).is_file() for part in _parts(kubeconfig))


def _kubeconfig(settings: KubernetesSettings, environment: Mapping[str, str]) -> str | None:
    """Return the kubeconfig to read, or None for the cluster that we run in."""
    if settings.kubeconfig is not None:
        return str(settings.kubeconfig.expanduser())
    if named := environment.get("KUBECONFIG"):
        return os.pathsep.join(str(Path(part).expanduser()) for part in _parts(named))
    usual = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    if settings.context is not None:
        return str(usual)
    if environment.get(_IN_CLUSTER):
        return None
    if usual.is_file():
        return str(usual)
    raise ConfigurationError(_NOTHING)


def _shape(error: Exception, context: str | None) -> str:
    """Return what is wrong with a kubeconfig, without its content.

    The loader's own messages quote whole entries, tokens included, so only the part before the
    first entry is kept, and the chained cause is dropped by the caller for the same reason.
    """
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"is not YAML{f' (line {mark.line + 1})' if mark else ''}"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    named = f" with the context {context!r}" if context else ""
    if isinstance(error, ConfigException):
        return f"cannot be used as a kubeconfig{named}: {str(error).partition('{')[0].strip()}"
    return f"cannot be used as a kubeconfig{named}: it does not have the shape of one"
