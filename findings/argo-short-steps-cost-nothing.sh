#!/bin/sh
# github.com/argoproj/argo-workflows/v3 v3.7.1 (Go), util/resource, by which a workflow's status says what it used (resourcesDuration): a
# thousand steps that request 100m of CPU, for 9, 19 and 60 seconds each.
# Behaviour: each container's part is cut to whole seconds before it is added. So a thousand steps of 9 seconds used no CPU at all,
# where 15 minutes were meant, and of 19 seconds half of what they were; of 60 it is right. One would have guessed that sums are
# rounded at the end: what is charged by it hangs on how finely the work is cut.
# Output seen: 9 seconds: 0s of 15m0s; 19 seconds: 16m40s of 31m40s; 60 seconds: 1h40m0s of 1h40m0s
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/argoproj/argo-workflows/v3/pkg/apis/workflow/v1alpha1"
	argo "github.com/argoproj/argo-workflows/v3/util/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, seconds := range []int64{9, 19, 60} {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		ended := &corev1.ContainerStateTerminated{StartedAt: metav1.Unix(0, 0), FinishedAt: metav1.Unix(seconds, 0)}
		step := &corev1.Pod{}
		step.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}
		step.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: ended}}}
		used := v1alpha1.ResourcesDuration{}
		for range 1000 {
			used = used.Add(argo.DurationForPod(step))
		}
		fmt.Printf("%d seconds: %s of %s\n", seconds, used[corev1.ResourceCPU], time.Duration(seconds)*100*time.Second)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/argoproj/argo-workflows/v3@v3.7.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='9 seconds: 0s of 15m0s
19 seconds: 16m40s of 31m40s
60 seconds: 1h40m0s of 1h40m0s'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
