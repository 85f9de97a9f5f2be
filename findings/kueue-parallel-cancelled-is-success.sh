#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go), pkg/util/parallelize: Until with a context that is cancelled.
# Behaviour: what was not begun is left out, and the answer is nil, as if all had been done. (ParallelizeUntil of client-go, below
# it, has no error at all.) One would have guessed the context's error; who deletes or writes many objects with it takes a
# shutdown for success.
# Output seen: done: 0 of 10, error: <nil>
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
	"sync/atomic"

	"sigs.k8s.io/kueue/pkg/util/parallelize"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := atomic.Int32{}
	err := parallelize.Until(ctx, 10, func(int) error {
		done.Add(1)
		return nil
	})
	fmt.Printf("done: %d of 10, error: %v\n", done.Load(), err)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='done: 0 of 10, error: <nil>'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
