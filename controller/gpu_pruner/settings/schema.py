"""Typed settings, and the one source of defaults.

Each field's description is what the reference page shows; the reasons for the numbers of deciding
stand in `docs/explanation/deciding.md`. Unknown keys are errors. Secrets are `SecretStr`, so that
they print as stars.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import (
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.model.rules import LEAST_STEPS, Mode, Rules
from gpu_pruner.model.units import MINUTE
from gpu_pruner.settings.addresses import ExporterAddress, ServerAddress, split_login
from gpu_pruner.settings.audience import AudienceSettings
from gpu_pruner.settings.channels import ChannelsSettings
from gpu_pruner.settings.credentials import Headers, Token
from gpu_pruner.settings.durations import format_duration
from gpu_pruner.settings.hubs import HubSettings, one_hub_each
from gpu_pruner.settings.lease import LeaseSettings
from gpu_pruner.settings.ledger import LedgerSettings
from gpu_pruner.settings.levers import (
    KIND_LETTERS,
    KINDS,
    LOSING_KINDS,
    CustomLever,
    distinct,
    known_kinds,
)
from gpu_pruner.settings.patterns import Pattern
from gpu_pruner.settings.platforms import Platform
from gpu_pruner.settings.report import ReportSettings
from gpu_pruner.settings.section import Duration, Section


def kinds_from_letters(letters: str) -> frozenset[str]:
    """Read `-e drsinl`.

    Args:
        letters: one letter per kind, in any order.

    Raises:
        ConfigurationError: a letter is unknown (the Rust tool then enabled everything).
    """
    unknown = sorted(set(letters) - KIND_LETTERS.keys())
    if unknown or not letters:
        known = ", ".join(f"{letter} = {kind}" for letter, kind in KIND_LETTERS.items())
        what = f"unknown resource letter {unknown[0]!r}" if unknown else "no resource letter"
        raise ConfigurationError(f"{what}; known: {known}")
    return frozenset(KIND_LETTERS[letter] for letter in letters)


class ProfileName(StrEnum):
    """Families of exporters whose metrics can be read (`observe.profiles`)."""

    DCGM = "dcgm"
    GOOGLE = "google"
    AZURE = "azure"
    NVIDIA_SMI = "nvidia_smi"
    AMD = "amd"


class _Telemetry(Section):
    """What both telemetry sources can be told."""

    profiles: tuple[ProfileName, ...] = Field(
        (ProfileName.DCGM,),
        min_length=1,
        description="Exporter families to read: dcgm, google, azure, nvidia_smi, amd. Each but the "
        "first has limits, which it tells as a note.",
    )
    node_label: str = Field(
        "",
        pattern=r"^([a-zA-Z_][a-zA-Z0-9_]*)?$",
        description="Label with the node's name, where relabelling renamed Hostname.",
    )


class PrometheusSettings(_Telemetry):
    """How to ask Prometheus, or anything that answers like it."""

    url: ServerAddress = Field(
        description="Base URL, for example http://prometheus.monitoring:9090. A user and password "
        "in it become `login`."
    )
    login: SecretStr | None = Field(
        None, description="user:password for basic authentication, written as in a URL."
    )
    token: Token | None = Field(None, description="Bearer token.")
    token_file: Path | None = Field(
        None, description="File with the bearer token; read again when it changes."
    )
    ca_file: Path | None = Field(None, description="CA bundle (PEM) for a private authority.")
    tls_verify: bool = Field(default=True, description="Whether to check the server's certificate.")
    headers: Headers = Field(
        default_factory=dict, description="Extra headers, for example X-Scope-OrgID."
    )
    honor_labels: bool | None = Field(
        None,
        description="true: the workload is in pod/namespace. false: in exported_pod/"
        "exported_namespace. Unset: found out by asking, which is right for mixed set-ups.",
    )
    cluster: str = Field(
        "",
        description="This cluster's value of the cluster label, where the server holds several "
        "clusters: names of namespaces and pods repeat among them.",
    )
    cluster_label: str = Field(
        "cluster",
        pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$",
        description="Label that tells clusters apart.",
    )
    timeout_seconds: float = Field(30.0, gt=0, description="Longest wait for one answer.")

    @model_validator(mode="before")
    @classmethod
    def _login_apart(cls, values: object) -> object:
        if not isinstance(values, Mapping) or not isinstance(url := values.get("url"), str):
            return values
        address, login = split_login(url)
        return {**values, "url": address, "login": login} if login else values


class ScrapeSettings(_Telemetry):
    """Reading DCGM exporters directly: for clusters without Prometheus."""

    exporters: tuple[ExporterAddress, ...] = Field(
        (),
        description="Exporter URLs. dns+http://name:9400/metrics means every address of a "
        "headless Service. A user and password in one become its entry of `logins`.",
    )
    logins: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Exporter URL to user:password for basic authentication, written as in a URL.",
    )
    interval_seconds: Duration = Field(30.0, gt=0, description="Time between two scrapes.")
    timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for one exporter.")

    @model_validator(mode="before")
    @classmethod
    def _logins_apart(cls, values: object) -> object:
        urls = values.get("exporters") if isinstance(values, Mapping) else None
        if not isinstance(values, Mapping) or not isinstance(urls, (list, tuple)):
            return values
        parts = [split_login(url) if isinstance(url, str) else (url, "") for url in urls]
        logins = {address: login for address, login in parts if login}
        if not logins:
            return values
        exporters = tuple(address for address, _ in parts)
        return {**values, "exporters": exporters, "logins": {**values.get("logins", {}), **logins}}


class KubernetesSettings(Section):
    """How to reach the API server. Unset: in-cluster, else the usual kubeconfig."""

    kubeconfig: Path | None = Field(None, description="Path of a kubeconfig file.")
    context: str | None = Field(None, description="Context of that file; unset: its current one.")
    timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for one answer.")


class BudgetSettings(Section):
    """How much may be paused at once; always at least one workload, of any size."""

    workloads_per_cycle: int = Field(5, ge=1, description="Workloads that one cycle may pause.")
    gpu_ratio_per_cycle: float = Field(
        0.10, gt=0, le=1, description="Share of allocated GPUs that one cycle may pause."
    )
    per_namespace_per_cycle: int = Field(
        1, ge=1, description="Workloads of one namespace that one cycle may pause."
    )
    per_hour: int = Field(20, ge=1, description="Workloads per hour.")
    ratio_per_hour: float = Field(
        0.02, ge=0, le=1, description="Share of workloads per hour; the larger of the two holds."
    )


class Settings(Section):
    """Everything that can be set, with its default."""

    preset: Platform | None = Field(
        None,
        description="Make of the cluster, for values that are the same on all of its kind: "
        "openshift, gke, eks or aks. Everything that is written wins over it.",
    )
    mode: Mode = Field(Mode.DRY_RUN, description="dry-run only says what it would do (`-r`).")
    window_seconds: Duration = Field(
        2100.0,
        gt=0,
        description="Judged period, 35 min by default (`-t`, there in minutes). At least 4 min, "
        "and 4 scrape intervals.",
    )
    settle_seconds: Duration = Field(
        300.0, ge=0, description="Added to the window for a pod's age since Ready (`-g`)."
    )
    idle_threshold: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="Peak engine activity, ratio 0-1, at or above which a step counts as work.",
    )
    coverage_ratio: float = Field(
        0.945, gt=0.5, le=1, description="Share of the window's steps that must have a sample."
    )
    freshness_seconds: Duration = Field(
        90.0, gt=0, description="Greatest age of the newest sample; at least 3 scrape intervals."
    )
    liveness: bool = Field(
        default=True,
        description="Whether energy, power or temperature must be seen to move before a zero "
        "counts as idle.",
    )
    liveness_changes: int = Field(
        10, ge=1, description="Changes asked for, at most a third of the steps."
    )
    measurable_models: tuple[str, ...] = Field(
        (),
        description="More GPU models whose zeros are believed: names as the exporter tells them, "
        "with * for any text. Models that were seen at work need not be listed.",
    )
    cycle_seconds: Duration = Field(60.0, gt=0, description="Time between two cycles (`-c`).")
    confirmations: int = Field(2, ge=1, description="Cycles in a row that must find it idle.")
    notice_seconds: Duration = Field(
        900.0, ge=0, description="Delivered warning to pause, 15 min (`--ack-grace-period`)."
    )
    keep_cap_seconds: Duration = Field(86_400.0, gt=0, description="Longest keep, 24 h.")
    shield_seconds: Duration = Field(
        7_200.0, ge=0, description="How long a Pending sibling or a rollout vetoes, 2 h."
    )
    never_ready_seconds: Duration = Field(
        21_600.0, ge=0, description="A pod that never becomes Ready counts from its start + 6 h."
    )
    verify_max_age_seconds: Duration = Field(
        15.0, gt=0, description="Greatest age of the full-window check at the moment of the act."
    )
    budget: BudgetSettings = Field(default=BudgetSettings(), description="Blast radius.")
    enabled_kinds: frozenset[str] = Field(
        KINDS, description="Root kinds that may be paused (`-e`)."
    )
    warn_only_kinds: frozenset[str] = Field(
        LOSING_KINDS,
        description="Root kinds whose owners are warned, and which are never paused: those that "
        "lose their progress by a stop. Leave one out to have it paused.",
    )
    custom_levers: tuple[CustomLever, ...] = Field(
        (), description="Levers for kinds that have none here; our ClusterRoles must allow them."
    )
    jupyter_hubs: tuple[HubSettings, ...] = Field(
        (), description="JupyterHubs whose user servers may be stopped, one per namespace."
    )
    protected_namespaces: frozenset[str] = Field(
        frozenset({"kube-system", "kube-public", "kube-node-lease"}),
        description="Namespaces in which nothing is ever paused.",
    )
    namespaces: Pattern | None = Field(
        None,
        description="Regular expression of the namespaces whose workloads may be paused, all of "
        "the name (`-n`). Unset: every one.",
    )
    models: Pattern | None = Field(
        None,
        description="Regular expression of the GPU models whose workloads may be paused, all of "
        "the name as the exporter tells it (`-m`). Unset: every one.",
    )
    power_threshold_watts: float | None = Field(
        None,
        gt=0,
        description="A device that drew more than this in the window is at work "
        "(`--power-threshold`). Unset: power alone is no work.",
    )
    prometheus: PrometheusSettings | None = Field(
        None, description="Prometheus as the telemetry source."
    )
    scrape: ScrapeSettings = Field(
        default=ScrapeSettings(),
        description="Exporters as the telemetry source, where no Prometheus is set.",
    )
    kubernetes: KubernetesSettings = Field(
        default=KubernetesSettings(), description="The API server."
    )
    lease: LeaseSettings = Field(
        default=LeaseSettings(), description="Which of several replicas acts."
    )
    ledger: LedgerSettings = Field(
        default=LedgerSettings(), description="Where history is kept, and for how long."
    )
    audience: AudienceSettings = Field(
        default=AudienceSettings(), description="Whom to tell where nobody is named."
    )
    report: ReportSettings = Field(
        default=ReportSettings(), description="What goes to people once a week."
    )
    channels: ChannelsSettings = Field(
        default=ChannelsSettings(), description="How people are told, beside Events."
    )
    listen_address: str = Field("0.0.0.0", description="Address of the HTTP listener.")  # noqa: S104 - a Service must reach it
    listen_port: int = Field(8080, ge=0, le=65_535, description="Its port; 0 takes a free one.")

    @field_validator("custom_levers")
    @classmethod
    def _distinct_levers(cls, levers: tuple[CustomLever, ...]) -> tuple[CustomLever, ...]:
        return distinct(levers)

    @field_validator("jupyter_hubs")
    @classmethod
    def _one_hub_each(cls, hubs: tuple[HubSettings, ...]) -> tuple[HubSettings, ...]:
        return one_hub_each(hubs)

    @field_validator("enabled_kinds", "warn_only_kinds")
    @classmethod
    def _known_kinds(cls, kinds: frozenset[str]) -> frozenset[str]:
        return known_kinds(kinds)

    @model_validator(mode="after")
    def _window_holds_enough_scrapes(self) -> Self:
        direct = not self.prometheus and self.scrape.exporters
        # Steps are a minute at least; how often Prometheus scrapes is only known when it answers.
        interval = max(MINUTE, self.scrape.interval_seconds if direct else 0.0)
        least = LEAST_STEPS * interval
        if self.window_seconds < least:
            message = (
                f"the window ({format_duration(self.window_seconds)}) is shorter than "
                f"{LEAST_STEPS} steps of {format_duration(interval)} ({format_duration(least)}): "
                "a step is one scrape interval, at least a minute; lengthen the window"
            )
            raise ValueError(message)
        return self

    def rules(self) -> Rules:
        """Return the numbers that decisions are made with."""
        return Rules(
            mode=self.mode,
            window_seconds=self.window_seconds,
            settle_seconds=self.settle_seconds,
            idle_threshold=self.idle_threshold,
            coverage_ratio=self.coverage_ratio,
            freshness_seconds=self.freshness_seconds,
            liveness_required=self.liveness,
            liveness_changes=self.liveness_changes,
            cycle_seconds=self.cycle_seconds,
            confirmations=self.confirmations,
            notice_seconds=self.notice_seconds,
            keep_cap_seconds=self.keep_cap_seconds,
            shield_seconds=self.shield_seconds,
            never_ready_seconds=self.never_ready_seconds,
            verify_max_age_seconds=self.verify_max_age_seconds,
            budget_workloads_per_cycle=self.budget.workloads_per_cycle,
            budget_gpu_ratio_per_cycle=self.budget.gpu_ratio_per_cycle,
            budget_per_namespace_per_cycle=self.budget.per_namespace_per_cycle,
            budget_per_hour=self.budget.per_hour,
            budget_ratio_per_hour=self.budget.ratio_per_hour,
            enabled_kinds=self.enabled_kinds,
            protected_namespaces=self.protected_namespaces,
            warn_only_kinds=self.warn_only_kinds,
            custom_kinds={(one.group, one.kind): one.made for one in self.custom_levers},
            measurable_models=self.measurable_models,
            namespaces=self.namespaces,
            models=self.models,
            directory=self.audience.directory(),
            power_threshold_watts=self.power_threshold_watts,
            delivering_channels=self.channels.delivering(),
        )
