"""Mail over SMTP: plain text to the owner, where an annotation says who that is, else to a team.

The annotation is hostile input: what is not exactly an address in an allowed domain is never
written to, and nothing of it gets into a header. The Message-ID comes from the message's key, so
that a repeat is recognised; all messages about one workload refer to one thread.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import aiosmtplib

from gpu_pruner.errors import NotificationError
from gpu_pruner.model.foreign import quoted
from gpu_pruner.model.orders import MessageKind
from gpu_pruner.model.units import Seconds
from gpu_pruner.notify.channel import Audience, Taking
from gpu_pruner.notify.messages import Message
from gpu_pruner.notify.text import inert
from gpu_pruner.notify.tls import client_context
from gpu_pruner.settings.channels import MailSecurity, MailSettings

LONGEST_ADDRESS = 254
"""Characters of a mail address (RFC 5321, a path without its brackets)."""

_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*"
    r"@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
)
"""The plain form of an address: no quotes, comments, blanks or characters beyond ASCII."""


def address_in(text: str, *, domains: frozenset[str]) -> str | None:
    """Return the address that a text is, if it is in one of the domains; None where it is not.

    Args:
        text: foreign.
        domains: in lower case; subdomains do not count.
    """
    if len(text) > LONGEST_ADDRESS or not _ADDRESS.fullmatch(text):
        return None
    return text if text.rpartition("@")[2].lower() in domains else None


class MailChannel:
    """Sends mails through one server, with a connection for each."""

    holds_alerts = False

    def __init__(self, settings: MailSettings, *, cluster: str) -> None:
        """Prepare; nothing is sent yet.

        Raises:
            ConfigurationError: the CA bundle cannot be used.
        """
        self.name = settings.name
        self.timeout_seconds: Seconds | None = settings.timeout_seconds
        self._settings = settings
        self._cluster = cluster
        self._takes = Taking(settings.messages, settings.least_severity)
        self._domains = settings.owner_domains | {settings.to.rpartition("@")[2].lower()}
        self._tls = client_context(settings.ca_file, channel=settings.name)

    def takes(self, kind: MessageKind) -> bool:
        """Return whether messages of this kind are mailed."""
        return kind in self._takes

    async def send(self, message: Message, to: Audience) -> str:
        """Send one mail.

        Raises:
            NotificationError: the server did not take it on.
        """
        receiver = address_in(to.owner, domains=self._domains) or self._settings.to
        try:
            mail = self.mail_of(message, receiver=receiver)
            await self._handed_over(mail, receiver)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise NotificationError(_failure(error)) from None
        return f"mail to {receiver} taken on by {self._settings.host}"

    async def close(self) -> None:
        """Nothing is kept open."""

    def mail_of(self, message: Message, *, receiver: str) -> EmailMessage:
        """Return a message as a mail, with nothing in its subject that could end a header."""
        root, domain = message.root, self._settings.sender.rpartition("@")[2]
        told = f"{self._cluster}\n{root.uid}\n{root.ref}"
        thread = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:32]
        where = f"[{self._cluster}] " if self._cluster else ""
        mail = EmailMessage(policy=SMTP)
        mail["From"] = Address(addr_spec=self._settings.sender)
        mail["To"] = Address(addr_spec=receiver)
        mail["Subject"] = inert(f"{where}{message.title}")
        mail["Date"] = format_datetime(datetime.fromtimestamp(message.at, UTC))
        mail["Message-ID"] = f"<{message.key}.gpu-pruner@{domain}>"
        mail["References"] = f"<{thread}.gpu-pruner@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(f"{message.text}\n")
        return mail

    async def _handed_over(self, mail: EmailMessage, receiver: str) -> None:
        settings = self._settings
        wait = settings.timeout_seconds
        client = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            timeout=wait,
            use_tls=settings.security is MailSecurity.TLS,
            start_tls=settings.security is MailSecurity.STARTTLS,
            tls_context=None if settings.security is MailSecurity.NONE else self._tls,
            local_hostname="gpu-pruner",
        )
        try:
            await client.connect()
            if settings.user is not None and settings.password is not None:
                await client.login(settings.user, settings.password.read())
            await client.send_message(mail, sender=settings.sender, recipients=[receiver])
        finally:
            client.close()


_FAILURES: tuple[tuple[type[Exception], str], ...] = (
    (aiosmtplib.SMTPRecipientsRefused, "the mail server refused the receiver"),
    (aiosmtplib.SMTPTimeoutError, "the mail server did not answer in time"),
    (aiosmtplib.SMTPConnectError, "no connection to the mail server"),
    (aiosmtplib.SMTPServerDisconnected, "the mail server broke off"),
    (aiosmtplib.SMTPException, "the mail server cannot be used as it is set"),
)
"""What failed, in our words: a server's may hold what we sent. The first that fits is told."""


def _failure(error: Exception) -> str:
    """Return why a mail was not taken on."""
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return f"the mail server refused our login ({error.code})"
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return f"the mail server answered with {error.code}"
    words = next((told for kind, told in _FAILURES if isinstance(error, kind)), "")
    return words or f"the mail could not be sent: {quoted(str(error))}"
