#!/bin/sh
# kubernetes 35.0.0 (Python) and k8s.io/api v0.36.3 (Go): the times of a Lease (MicroTime), from the one to the other.
# Behaviour: Go wants exactly six digits after the second. The Python client writes a datetime with isoformat(), which leaves
# them out where they are all 0, so a leader's renewal is refused about once in a million times; three digits are refused too.
# Output seen: 2026-01-02T03:04:05.000001+00:00 read; 2026-01-02T03:04:05+00:00 error; 2026-01-02T03:04:05.123Z error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==35.0.0
cat > finding.py <<'PY'
from datetime import datetime, timezone

from kubernetes import client

for microsecond in 1, 0:
    time = datetime(2026, 1, 2, 3, 4, 5, microsecond, tzinfo=timezone.utc)
    lease = client.V1Lease(spec=client.V1LeaseSpec(renew_time=time))
    print(client.ApiClient().sanitize_for_serialization(lease)["spec"]["renewTime"])
PY
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

func main() {
	seen := []string{}
	for _, time := range os.Args[1:] {
		said := "read"
		if json.Unmarshal([]byte(`{"spec":{"renewTime":"`+time+`"}}`), &coordinationv1.Lease{}) != nil {
			said = "error"
		}
		seen = append(seen, time+" "+said)
	}
	fmt.Println(strings.Join(seen, "; "))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/api@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . $(own/bin/python finding.py) 2026-01-02T03:04:05.123Z)
wanted='2026-01-02T03:04:05.000001+00:00 read; 2026-01-02T03:04:05+00:00 error; 2026-01-02T03:04:05.123Z error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
