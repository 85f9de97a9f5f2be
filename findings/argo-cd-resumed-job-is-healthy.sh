#!/bin/sh
# github.com/argoproj/gitops-engine v0.7.1-0.20251217140045-5baed5604d2d (Go), pkg/health, by which Argo CD says how an object is:
# a Job that runs, with and without a wait before it.
# Behaviour: a Job that runs is Progressing. One that was suspended before, as Kueue suspends each of its Jobs, keeps the condition
# Suspended with the status False, and for that it is Healthy, which is what Argo CD calls a Job that is done. One would have
# guessed that a condition that is False says nothing: the next sync wave, or a PostSync hook, starts while the Job still runs.
# Output seen: never suspended: Progressing; suspended: Suspended; resumed: Healthy; done: Healthy
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/argoproj/gitops-engine/pkg/health"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func say(name string, active int32, conditions ...batchv1.JobCondition) {
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}}
	job.Status = batchv1.JobStatus{Active: active, Conditions: conditions}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		panic(err)
	}
	seen, err := health.GetResourceHealth(&unstructured.Unstructured{Object: object}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", name, seen.Status)
}

func main() {
	suspended := batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}
	resumed := batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}
	complete := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	say("never suspended", 1)
	say("suspended", 0, suspended)
	say("resumed", 1, resumed)
	say("done", 0, resumed, complete)
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/argoproj/gitops-engine@v0.7.1-0.20251217140045-5baed5604d2d > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='never suspended: Progressing
suspended: Suspended
resumed: Healthy
done: Healthy'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
