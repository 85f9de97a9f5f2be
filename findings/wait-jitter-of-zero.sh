#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), package wait: the jitter 0.
# Behaviour: the function Jitter takes a factor of 0 for 1.0, so a second becomes up to two; the field Jitter of a Backoff
# takes 0 for none.
# Output seen: function: up to 2x; field: 1x
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func most(next func() time.Duration) string {
	longest := time.Duration(0)
	for range 1000 {
		longest = max(longest, next())
	}
	if longest > 3*time.Second/2 {
		return "up to 2x"
	}
	return fmt.Sprintf("%gx", longest.Seconds())
}

func main() {
	field := wait.Backoff{Duration: time.Second, Factor: 1, Jitter: 0, Steps: 1000}
	fmt.Printf("function: %s; field: %s\n",
		most(func() time.Duration { return wait.Jitter(time.Second, 0) }), most(field.Step))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='function: up to 2x; field: 1x'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
