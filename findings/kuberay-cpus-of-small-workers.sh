#!/bin/sh
# github.com/ray-project/kuberay/ray-operator v1.6.2 (Go), controllers/ray/common: BuildPod, which writes the ray start command of a
# worker: what Ray is told that the worker has.
# Behaviour: CPUs are rounded up to whole ones, though Ray counts in fractions: a worker of 100m has one CPU, and ten of them run
# ten tasks of a CPU each on one. Without a limit the CPUs of the request are taken, the memory is not: Ray then takes what it
# finds. One would have guessed 0.1, and one rule for both; a quota counts a tenth of what Ray gives away.
# Output seen: limits 100m, 1Gi: --memory=1073741824 --num-cpus=1; limits 1500m: --num-cpus=2; requests 2, 1Gi: --num-cpus=2
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
	"regexp"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/common"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func say(name string, resources corev1.ResourceRequirements) {
	template := corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Name: "ray-worker", Resources: resources}}
	parameters := map[string]string{}
	ctx, kind := context.Background(), rayv1.WorkerNode
	pod := common.BuildPod(ctx, template, kind, parameters, "6379", false, "RayCluster", "head", nil, "2.52.0")
	told := regexp.MustCompile(`--(?:num-cpus|memory)=\S+`).FindAllString(pod.Spec.Containers[0].Args[0], -1)
	fmt.Printf("%s: %s\n", name, strings.Join(told, " "))
}

func list(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

func main() {
	say("limits 100m, 1Gi", corev1.ResourceRequirements{Limits: list("100m", "1Gi")})
	say("limits 1500m", corev1.ResourceRequirements{Limits: list("1500m", "")})
	say("requests 2, 1Gi", corev1.ResourceRequirements{Requests: list("2", "1Gi")})
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/ray-project/kuberay/ray-operator@v1.6.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . 2> /dev/null)
wanted='limits 100m, 1Gi: --memory=1073741824 --num-cpus=1
limits 1500m: --num-cpus=2
requests 2, 1Gi: --num-cpus=2'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
