#!/bin/sh
# opentelemetry-exporter-otlp-proto-http 1.45.2 (Python) and go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp
# v1.47.0 (Go): OTEL_EXPORTER_OTLP_TIMEOUT=900, and a collector that answers after two seconds.
# Behaviour: the specification counts milliseconds, and so does Go, which gives up after 0.9 s. Python counts seconds, waits and
# is answered; it would wait for a quarter of an hour. (The delay of its batches, in OTEL_BSP_SCHEDULE_DELAY, is in milliseconds.)
# One would have guessed one unit for one name; with 10000, as set for all pods of a cluster, a collector that hangs holds the
# last export of a program in Python for hours.
# Output seen: 9000: python SUCCESS, go SUCCESS; 900: python SUCCESS, go error
set -eu
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
server=
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check opentelemetry-exporter-otlp-proto-http==1.45.2
cat > server.py <<'PY'
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(2)
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()
        except ConnectionError:
            pass

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Path("port.new").write_text(str(server.server_port))
Path("port.new").rename("port")
server.serve_forever()
PY
cat > finding.py <<'PY'
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider

span = TracerProvider().get_tracer("finding").start_span("queued")
span.end()
exporter = OTLPSpanExporter()
print(f"python: {exporter.export([span]).name}")
exporter.shutdown()
PY
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		panic(err)
	}
	said := "SUCCESS"
	if exporter.ExportSpans(context.Background(), []trace.ReadOnlySpan{tracetest.SpanStub{Name: "queued"}.Snapshot()}) != nil {
		said = "error"
	}
	fmt.Printf("go: %s\n", said)
}
GO
go mod init finding > /dev/null 2>&1
go get go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp@v1.47.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
own/bin/python server.py &
server=$!
while [ ! -e port ]; do sleep 0.1; done
export OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$(cat port)" OTEL_EXPORTER_OTLP_TIMEOUT
go build -o finding .
seen=$(for OTEL_EXPORTER_OTLP_TIMEOUT in 9000 900; do
    echo "$OTEL_EXPORTER_OTLP_TIMEOUT"
    own/bin/python finding.py 2> /dev/null
    ./finding 2> /dev/null
done)
wanted='9000
python: SUCCESS
go: SUCCESS
900
python: SUCCESS
go: error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
