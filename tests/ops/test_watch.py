"""Figures, request ids and traces, over real HTTP; and what none of them may hold."""

from __future__ import annotations

import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from django.contrib.auth.models import User
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pytest_django import Settings

from confirmhub import logs
from confirmhub.confirmations.principals import Principal
from confirmhub.ops import metrics, watch
from tests.bridge.hosts import call_message, make_token, post
from tests.bridge.serving import BALANCER, replica
from tests.factories import make_pending
from tests.ops.conftest import Log

TOKEN = "t" * 40
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def figures(url: str) -> dict[str, float]:
    answer = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200, answer.text
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_the_figures_count_what_waits_and_what_was_asked(
    url: str, agent: Principal, settings: Settings
) -> None:
    settings.METRICS_TOKEN = TOKEN
    before = figures(url)
    make_pending(agent)
    httpx2.get(f"{url}/sign-in")

    after = figures(url)

    assert (before["confirmhub_waiting"], after["confirmhub_waiting"]) == (0, 1)
    assert after["confirmhub_notices_due"] == 1
    assert after["confirmhub_database_up"] == 1
    name = 'confirmhub_requests_total{method="GET",place="pages",status="200"}'
    assert after[name] == before.get(name, 0) + 1


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"]
)
def test_figures_are_for_who_holds_the_token(url: str, settings: Settings, authorization: str | None) -> None:
    settings.METRICS_TOKEN = TOKEN
    headers = {} if authorization is None else {"Authorization": authorization.encode()}

    answer = httpx2.get(f"{url}/metrics", headers=headers)

    assert (answer.status_code, "confirmhub_" in answer.text) == (401, False)


def test_without_a_token_in_the_settings_there_are_none(url: str) -> None:
    assert httpx2.get(f"{url}/metrics", headers={"Authorization": "Bearer x"}).status_code == 404


def test_figures_that_take_too_long_are_an_answer_in_words(
    url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.METRICS_TOKEN = TOKEN
    released, held = threading.Event(), []

    def hang(_: object) -> bytes:
        held.append(threading.current_thread())
        released.wait(30)
        return b""

    monkeypatch.setattr(metrics, "PATIENCE", 0.05)
    monkeypatch.setattr(metrics, "generate_latest", hang)

    try:
        for _ in range(3):
            answer = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code == 503
    finally:
        released.set()

    assert answer.text == "The database does not answer. Ask again later.\n"
    assert len(held) == 1  # thread, however often somebody asks


def test_no_label_holds_what_a_stranger_chose(url: str, settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    httpx2.request("PROPFIND", f"{url}/confirm/s3cret?token=s3cret")
    assert httpx2.request("BREW", f"{url}/confirm/s3cret").status_code == 400

    text = "\n".join(figures(url))

    assert "s3cret" not in text
    assert "PROPFIND" not in text
    assert "BREW" not in text
    assert 'method="other",place="pages"' in text


def test_each_request_is_a_line_in_the_log_without_its_query(url: str, log: Log) -> None:
    httpx2.get(f"{url}/nothing-here?access_token=s3cret")

    *_, line = log.of_next_request()

    assert line["logger"] == "confirmhub.access"
    assert re.fullmatch(r'127\.0\.0\.1 "GET /nothing-here" 404 in \d+ ms', line["message"])
    assert "s3cret" not in "".join(log.lines)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/livez", "health"),
        ("/live", "live"),
        ("/lively", "pages"),
        ("/mcp", "bridge"),
        ("/api/v1/confirmations", "api"),
        ("/aap/v1/requests", "api"),
        ("/apis", "pages"),
        ("/", "pages"),
    ],
)
def test_a_place_is_told_by_the_whole_of_its_name(path: str, place: str) -> None:
    assert watch.place_of(path) == place


@pytest.mark.parametrize("given", [None, "from-the-proxy.1"])
def test_an_answer_and_its_lines_in_the_log_have_one_id(
    url: str, alice: User, settings: Settings, log: Log, given: str | None
) -> None:
    headers = {}
    if given is not None:
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        headers = {"X-Request-Id": given}
    token = make_token(alice, resource=f"{url}/mcp")
    refused = call_message("list_confirmations", {}, requestState="forged")
    requests: dict[str, Callable[[], httpx2.Response]] = {
        "django.request": lambda: httpx2.get(f"{url}/nothing-here", headers=headers),
        "mcp.server.request_state": lambda: post(url, refused, token=token, headers=headers),
    }

    for logger, request in requests.items():
        id_ = request().headers["X-Request-Id"]
        said = log.of_next_request()

        assert ID.fullmatch(id_) if given is None else id_ == given
        assert logger in {line["logger"] for line in said}
        assert {line.get("request_id") for line in said} == {id_}


def test_each_request_has_an_id_of_its_own(url: str) -> None:
    assert len({httpx2.get(f"{url}/livez").headers["X-Request-Id"] for _ in range(3)}) == 3


def test_a_strangers_id_is_taken_behind_a_proxy_alone(url: str, settings: Settings) -> None:
    def answered(id_: str) -> str:
        return str(httpx2.get(f"{url}/livez", headers={"X-Request-Id": id_}).headers["X-Request-Id"])

    assert answered("from-a-stranger") != "from-a-stranger"
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert answered("from-the-proxy") == "from-the-proxy"
    assert ID.fullmatch(answered("x y"))


def test_a_record_says_its_request_in_both_forms() -> None:
    record = logging.LogRecord("n", logging.INFO, "f", 1, "hello %s", ("a\nb\x1b",), None)
    token = logs.request_id.set("abc")
    try:
        line = logs.Formatter("%(message)s").format(record)
        said = json.loads(logs.JsonFormatter().format(record))
    finally:
        logs.request_id.reset(token)

    assert "\n" not in line
    assert line.endswith("[abc]")
    assert (said["request_id"], said["level"], said["logger"]) == ("abc", "INFO", "n")
    assert not {"\n", "\x1b"} & set(said["message"])


@contextmanager
def collector() -> Iterator[tuple[str, queue.Queue[tuple[str, bytes]]]]:
    """Where traces can be sent, and the path and body of each request that came."""
    got: queue.Queue[tuple[str, bytes]] = queue.Queue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_traces_go_to_the_collector_that_the_setting_names(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (endpoint, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint
        made: list[object] = []
        monkeypatch.setattr(trace, "set_tracer_provider", made.append)
        provider = watch.start_tracing()
        assert provider is not None
        assert made == [provider]
        monkeypatch.setattr(watch, "_tracer", provider.get_tracer("confirmhub"))
        scope = {
            "method": "GET",
            "headers": [(b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")],
        }
        with watch._span(scope, name="GET pages", id_="abc") as span:
            assert f"{span.get_span_context().trace_id:x}" == "a" * 32
        provider.shutdown()

    path, body = got.get_nowait()
    assert path == "/v1/traces"
    assert b"GET pages" in body
    assert got.empty()


def test_the_spans_of_the_sdk_are_below_that_of_the_request_and_it_below_its_callers(
    alice: User, transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = {"trace": "a" * 32, "span": "b" * 16}
    token = make_token(alice, resource=f"http://{BALANCER}/mcp")
    headers = {"host": BALANCER, "traceparent": f"00-{caller['trace']}-{caller['span']}-01"}
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")  # milliseconds
    with collector() as (endpoint, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        with replica(keys=["k" * 40], root=tmp_path) as address:
            message = call_message("list_confirmations", {})
            answer = post(address, message, token=token, headers=headers)
            assert answer.status_code == 200, answer.text
            spans = {}
            while not {"POST bridge", "tools/call list_confirmations"} <= set(spans):
                spans |= {span.name: span for span in exported(got.get(timeout=20)[1])}

    request, call = spans["POST bridge"], spans["tools/call list_confirmations"]
    assert request.trace_id.hex() == call.trace_id.hex() == caller["trace"]
    assert request.parent_span_id.hex() == caller["span"]
    assert call.parent_span_id == request.span_id
    [id_] = [each.value.string_value for each in request.attributes if each.key == "confirmhub.request_id"]
    assert id_ == answer.headers["X-Request-Id"]


def exported(body: bytes) -> list[Span]:
    """The spans of one request to a collector (OTLP/HTTP, in binary)."""
    message = ExportTraceServiceRequest.FromString(body)
    return [
        span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]


def test_without_the_setting_nothing_is_traced() -> None:
    assert watch.start_tracing() is None
