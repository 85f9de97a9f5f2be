#!/bin/sh
# helm.sh/helm/v3 v3.22.0 (Go), pkg/kube: ReadyChecker with CheckJobs, by which helm install --wait-for-jobs waits.
# Behaviour: it reads the counts of a Job and not its conditions. A Job that is Complete by its success policy, after one of three,
# is not ready; one that is Failed by its pod failure policy, after one pod, is no error, so both are waited for until the time is
# out. One without completions, as work queues are, is ready while its pods run. One would have guessed that Complete is ready and
# Failed an error.
# Output seen: Complete, 1 of 3: not ready; Failed after 1 pod: not ready; a work queue that runs: ready
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

	"helm.sh/helm/v3/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
)

func say(name string, completions *int32, status batchv1.JobStatus, conditions ...batchv1.JobConditionType) {
	parallelism, backoffLimit := int32(3), int32(6)
	for _, condition := range conditions {
		status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}, Status: status}
	job.Spec = batchv1.JobSpec{Completions: completions, Parallelism: &parallelism, BackoffLimit: &backoffLimit}
	checker := kube.NewReadyChecker(fake.NewClientset(job), func(string, ...any) {}, kube.CheckJobs(true))
	ready, err := checker.IsReady(context.Background(), &resource.Info{Namespace: "ns", Name: "job", Object: job})
	fmt.Printf("%s: ready %t, error %v\n", name, ready, err)
}

func main() {
	three := int32(3)
	say("Complete, 1 of 3", &three, batchv1.JobStatus{Succeeded: 1}, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	say("Failed after 1 pod", &three, batchv1.JobStatus{Failed: 1}, batchv1.JobFailureTarget, batchv1.JobFailed)
	say("a work queue that runs", nil, batchv1.JobStatus{Active: 3})
}
GO
go mod init finding > /dev/null 2>&1
go get helm.sh/helm/v3@v3.22.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Complete, 1 of 3: ready false, error <nil>
Failed after 1 pod: ready false, error <nil>
a work queue that runs: ready true, error <nil>'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
