"""Redirects of the API server: none is followed, because it would take our requests elsewhere.

The official client has no switch for that, but lets its HTTP library tell before it follows one.
Only `kube.client` uses it.
"""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp

from gpu_pruner.kube import answers
from gpu_pruner.model.foreign import NOTHING_SENT


def refused() -> aiohttp.TraceConfig:
    """Return what makes a session raise `errors.ClusterError` where it would follow a redirect."""
    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(_refuse)
    return config


async def _refuse(
    _session: aiohttp.ClientSession,
    _context: SimpleNamespace,
    asked: aiohttp.TraceRequestRedirectParams,
) -> None:
    answer = asked.response
    answer.close()
    headers = answer.headers
    location = headers.get("Location") or headers.get("URI") or ""
    sent = NOTHING_SENT.also(asked.headers.get("Authorization", ""))
    raise answers.redirected(str(asked.url), answer.status, location, sent=sent)
