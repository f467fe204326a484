"""The channels of the settings, ready to send. Called by `cli`, once per process."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_pruner.model.clock import Clock
from gpu_pruner.notify.channel import Channel
from gpu_pruner.settings.channels import ChannelsSettings


def channels_of(settings: ChannelsSettings, *, cluster: str, clock: Clock) -> tuple[Channel, ...]:
    """Return every channel beside Events, in the order of the settings; nothing is sent.

    Args:
        settings: which there are.
        cluster: its name, for messages that leave it.
        clock: dates what is signed.

    Raises:
        ConfigurationError: a CA bundle cannot be used.
    """
    return tuple(_opened(settings, cluster=cluster, clock=clock))


def _opened(settings: ChannelsSettings, *, cluster: str, clock: Clock) -> Iterator[Channel]:
    # Clients are imported where they are wanted: most clusters use one of them, or none.
    if settings.mail:
        from gpu_pruner.notify.mail import MailChannel  # noqa: PLC0415

        yield from (MailChannel(one, cluster=cluster) for one in settings.mail)
    if settings.pagerduty:
        from gpu_pruner.notify.pagerduty import PagerDutyChannel  # noqa: PLC0415

        yield from (PagerDutyChannel(one, cluster=cluster) for one in settings.pagerduty)
    if settings.webhooks:
        from gpu_pruner.notify.webhook import WebhookChannel  # noqa: PLC0415

        yield from (WebhookChannel(one, cluster=cluster, clock=clock) for one in settings.webhooks)
