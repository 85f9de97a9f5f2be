#!/bin/sh
# k8s.io/kubectl v0.36.3 (Go), pkg/util/qos, which says of which quality of service a pod is: containers that ask for one resource, in
# the same amount as request and limit.
# Behaviour: CPU and memory alone count. A pod that asks for eight GPUs, or for huge pages, and leaves CPU and memory out, is
# BestEffort as one that asks for nothing: the first to be ended when its node is short of memory. With a request of one thousandth
# of a CPU it is Burstable. One would have guessed Guaranteed for what is asked for in full, or Burstable for what asks at all.
# Output seen: nvidia.com/gpu: BestEffort; hugepages-2Mi: BestEffort; ephemeral-storage: BestEffort; cpu: Burstable; nvidia.com/gpu
# and a CPU of 1m: Burstable
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
	"k8s.io/kubectl/pkg/util/qos"
)

func say(name string, asked corev1.ResourceList) {
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: asked, Limits: asked}}}
	fmt.Printf("%s: %s\n", name, qos.GetPodQOS(pod))
}

func main() {
	eight := resource.MustParse("8")
	for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage", "cpu"} {
		say(string(name), corev1.ResourceList{name: eight})
	}
	say("both", corev1.ResourceList{"nvidia.com/gpu": eight, "cpu": resource.MustParse("1m")})
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/kubectl@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='nvidia.com/gpu: BestEffort
hugepages-2Mi: BestEffort
ephemeral-storage: BestEffort
cpu: Burstable
both: Burstable'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
