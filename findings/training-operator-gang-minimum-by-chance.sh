#!/bin/sh
# github.com/kubeflow/training-operator v1.9.3 (Go), at the modules of Kueue v0.19.2: CalcPGMinResources, what a gang scheduler is
# told that two pods of a job with one master (1 CPU) and three workers (8 CPUs) need at least.
# Behaviour: replicas of one priority are taken in the order of a Go map, so it is 9 or 16 CPUs, another one at the next
# reconcile. One would have guessed one answer, the master's first; who waits for the group sees its minimum change while nothing
# does.
# Output seen: map[16:true 9:true]
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func replicas(count int32, cpus string) *kubeflow.ReplicaSpec {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}
	spec := &kubeflow.ReplicaSpec{Replicas: ptr.To(count)}
	spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	return spec
}

func main() {
	class := func(string) (*schedulingv1.PriorityClass, error) { return &schedulingv1.PriorityClass{}, nil }
	seen := map[string]bool{}
	for range 400 {
		job := map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec{"Master": replicas(1, "1"), "Worker": replicas(3, "8")}
		seen[common.CalcPGMinResources(2, job, class).Cpu().String()] = true
	}
	fmt.Println(seen)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/training-operator@v1.9.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='map[16:true 9:true]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
