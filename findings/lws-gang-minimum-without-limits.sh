#!/bin/sh
# sigs.k8s.io/lws v0.9.0 (Go), CalculatePGMinResources: what a gang scheduler is told that a LeaderWorkerSet needs at least.
# Behaviour: it reads the template, where no API server has made requests of limits yet, and counts requests alone. GPUs are
# mostly asked for as limits (a Pod gets the request by default): of a group of four pods with eight each it counts none.
# Output seen: as limits: 0; as requests too: 32
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
	leaderworkerset "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/utils"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func counted(requests, limits corev1.ResourceList) string {
	size, set := int32(4), &leaderworkerset.LeaderWorkerSet{}
	set.Spec.LeaderWorkerTemplate.Size = &size
	container := corev1.Container{Name: "a", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{container}
	total := utils.CalculatePGMinResources(set)[gpu]
	return total.String()
}

func main() {
	eight := corev1.ResourceList{gpu: resource.MustParse("8")}
	fmt.Printf("as limits: %s; as requests too: %s\n", counted(nil, eight), counted(eight, eight))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/lws@v0.9.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='as limits: 0; as requests too: 32'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
