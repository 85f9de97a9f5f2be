#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go): a resource transformation whose factor is a fraction, and a PodSet of ten pods.
# Behaviour: what is not cpu is rounded up to a whole number for one pod, before it is multiplied by the count: ten MIG slices
# that are a fifth of a GPU each are charged as 10 GPUs, not 2. For cpu, kept in thousandths, the same factor gives 2.
# Output seen: example.com/gpu: 10; cpu: 2000m
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

func main() {
	slice, fifth := corev1.ResourceName("nvidia.com/mig-1g.5gb"), resource.MustParse("0.2")
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{slice: resource.MustParse("1")}}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: requests}}}}
	job := &kueue.Workload{Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 10, Template: template}}}}
	charged := workload.NewInfo(job, workload.WithResourceTransformations([]config.ResourceTransformation{{
		Input: slice, Outputs: corev1.ResourceList{"example.com/gpu": fifth, corev1.ResourceCPU: fifth},
	}})).TotalRequests[0].Requests
	fmt.Printf("example.com/gpu: %d; cpu: %dm\n", charged.ResourceValue("example.com/gpu"), charged.ResourceValue(corev1.ResourceCPU))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='example.com/gpu: 10; cpu: 2000m'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
