#!/bin/sh
# opentelemetry-exporter-prometheus 0.66b2 (Python) and go.opentelemetry.io/otel/exporters/prometheus v0.69.0 (Go): one gauge of
# unit "1" with the attributes gpu.model and gpu_model.
# Behaviour: Go calls the gauge queue_share_ratio, Python queue_share. Two attributes that become one label are joined in Go
# (a;b), in Python the last one is left alone. One would have guessed one answer, as the specification has one for both; an alert
# on the metric of a manager in Go never fires for one in Python.
# Output seen: python: queue_share, b; go: queue_share_ratio, a;b
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check opentelemetry-exporter-prometheus==0.66b2 opentelemetry-sdk==1.45.2
cat > finding.py <<'PY'
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY

meter = MeterProvider(metric_readers=[PrometheusMetricReader()]).get_meter("finding")
meter.create_gauge("queue.share", "1").set(1, {"gpu.model": "a", "gpu_model": "b"})
family = next(family for family in REGISTRY.collect() if family.name.startswith("queue"))
print(f"python: {family.name}, {family.samples[0].labels['gpu_model']}")
PY
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/prometheus"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	registry := client.NewRegistry()
	reader := must(prometheus.New(prometheus.WithRegisterer(registry)))
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("finding")
	must(meter.Int64Gauge("queue.share", api.WithUnit("1"))).Record(context.Background(), 1,
		api.WithAttributes(attribute.String("gpu.model", "a"), attribute.String("gpu_model", "b")))
	for _, family := range must(registry.Gather()) {
		if strings.HasPrefix(family.GetName(), "queue") {
			fmt.Printf("go: %s, %s\n", family.GetName(), family.GetMetric()[0].GetLabel()[0].GetValue())
		}
	}
}
GO
go mod init finding > /dev/null 2>&1
go get go.opentelemetry.io/otel/exporters/prometheus@v0.69.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .)
wanted='python: queue_share, b
go: queue_share_ratio, a;b'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
