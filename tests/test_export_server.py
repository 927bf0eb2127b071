"""What a server that does not start, or is not there, is told as. The real one is asked in lesson 07."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from grpo_utils.errors import CourseError
from grpo_utils.export import server
from grpo_utils.export.server import ask_server

MESSAGES = [{"role": "user", "content": "What is 15 + 27?"}]


@pytest.fixture
def model(tmp_path):
    """A folder that looks like a model."""
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def stand_in(monkeypatch, code: str) -> None:
    monkeypatch.setattr(server, "SERVE", (sys.executable, "-c", code))


def test_a_folder_without_a_model(model):
    (model / "config.json").unlink()
    with pytest.raises(CourseError, match="it has no config.json"), server.served(model):
        pass


def test_a_server_that_dies_is_told_with_its_last_words(model, monkeypatch):
    stand_in(monkeypatch, "print('loading ...'); raise SystemExit('no such model')")
    with (
        pytest.raises(CourseError, match="ended .1.. Its last lines: loading ... / no such model"),
        server.served(model),
    ):
        pass


def test_a_server_that_is_late_is_ended(model, monkeypatch):
    stand_in(monkeypatch, f"open({str(model / 'pid')!r}, 'w').write(str(__import__('os').getpid())); " + LATE)
    said = "was not ready after 1 s. Its last lines: still loading"
    with pytest.raises(CourseError, match=said), server.served(model, seconds=1):
        pass
    assert not psutil.pid_exists(int((model / "pid").read_text()))


LATE = "print('still loading', flush=True); import time; time.sleep(60)"
ANSWERS = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""


def test_the_server_ends_with_the_block_even_if_the_block_fails(model, monkeypatch):
    stand_in(monkeypatch, ANSWERS)
    with pytest.raises(ZeroDivisionError), server.served(model) as address:
        assert server._is_ready(address)
        raise ZeroDivisionError
    assert not server._is_ready(address)


@pytest.fixture
def small_server():
    """A server of this test: it says what it was asked, or refuses."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            refused = asked[-1].get("model") == "unknown"
            self.send_response(400 if refused else 200)
            self.end_headers()
            answer = {"choices": [{"message": {"content": "It is 42."}}]}
            self.wfile.write(b"no such model" if refused else json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", asked
    http.shutdown()
    http.server_close()


def test_what_is_asked_is_openais_protocol(small_server):
    address, asked = small_server
    assert ask_server(address, MESSAGES, max_tokens=32) == "It is 42."
    assert asked == [{"messages": MESSAGES, "max_tokens": 32, "temperature": 0.0, "stream": False}]


def test_a_refusal_and_a_server_that_is_gone_are_one_sentence(small_server):
    address, _ = small_server
    with pytest.raises(CourseError, match="refused with 400: no such model"):
        ask_server(address, MESSAGES, model="unknown")
    with pytest.raises(CourseError, match="No server answers at http://127.0.0.1:9"):
        ask_server("http://127.0.0.1:9", MESSAGES)


def test_a_proxy_is_not_asked_for_this_machine(small_server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert ask_server(small_server[0], MESSAGES) == "It is 42."
