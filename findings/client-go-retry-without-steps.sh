#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), retry.OnError: a wait.Backoff of which only the duration is set.
# Behaviour: with Steps 0, by the comment of wait.Backoff "the duration is not changed", the function is not called at all and
# the answer is nil, as after a success. With Steps 1 it is called once and its error comes back.
# Output seen: steps 0: 0 calls, <nil>; steps 1: 1 calls, busy
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

func tried(steps int) string {
	calls := 0
	always := func(error) bool { return true }
	err := retry.OnError(wait.Backoff{Duration: time.Millisecond, Steps: steps}, always, func() error {
		calls++
		return errors.New("busy")
	})
	return fmt.Sprintf("steps %d: %d calls, %v", steps, calls, err)
}

func main() {
	fmt.Printf("%s; %s\n", tried(0), tried(1))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='steps 0: 0 calls, <nil>; steps 1: 1 calls, busy'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
