#!/bin/sh
# durationpy 0.11 (Python), "Go's Duration strings", which the Kubernetes client requires, and metav1.Duration of apimachinery
# v0.36.3.
# Behaviour: it reads days, weeks, years and spaces, and a sign in the middle counts for nothing: 1h-30m is an hour and a half. Go
# refuses each of these, so a time that Python has checked fails in the controller's configuration. It leaves nanoseconds away.
# One would have guessed that one reads what the other does.
# Output seen: 90m: 1:30:00 read; 1d: 1 day, 0:00:00 error; 1h-30m: 1:30:00 error; 1h 30m: 1:30:00 error; 500ns: 0:00:00 read
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check durationpy==0.11
cat > finding.py <<'PY'
import sys

import durationpy

for text in sys.argv[1:]:
    print(f"{text}: {durationpy.from_str(text)}")
PY
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, text := range os.Args[1:] {
		if json.Unmarshal([]byte(`"`+text+`"`), &metav1.Duration{}) != nil {
			fmt.Println("error")
			continue
		}
		fmt.Println("read")
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- 90m 1d 1h-30m '1h 30m' 500ns
own/bin/python finding.py "$@" > python
go run . "$@" > go
seen=$(paste -d ' ' python go)
wanted='90m: 1:30:00 read
1d: 1 day, 0:00:00 error
1h-30m: 1:30:00 error
1h 30m: 1:30:00 error
500ns: 0:00:00 read'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
