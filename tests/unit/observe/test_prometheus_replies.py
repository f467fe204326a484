"""Every answer that is not complete and plain is an error that names the server and the fix."""

from __future__ import annotations

import json
import math

import pytest

from gpu_pruner.errors import IncompleteData, PrometheusError
from gpu_pruner.observe.prometheus_replies import QueryTooLarge, points, read, refusal

SERVER = "Prometheus at http://prometheus:9090"
MATRIX = {
    "resultType": "matrix",
    "result": [{"metric": {"UUID": "GPU-a"}, "values": [[60, "0"], [120.5, "NaN"]]}],
}


def reply(**more: object) -> bytes:
    return json.dumps({"status": "success", "data": MATRIX, **more}).encode()


def test_a_plain_answer_is_read() -> None:
    (series,) = read(reply(), server=SERVER).data.result
    zero, flaw = points(series.values)
    assert zero == (60.0, 0.0)
    assert flaw[0] == 120.5
    assert math.isnan(flaw[1])
    assert json.loads(bytes(series.metric)) == {"UUID": "GPU-a"}


def test_informational_notes_are_kept_and_harmless() -> None:
    noted = read(reply(warnings=["PromQL info: metric might not be a counter"]), server=SERVER)
    assert noted.infos == ["PromQL info: metric might not be a counter"]
    assert read(reply(infos=["PromQL info: x"]), server=SERVER).infos == ["PromQL info: x"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (reply(warnings=["PromQL info: x", "no store matched"]), "no store matched"),
        (reply(warnings=["PromQL warning: mixed"]), "PromQL warning: mixed"),
        (reply(isPartial=True), "isPartial"),
    ],
)
def test_a_partial_answer_is_incomplete_data(body: bytes, said: str) -> None:
    with pytest.raises(IncompleteData, match=said):
        read(body, server=SERVER)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty body"),
        (b"  \n<!DOCTYPE html><html>Log in</html>", "HTML page .* login page"),
        (b"upstream gone", "not a Prometheus answer: upstream gone"),
        (b'{"status":"success"', "not a Prometheus answer"),
        (b"[]", "not a Prometheus answer"),
        (b'{"status":"success","data":{"result":[{"metric":{},"values":[[}]}}', "not a Prom"),
        (b'{"status":"partial","data":{"result":[]}}', "reports status 'partial'"),
        (b"\xff\xfe\x00", "not a Prometheus answer"),
    ],
)
def test_what_is_no_answer_is_described(body: bytes, said: str) -> None:
    with pytest.raises(PrometheusError, match=said) as caught:
        read(body, server=SERVER)
    assert str(caught.value).startswith(SERVER)


@pytest.mark.parametrize("values", [b'[["x"]]', b"7", b'[[60,"many"]]', b"[[60,[]]]"])
def test_values_that_are_none_are_an_error(values: bytes) -> None:
    with pytest.raises(PrometheusError, match="values that cannot be read"):
        points(values)


def test_infinities_are_read() -> None:
    assert points(b'[[60,"+Inf"],[120,"-Inf"],[180,"1e-3"]]') == (
        (60.0, math.inf),
        (120.0, -math.inf),
        (180.0, 0.001),
    )


def error(kind: str, text: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": text}).encode()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "asks for credentials; set prometheus.token_file"),
        (403, b"", "does not allow our credentials"),
        (404, b"404 page not found", "no query API at this path"),
        (405, b"", "refuses POST"),
        (429, b"", "slow down"),
        (502, b"<html>", "behind a proxy that cannot reach it"),
        (503, b"Service Unavailable", "is unavailable"),
        (504, b"", "proxy that gave up"),
        (500, b"boom", "HTTP 500: boom"),
        (418, b"", "HTTP 418; check prometheus.url"),
        (
            400,
            error("prom-label-proxy", 'The "namespace" query parameter must be provided.'),
            "tenancy port.*9091",
        ),
        (400, error("bad_data", "parse error"), "HTTP 400: bad_data: parse error"),
        (422, error("execution", "many-to-many"), "HTTP 422: execution: many-to-many"),
        (503, error("unavailable", "starting"), r"is unavailable.*unavailable: starting"),
    ],
)
def test_a_refusal_names_the_fix(status: int, body: bytes, said: str) -> None:
    refused = refusal(status, body, server=SERVER)
    assert str(refused).startswith(SERVER)
    assert not isinstance(refused, QueryTooLarge)
    with pytest.raises(PrometheusError, match=said):
        raise refused


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, error("execution", "query processing would load too many samples into memory")),
        (400, error("bad_data", "exceeded maximum resolution of 11,000 points per timeseries.")),
        (503, error("timeout", "query timed out in expression evaluation")),
        (422, error("422", "cannot select more than -search.maxSamplesPerQuery=1 samples")),
        (422, error("execution", "the query exceeded ... (err-mimir-max-series-per-query)")),
    ],
)
def test_a_question_that_is_too_large_is_told_from_a_wrong_one(status: int, body: bytes) -> None:
    assert isinstance(refusal(status, body, server=SERVER), QueryTooLarge)


def test_a_long_body_is_quoted_shortened() -> None:
    assert len(str(refusal(500, b"x" * 10_000, server=SERVER))) < 400
