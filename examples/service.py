"""Pictures by HTTP, each answered by a deadline: with the standard library alone.

    python examples/service.py cifar10-anytime --port 8000
    curl --data-binary @cat.jpg http://127.0.0.1:8000

It listens on this machine only and answers whoever asks: put a server that authenticates in front of it for others.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msdnet

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model", help="a model of the package, or the folder of a bundle")
parser.add_argument("--port", type=int, default=8000)
options = parser.parse_args()

model = msdnet.load(options.model, threads=1)  # others may want the other cores
model.profile([1], seconds=0.5)  # what the first deadline would have to wait for


class Classify(BaseHTTPRequestHandler):
    """One picture in the body of a request, one answer."""

    timeout = 5  # seconds without a word, after which somebody is gone

    def do_POST(self) -> None:
        try:
            picture = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            step = model.answer(picture, deadline_ms=50)
            status, told = 200, {"label": step.name, "confidence": step.confidence, "exit": step.exit}
        except ValueError as error:
            status, told = 400, {"error": str(error)}
        line = json.dumps(told).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(line)))
        self.end_headers()
        self.wfile.write(line)


with ThreadingHTTPServer(("127.0.0.1", options.port), Classify) as server:
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
