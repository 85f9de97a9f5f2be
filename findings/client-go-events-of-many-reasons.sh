#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), tools/record: what a controller says about one object in a short time.
# Behaviour: the recorder drops what comes after the 25th event of one component about one object (one more each 5 minutes),
# also where each has a reason and a message of its own, so the last, which mostly matters, are lost. Nothing is logged.
# Output seen: 25 of 40 events, the last is Reason24
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

type sink struct {
	count atomic.Int32
	last  atomic.Value
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.count.Add(1)
	s.last.Store(event.Reason)
	return event, nil
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error)          { return event, nil }
func (s *sink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) { return event, nil }

func main() {
	written := &sink{}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(written)
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "dispatcher"})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1"}}
	for number := range 40 {
		recorder.Event(pod, corev1.EventTypeNormal, fmt.Sprint("Reason", number), fmt.Sprint("message ", number))
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	fmt.Printf("%d of 40 events, the last is %s\n", written.count.Load(), written.last.Load())
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='25 of 40 events, the last is Reason24'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
