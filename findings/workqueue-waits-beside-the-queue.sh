#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), util/workqueue, by which controllers work: an object that waits for its next try, and an event of
# it meanwhile.
# Behaviour: Add twice is one entry, and AddAfter twice is one, with the shorter wait. AddAfter and Add are two: the object is
# done at once for the event, and once more when the wait is over, whatever came of the first; Forget does not take the wait back.
# One would have guessed that a queue without duplicates has none; who counts tries, or calls a slow cluster at each, does so
# twice.
# Output seen: Add, Add: 1; AddAfter, AddAfter: 1; AddAfter, Add: 2; AddRateLimited, Add, Forget: 2
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

type queue = workqueue.TypedRateLimitingInterface[string]

func done(name string, fill func(queue)) {
	limiter := workqueue.NewTypedItemFastSlowRateLimiter[string](500*time.Millisecond, time.Second, 5)
	entries := workqueue.NewTypedRateLimitingQueue[string](limiter)
	fill(entries)
	time.AfterFunc(3*time.Second, entries.ShutDown)
	count := 0
	for {
		entry, over := entries.Get()
		if over {
			break
		}
		count++
		entries.Forget(entry)
		entries.Done(entry)
	}
	fmt.Printf("%s: %d\n", name, count)
}

func main() {
	done("Add, Add", func(entries queue) { entries.Add("a"); entries.Add("a") })
	done("AddAfter, AddAfter", func(entries queue) {
		entries.AddAfter("a", time.Second)
		entries.AddAfter("a", 500*time.Millisecond)
	})
	done("AddAfter, Add", func(entries queue) { entries.AddAfter("a", 500*time.Millisecond); entries.Add("a") })
	done("AddRateLimited, Add, Forget", func(entries queue) {
		entries.AddRateLimited("a")
		entries.Add("a")
		entries.Forget("a")
	})
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Add, Add: 1
AddAfter, AddAfter: 1
AddAfter, Add: 2
AddRateLimited, Add, Forget: 2'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
