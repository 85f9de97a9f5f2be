#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go): a Workload with quota whose AdmissionCheck asks for Retry, with and without requeueAfterSeconds.
# Behaviour: without a time it is evicted at once. With one, Kueue notes when it may be queued again and waits for that moment
# before it evicts: the Workload keeps its quota for the whole time. Nothing else of it is looked at meanwhile.
# One would have guessed that the quota goes to others for that time; it matters to
# whoever writes such a check, as a back-off of 15 minutes keeps others out for 15 minutes.
# Output seen: Retry: evicted; Retry in 60 s: keeps its quota, looked at again in about a minute
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
	look(ctx, scheme, "Retry", nil)
	minute := int32(60)
	look(ctx, scheme, "Retry in 60 s", &minute)
}

func look(ctx context.Context, scheme *runtime.Scheme, what string, after *int32) {
	key := types.NamespacedName{Namespace: "ns", Name: "wl"}
	now := metav1.NewTime(time.Now())
	active := true
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: kueue.WorkloadSpec{
			QueueName: "lq", Active: &active,
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{}}},
		},
		Status: kueue.WorkloadStatus{
			Admission: &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
				Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "flavor"},
			}}},
			Conditions: []metav1.Condition{
				{Type: "QuotaReserved", Status: metav1.ConditionTrue, Reason: "QuotaReserved", LastTransitionTime: now},
			},
			AdmissionChecks: []kueue.AdmissionCheckState{
				{Name: "check", State: kueue.CheckStateRetry, LastTransitionTime: now, RequeueAfterSeconds: after},
			},
		},
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kueue.Workload{})
	builder = builder.WithIndex(&kueue.LocalQueue{}, indexer.QueueClusterQueueKey, indexer.IndexQueueClusterQueue)
	builder = builder.WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue)
	builder = builder.WithIndex(&kueue.Workload{}, indexer.WorkloadClusterQueueKey, indexer.IndexWorkloadClusterQueue)
	cq := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "cq"},
		Spec: kueue.ClusterQueueSpec{
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{{Name: "flavor"}},
			}},
			AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{
				AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: "check"}},
			},
		},
	}
	lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lq"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
	cl := builder.WithObjects(workload, cq, lq).Build()
	cache := schdcache.New(cl)
	queues := qcache.NewManager(cl, cache, qcache.NewRequeuer())
	must(cache.AddClusterQueue(ctx, cq))
	must(queues.AddClusterQueue(ctx, cq))
	must(queues.AddLocalQueue(ctx, lq))
	reconciler := core.NewWorkloadReconciler(cl, queues, cache, events.NewFakeRecorder(100))

	var next reconcile.Result
	var seen kueue.Workload
	for range 4 {
		var err error
		next, err = reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		must(err)
		must(cl.Get(ctx, key, &seen))
		if apimeta.IsStatusConditionTrue(seen.Status.Conditions, kueue.WorkloadEvicted) {
			fmt.Printf("%s: evicted\n", what)
			return
		}
	}
	if apimeta.IsStatusConditionTrue(seen.Status.Conditions, kueue.WorkloadQuotaReserved) && next.RequeueAfter > 50*time.Second {
		fmt.Printf("%s: keeps its quota, looked at again in about a minute\n", what)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Retry: evicted
Retry in 60 s: keeps its quota, looked at again in about a minute'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
