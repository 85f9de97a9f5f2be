#!/bin/sh
# prometheus-client 0.26.0 (Python) and github.com/prometheus/client_golang v1.23.2 (Go): the bounds of one histogram's buckets.
# Behaviour: Python writes le="1.0" and le="100000.0", Go le="1" and le="100000", so of a manager in Python and one in Go, which
# have one metric, "sum by (le)" keeps two of each bucket, and le="1" finds those of Go alone. From 10^6 on both write 1e+06. One
# would have guessed one form. (Prometheus 3 writes them alike where it scrapes them; what reads the page itself does not.)
# Output seen: python: 1.0 100000.0 1e+06; go: 1 100000 1e+06
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check prometheus-client==0.26.0
cat > finding.py <<'PY'
import re

from prometheus_client import CollectorRegistry, Histogram, generate_latest

registry = CollectorRegistry()
Histogram("wait_seconds", "a", buckets=(1, 1e5, 1e6), registry=registry)
print("python:", *re.findall(r'le="([0-9][^"]*)"', generate_latest(registry).decode()))
PY
cat > main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

func main() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewHistogram(prometheus.HistogramOpts{Name: "wait_seconds", Buckets: []float64{1, 1e5, 1e6}}))
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	page := bytes.Buffer{}
	if _, err := expfmt.MetricFamilyToText(&page, families[0]); err != nil {
		panic(err)
	}
	fmt.Print("go:")
	for _, bound := range regexp.MustCompile(`le="([0-9][^"]*)"`).FindAllStringSubmatch(page.String(), -1) {
		fmt.Print(" ", bound[1])
	}
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/prometheus/client_golang@v1.23.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .)
wanted='python: 1.0 100000.0 1e+06
go: 1 100000 1e+06'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
