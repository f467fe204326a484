"""Which settings can change while the program runs, and what a changed file changes.

What can change are the numbers and lists that decisions are made with: the next cycle uses the new
ones. What was connected, opened or promised with the old value needs a restart, and so does the
mode, so that no slip in a file lets the program act. Namespaces can become protected, but none can
lose its protection. No change shortens the deadline of a warning that runs: that is a rule of
deciding (`decide.clock`), whatever the settings say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from gpu_pruner.errors import ConfigurationError
from gpu_pruner.settings.fields import all_settings
from gpu_pruner.settings.schema import Settings
from gpu_pruner.settings.telling import plain, shown

AT_ONCE: frozenset[str] = frozenset(
    {
        "audience",
        "budget",
        "confirmations",
        "coverage_ratio",
        "enabled_kinds",
        "freshness_seconds",
        "idle_threshold",
        "liveness",
        "liveness_changes",
        "measurable_models",
        "models",
        "namespaces",
        "never_ready_seconds",
        "notice_seconds",
        "power_threshold_watts",
        "settle_seconds",
        "shield_seconds",
        "verify_max_age_seconds",
        "warn_only_kinds",
        "window_seconds",
    }
)
"""Names at the top of the settings that the next cycle takes over."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that is not what it was."""

    name: str
    before: str
    after: str

    @property
    def line(self) -> str:
        """Return it in one line, without secrets."""
        return f"{self.name}: {self.before} → {self.after}"


def changes(old: Settings, new: Settings) -> Iterator[Change]:
    """Yield what differs, in the order of the schema."""
    for keys, field in all_settings(Settings).items():
        before, after = (_value(one, keys) for one in (old, new))
        if before != after:
            yield Change(
                ".".join(keys),
                shown(plain(before, field)),
                shown(plain(after, field)),
            )


def _value(settings: Settings, keys: tuple[str, ...]) -> object:
    section: object = settings
    for key in keys:
        section = None if section is None else getattr(section, key)
    return section


def taken_over(old: Settings, new: Settings) -> Settings:
    """Return the settings of the next cycle: the new ones as far as they can change at once.

    Raises:
        ConfigurationError: new and old values do not go together, so that a restart is needed.
    """
    values = {
        name: getattr(new if name in AT_ONCE else old, name) for name in type(old).model_fields
    }
    values["protected_namespaces"] = old.protected_namespaces | new.protected_namespaces
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        why = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
        message = f"needs a restart, because with what cannot change at once {why}"
        raise ConfigurationError(message) from None
