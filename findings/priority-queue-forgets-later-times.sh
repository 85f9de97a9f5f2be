#!/bin/sh
# sigs.k8s.io/controller-runtime v0.25.2 (Go), pkg/controller/priorityqueue, the queue of its controllers, and k8s.io/client-go
# v0.37.0, util/workqueue, which has the same interface: an object that waits in the queue and is to come again later.
# Behaviour: client-go keeps both, so AddAfter of an object that is in the queue brings it once more at its time. The priority queue
# has one entry for an object, the earlier one, and the later time is gone: what was to look again in a while never does. After
# ShutDown client-go hands out what is left; the priority queue drops it, also by ShutDownWithDrain. One would have guessed that two
# queues of one interface do the same.
# Output seen: client-go: now 1, later 1, after ShutDown 1; priority queue: now 1, later 0, after ShutDown 0
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
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func say(name string, queue workqueue.TypedRateLimitingInterface[string]) {
	queue.Add("job")
	queue.AddAfter("job", 300*time.Millisecond)
	now := queue.Len()
	job, _ := queue.Get()
	queue.Done(job)
	time.Sleep(time.Second)
	later := queue.Len()
	queue.Add("job")
	time.Sleep(100 * time.Millisecond)
	queue.ShutDown()
	left := 0
	if _, over := queue.Get(); !over {
		left = 1
	}
	fmt.Printf("%s: now %d, later %d, after ShutDown %d\n", name, now, later, left)
}

func main() {
	say("client-go", workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()))
	say("priority queue", priorityqueue.New[string]("finding"))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/client-go@v0.37.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='client-go: now 1, later 1, after ShutDown 1
priority queue: now 1, later 0, after ShutDown 0'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
