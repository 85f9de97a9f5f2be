#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go): a Workload that was deactivated, and is made active again (spec.active: true).
# Behaviour: one that a person had deactivated is queued again (Requeued becomes True, with the reason Reactivated); one that
# was deactivated for a cause, as by an admission check that rejected it, keeps Requeued False and stays out of the queue.
# One would have guessed that active: true queues each of them; it matters to who makes a job active again after its check
# rejected it, and waits for quota that nobody asks for.
# Output seen: Deactivated: Requeued=True (Reactivated); DeactivatedDueToAdmissionCheck: Requeued=False (DeactivatedDueToAdmissionCheck)
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

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(kueue.AddToScheme(scheme))
	for _, reason := range []string{kueue.WorkloadDeactivated, "DeactivatedDueToAdmissionCheck"} {
		look(ctx, scheme, reason)
	}
}

func look(ctx context.Context, scheme *runtime.Scheme, reason string) {
	key := types.NamespacedName{Namespace: "ns", Name: "wl"}
	said := func(kind, status, reason string) metav1.Condition {
		now := metav1.NewTime(time.Now())
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: now}
	}
	active := true
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: kueue.WorkloadSpec{
			QueueName: "lq", Active: &active,
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{}}},
		},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{
				said("QuotaReserved", "False", "Pending"), said("Evicted", "True", reason), said("Requeued", "False", reason),
			},
		},
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kueue.Workload{})
	builder = builder.WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue)
	builder = builder.WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue)
	builder = builder.WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue)
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
	lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lq"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
	cl := builder.WithObjects(workload, cq, lq).Build()
	cache := schdcache.New(cl)
	queues := qcache.NewManager(cl, cache, qcache.NewRequeuer())
	must(cache.AddClusterQueue(ctx, cq))
	must(queues.AddClusterQueue(ctx, cq))
	must(queues.AddLocalQueue(ctx, lq))
	reconciler := core.NewWorkloadReconciler(cl, queues, cache, events.NewFakeRecorder(100))

	for range 3 {
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		must(err)
	}
	var seen kueue.Workload
	must(cl.Get(ctx, key, &seen))
	again := apimeta.FindStatusCondition(seen.Status.Conditions, kueue.WorkloadRequeued)
	fmt.Printf("%s: Requeued=%s (%s)\n", reason, again.Status, again.Reason)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Deactivated: Requeued=True (Reactivated)
DeactivatedDueToAdmissionCheck: Requeued=False (DeactivatedDueToAdmissionCheck)'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
