"""The errors of a server that does not start. Lesson 07 sends requests to the real server."""

import sys

import psutil
import pytest
from grpo_core.errors import CourseError

from grpo_utils.export import server


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


def test_no_proxy_is_used_for_this_machine(model, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    stand_in(monkeypatch, ANSWERS)
    with server.served(model) as address:
        assert server._is_ready(address)
