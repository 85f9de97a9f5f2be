#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), tools/leaderelection: a leader whose lease lasts for 2.9 seconds and is to be renewed within 2.5.
# Behaviour: it is checked that the one time is longer than the other, and it is. The Lease has whole seconds, and what is behind the
# point is cut: other candidates read 2 there and take the lock after two seconds, while the leader tries to renew for half a second
# longer and works on. Below a second it is 0, which API servers refuse. One would have guessed that it is rounded up, or an error,
# as for times that are in the wrong order.
# Output seen: lasts 2.9s, renewed within 2.5s: written 2, longer than the renewal: false; lasts 3s, within 2.5s: written 3, true
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	renewed := 2500 * time.Millisecond
	for _, lasts := range []time.Duration{2900 * time.Millisecond, 3 * time.Second} {
		leases := fake.NewClientset().CoordinationV1()
		ctx, end := context.WithCancel(context.Background())
		lock := &resourcelock.LeaseLock{Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: "a"}}
		lock.LeaseMeta = metav1.ObjectMeta{Namespace: "example", Name: "example"}
		elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: lasts, RenewDeadline: renewed, RetryPeriod: time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { end() }, OnStoppedLeading: func() {},
			},
		}))
		elector.Run(ctx)
		lease := must(leases.Leases("example").Get(context.Background(), "example", metav1.GetOptions{}))
		written := *lease.Spec.LeaseDurationSeconds
		longer := time.Duration(written)*time.Second > renewed
		fmt.Printf("lasts %s, renewed within %s: written %d, longer than the renewal: %t\n", lasts, renewed, written, longer)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . 2> /dev/null)
wanted='lasts 2.9s, renewed within 2.5s: written 2, longer than the renewal: false
lasts 3s, renewed within 2.5s: written 3, longer than the renewal: true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
