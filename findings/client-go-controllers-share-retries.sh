#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), util/workqueue: DefaultTypedControllerRateLimiter, by which controllers try again.
# Behaviour: beside the wait of each object there is one bucket for all, of ten a second after the first hundred. An object's
# first failure is tried again after 5 ms, and after a minute and a half if 999 others fail with it; Forget gives nothing back, so
# the next object waits as well. One would have guessed waits by object; it matters after an outage, as of a worker cluster.
# Output seen: alone: 5ms; the last of 1000: 1m30s; the next one, all forgotten: 1m30s
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func main() {
	alone := workqueue.DefaultTypedControllerRateLimiter[int]().When(0)
	limiter, longest := workqueue.DefaultTypedControllerRateLimiter[int](), time.Duration(0)
	for object := range 1000 {
		longest = max(longest, limiter.When(object))
		limiter.Forget(object)
	}
	next := limiter.When(1000)
	fmt.Printf("alone: %s; the last of 1000: %s; the next one, all forgotten: %s\n",
		alone, longest.Round(10*time.Second), next.Round(10*time.Second))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='alone: 5ms; the last of 1000: 1m30s; the next one, all forgotten: 1m30s'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
