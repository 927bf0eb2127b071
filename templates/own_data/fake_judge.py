"""A judge on this machine that looks for the expert's last word, for tests and to try judge_reward offline.

python fake_judge.py        prints the variables to set, and serves until Ctrl-C
"""

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def completion(content: object) -> str:
    """A chat completion with this content."""
    return json.dumps(
        {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": content}}]}
    )


def honest(body: dict, nth: int) -> tuple[int, str]:
    """10 points for an answer with the expert's last word, else 0."""
    data = json.loads(body["messages"][-1]["content"])
    word = data["expert_answer"].split()[-1].strip(".")
    return 200, completion(json.dumps({"score": 10 * (word in data["answer"])}))


class Server(ThreadingHTTPServer):
    """A server for many calls at once; a call that hangs does not keep the process alive."""

    request_queue_size, daemon_threads, block_on_close = 64, True, False

    def handle_error(self, request: object, address: object) -> None:
        """Ignore a client that disconnected."""


class FakeJudge:
    """``with FakeJudge(reply) as judge``: a server at ``judge.url``; ``reply(body, nth)`` returns status and text.

    A reply may also have a status and several texts, sent a tenth of a second apart.
    """

    def __init__(self, reply: Callable = honest):
        self.seen = []  # (headers, body) of each request
        handler = type("Handler", (Handler,), {"judge": self, "reply": staticmethod(reply)})
        self.server = Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> "FakeJudge":
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Record a request, and send the given reply."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.judge.seen.append((self.headers, body))
        status, texts = self.reply(body, len(self.judge.seen))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        for text in [texts] if isinstance(texts, str) else texts:
            self.wfile.write(text.encode())
            self.wfile.flush()
            time.sleep(0 if isinstance(texts, str) else 0.1)

    def log_message(self, *words: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    with FakeJudge() as judge:
        print(f"export JUDGE_BASE_URL={judge.url} JUDGE_MODEL=fake", flush=True)
        try:
            time.sleep(1e6)
        except KeyboardInterrupt:
            print("Stopped.")
