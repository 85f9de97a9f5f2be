#!/bin/sh
# github.com/ray-project/kuberay/ray-operator v1.6.2 (Go), controllers/ray/utils: what a RayCluster's status says of its size.
# Behaviour: the desired workers are bounded by maxReplicas and the desired resources are not: 4 workers of one CPU are said to
# want 10. Of a worker group that is suspended the minimum is 0 workers, and their CPUs are counted all the same.
# Output seen: desired: 4 workers, 10 CPUs; suspended: at least 0 workers, 2 CPUs
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	container := corev1.Container{Name: "a", Resources: corev1.ResourceRequirements{Requests: requests}}
	least, count, most := int32(2), int32(10), int32(4)
	group := rayv1.WorkerGroupSpec{MinReplicas: &least, Replicas: &count, MaxReplicas: &most, NumOfHosts: 1}
	group.Template.Spec.Containers = []corev1.Container{container}
	cluster := &rayv1.RayCluster{Spec: rayv1.RayClusterSpec{WorkerGroupSpecs: []rayv1.WorkerGroupSpec{group}}}
	wanted := utils.CalculateDesiredResources(cluster)
	fmt.Printf("desired: %d workers, %s CPUs; ", utils.CalculateDesiredReplicas(cluster), wanted.Cpu())
	suspended := true
	cluster.Spec.WorkerGroupSpecs[0].Suspend = &suspended
	wanted = utils.CalculateMinResources(cluster)
	fmt.Printf("suspended: at least %d workers, %s CPUs\n", utils.CalculateMinReplicas(cluster), wanted.Cpu())
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/ray-project/kuberay/ray-operator@v1.6.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='desired: 4 workers, 10 CPUs; suspended: at least 0 workers, 2 CPUs'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
