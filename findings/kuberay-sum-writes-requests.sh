#!/bin/sh
# github.com/ray-project/kuberay/ray-operator v1.6.2 (Go), controllers/ray/utils: CalculatePodResource, a sum over containers.
# Behaviour: it writes into the pod spec that it is given: limits that have no request become requests of that spec, also of one
# in a shared cache. Where a container has no requests at all, nothing is written.
# Output seen: requests before: 1, after: 2 (cpu 1, memory 4Gi); none before: 0, after: 0
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func summed(requests corev1.ResourceList) corev1.ResourceList {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
	container := corev1.Container{Name: "a", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	spec := corev1.PodSpec{Containers: []corev1.Container{container}}
	utils.CalculatePodResource(spec)
	return spec.Containers[0].Resources.Requests
}

func main() {
	after := summed(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
	fmt.Printf("requests before: 1, after: %d (cpu %s, memory %s); none before: 0, after: %d\n",
		len(after), after.Cpu(), after.Memory(), len(summed(nil)))
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/ray-project/kuberay/ray-operator@v1.6.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='requests before: 1, after: 2 (cpu 1, memory 4Gi); none before: 0, after: 0'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
