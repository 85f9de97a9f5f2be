#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go), pkg/podset: RestorePodSpec, which says whether a stopped job's pod template has to be written.
# Behaviour: of a toleration that has tolerationSeconds it compares the address of that number, so it says "changed" of a template
# that is what it should be; without the seconds it says so only of what differs. One would have guessed values, as everywhere in
# Kubernetes; who counts a job's writes, or waits until there are none, sees one more.
# Output seen: without seconds: changed false; with 300 seconds: changed true
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
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/podset"
)

func changed(toleration corev1.Toleration) bool {
	stored := kueue.PodSet{Name: "main", Count: 1}
	stored.Template.Spec.Tolerations = []corev1.Toleration{toleration}
	job := stored.Template.DeepCopy()
	return podset.RestorePodSpec(&job.ObjectMeta, &job.Spec, podset.FromPodSet(&stored))
}

func main() {
	seconds := int64(300)
	toleration := corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}
	without := changed(toleration)
	toleration.TolerationSeconds = &seconds
	fmt.Printf("without seconds: changed %t; with 300 seconds: changed %t\n", without, changed(toleration))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='without seconds: changed false; with 300 seconds: changed true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
