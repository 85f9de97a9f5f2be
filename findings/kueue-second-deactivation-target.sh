#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go): a Workload that was deactivated because its maximum execution time is over.
# Behaviour: it gets a second DeactivationTarget while its job stops (Admitted is still True), and nothing takes that away:
# whoever sets spec.active to true has it set back to false at once, however often, also with a higher limit.
# Output seen: told: active=true target=true; deactivated: active=false target=true; evicted: active=false target=false;
# again: active=false target=true; activated: active=false target=true;
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
	limit, key := int32(6), types.NamespacedName{Namespace: "ns", Name: "wl"}
	ago := metav1.NewTime(time.Now().Add(-10 * time.Second))
	said := func(kind, status string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: kind, LastTransitionTime: ago}
	}
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: kueue.WorkloadSpec{
			QueueName: "lq", MaximumExecutionTimeSeconds: &limit,
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{}}},
		},
		Status: kueue.WorkloadStatus{
			Admission:  &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}},
			Conditions: []metav1.Condition{said("QuotaReserved", "True"), said("Admitted", "True")},
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

	look := func(what string) {
		var seen kueue.Workload
		must(cl.Get(ctx, key, &seen))
		active := seen.Spec.Active == nil || *seen.Spec.Active
		target := apimeta.IsStatusConditionTrue(seen.Status.Conditions, kueue.WorkloadDeactivationTarget)
		fmt.Printf("%s: active=%t target=%t; ", what, active, target)
	}
	for _, what := range []string{"told", "deactivated", "evicted", "again"} {
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		must(err)
		look(what)
	}
	var stopped kueue.Workload
	must(cl.Get(ctx, key, &stopped))
	stopped.Status.Admission = nil
	apimeta.SetStatusCondition(&stopped.Status.Conditions, said("QuotaReserved", "False"))
	apimeta.SetStatusCondition(&stopped.Status.Conditions, said("Admitted", "False"))
	must(cl.Status().Update(ctx, &stopped))
	must(cl.Get(ctx, key, &stopped))
	active := true
	stopped.Spec.Active = &active
	must(cl.Update(ctx, &stopped))
	for range 2 {
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		must(err)
	}
	look("activated")
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='again: active=false target=true; activated: active=false target=true; '
echo "$seen"
case "$seen" in *"$wanted") ;; *) echo "it has changed; it ended with $wanted" >&2; exit 1 ;; esac
