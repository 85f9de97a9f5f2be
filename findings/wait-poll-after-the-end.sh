#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), wait.PollUntilContextCancel and PollUntilContextTimeout, immediate: a context that is over.
# Behaviour: the condition is called once all the same, with the context that is over, and its "done" is a success: the error is
# nil. Not immediate, it is not called and the context's error comes back. One would have guessed that nothing begins once the
# context is over; of many polls one after another each does its first step after a shutdown.
# Output seen: immediate, done: 1 call, <nil>; immediate, not done: 1 call, context canceled; not immediate: 0 calls, context
# canceled
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, now := range []bool{true, false} {
		for _, done := range []bool{true, false} {
			calls := 0
			err := wait.PollUntilContextCancel(ctx, time.Hour, now, func(context.Context) (bool, error) {
				calls++
				return done, nil
			})
			fmt.Printf("immediate %t, done %t: %d, %v\n", now, done, calls, err)
		}
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='immediate true, done true: 1, <nil>
immediate true, done false: 1, context canceled
immediate false, done true: 0, context canceled
immediate false, done false: 0, context canceled'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
