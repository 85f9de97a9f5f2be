#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go), pkg/workload: AdjustResources, the requests that a queue counts of a container with a limit of
# four CPUs and no request, in a namespace whose LimitRange has a default request.
# Behaviour: the LimitRange's 100m is taken. An API server makes the request of the limit first, so the pod asks for 4:
# quota is counted 40 times too low where a LimitRange is. One would have guessed the same order in both.
# Output seen: no LimitRange: 4; default request 100m: 100m
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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/workload"
)

func cpus(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
}

func counted(ranges ...corev1.LimitRangeItem) string {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
	limits.Spec.Limits = ranges
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(limits).
		WithIndex(limits, indexer.LimitRangeHasContainerOrPodType, indexer.IndexLimitRangeHasContainerOrPodType).Build()
	podSet := kueue.PodSet{Name: "main", Count: 1}
	podSet.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: cpus("4")}}}
	job := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}
	job.Spec.PodSets = []kueue.PodSet{podSet}
	workload.AdjustResources(context.Background(), api, job)
	return job.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests.Cpu().String()
}

func main() {
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: cpus("100m")}
	fmt.Printf("no LimitRange: %s; default request 100m: %s\n", counted(), counted(item))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='no LimitRange: 4; default request 100m: 100m'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
