"""Drive Chromium through its DevTools protocol, with the network off."""

import base64
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Chromium is no Python package, so an install of the course may lack it.
needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="the page is tried in Chromium")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
  --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-port=0 --remote-allow-origins=*"""


class Page:
    """One page of a browser."""

    def __init__(self, socket):
        self.socket, self.numbers, self.events = socket, itertools.count(1), []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def call(self, method: str, **parameters) -> dict:
        """Send a command and wait for its result; events that come in between are kept."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := json.loads(self.socket.recv())).get("id") != number:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, file: Path) -> float:
        """Open a file; the seconds until its script has run."""
        began = time.perf_counter()
        self.call("Page.navigate", url=file.as_uri())
        while self.run("document.readyState !== 'complete' || location.protocol !== 'file:'"):
            time.sleep(0.02)
        return time.perf_counter() - began

    def run(self, expression: str):
        """The value of an expression in the page, or what its promise gives."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, as a person does."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def size(self, width: int, height: int) -> None:
        """Set the size of the window, and wait until the page is drawn in it.

        A page has its new width before it is told: events and observers of a size run only when a frame is drawn.
        """
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        fits = f"innerWidth === {width} && innerHeight === {height}"
        look = f"const look = () => requestAnimationFrame({fits} ? done : look)"  # `done` begins the frame after
        self.run(f"new Promise((done) => {{ {look}; requestAnimationFrame(look); }})")

    def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, file: Path) -> None:
        """Save what is seen."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def seconds(self) -> float:
        """The seconds of work that the page has done."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        asked = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser with one page; it ends with the block."""
    websocket = pytest.importorskip("websocket", reason="Chromium is driven through websocket-client")
    process = subprocess.Popen(["chromium", *FLAGS.split(), f"--user-data-dir={folder}"], stderr=subprocess.DEVNULL)
    try:
        port, browser = wait_for(folder / "DevToolsActivePort")
        socket = websocket.create_connection(f"ws://127.0.0.1:{port}{browser}", timeout=60)
        page = websocket.create_connection(f"ws://127.0.0.1:{port}/devtools/page/{new_page(socket)}", timeout=60)
        yield Page(page)
        page.close()
        socket.close()
    finally:
        process.terminate()
        process.wait(30)


def wait_for(file: Path) -> list[str]:
    """The port and the address that the browser writes when it is ready."""
    for _ in range(600):
        if file.exists() and len(lines := file.read_text().split()) == 2:
            return lines
        time.sleep(0.1)
    raise TimeoutError("Chromium did not start within a minute.")


def new_page(socket) -> str:
    """The id of a new page."""
    command = {"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}}
    socket.send(json.dumps(command))
    while (message := json.loads(socket.recv())).get("id") != 1:
        pass
    return message["result"]["targetId"]
