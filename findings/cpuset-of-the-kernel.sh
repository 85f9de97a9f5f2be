#!/bin/sh
# k8s.io/utils v0.0.0-20260626114624-be93311217bd (Go), cpuset.Parse, "from a Linux CPU list formatted string": such lists as the
# kernel has them.
# Behaviour: 0-3,8 is read. The line break, with which each file of /sys and of a cgroup ends, is an error, as is a group with a
# stride, 0-31:2/4. One would have guessed that it reads what it is named after; a device plugin or an exporter that reads
# cpuset.cpus.effective works in a test with a text and fails on each node.
# Output seen: "0-3,8": 5 CPUs; "0-3,8\n": error; "0-7:2/4": error; "0, 1": error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/utils/cpuset"
)

func main() {
	for _, text := range []string{"0-3,8", "0-3,8\n", "0-7:2/4", "0, 1"} {
		said := "error"
		if set, err := cpuset.Parse(text); err == nil {
			said = fmt.Sprint(set.Size(), " CPUs")
		}
		fmt.Printf("%q: %s\n", text, said)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/utils@v0.0.0-20260626114624-be93311217bd > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='"0-3,8": 5 CPUs
"0-3,8\n": error
"0-7:2/4": error
"0, 1": error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
