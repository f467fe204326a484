"""Whatever a server says around the credential that we sent, no error of ours holds it."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import event, given
from hypothesis import strategies as st

from gpu_pruner.errors import PrunerError
from gpu_pruner.jupyterhub import answers as hub
from gpu_pruner.kube import answers as kube
from gpu_pruner.model.foreign import NOTHING_SENT, Sent
from gpu_pruner.observe import prometheus_replies as prometheus

_LATIN = st.characters(min_codepoint=32, max_codepoint=255, categories=("L", "N", "P", "S", "Zs"))
_SECRETS = st.text(_LATIN, min_size=8, max_size=60).map(str.strip).filter(lambda one: len(one) > 7)
_AROUND = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["token: ", "Bearer ", "Authorization: Basic ", '"token":"', "//me:", "@", "=", " " * 300]
    ),
    st.sampled_from(["x" * 250, "x" * 4090]),
)
_WRITTEN: tuple[Callable[[str], str], ...] = (
    str,
    html.escape,
    lambda text: quote(text, safe=""),
    lambda text: json.dumps(text)[1:-1],
)
_STATUSES = st.sampled_from([302, 400, 401, 403, 404, 409, 410, 418, 422, 429, 500, 503])


def _errors(text: str, status: int, sent: Sent) -> list[str]:
    """Return what our clients say when a server answers with a text, in each of its forms."""
    bodies = [
        text.encode(),
        json.dumps({"message": text}).encode(),
        json.dumps({"status": "error", "errorType": "execution", "error": text}).encode(),
        json.dumps({"status": text, "data": {"resultType": "matrix", "result": []}}).encode(),
    ]
    said: list[str] = []
    for body in bodies:
        said.append(str(kube.refusal(status, body, {}, asked="GET /", sent=sent)))
        said.append(str(hub.refusal(status, body, retry_after=text, sent=sent)))
        said.append(str(prometheus.refusal(status, body, server="it", sent=sent)))
        try:
            prometheus.read(body, server="it", sent=sent)
        except PrunerError as error:
            said.append(str(error))
    error = ValueError(text)
    said.append(str(kube.unreadable("GET /", error, sent=sent)))
    said.append(str(kube.unreachable("http://it", error, waited=1.0, sent=sent)))
    return said


@given(_SECRETS, st.lists(_AROUND, max_size=4), st.lists(_AROUND, max_size=4), _STATUSES, st.data())
def test_no_error_repeats_a_credential(
    secret: str, before: list[str], after: list[str], status: int, data: st.DataObject
) -> None:
    written = data.draw(st.sampled_from(_WRITTEN))(secret)
    sent = NOTHING_SENT.also(f"Bearer {secret}")
    text = "".join((*before, written, *after))
    said = _errors(text, status, sent)
    event(f"quoted: {any('…' in one for one in said)}")
    for one in said:
        assert secret not in one
        assert written not in one
