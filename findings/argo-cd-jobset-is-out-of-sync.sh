#!/bin/sh
# github.com/argoproj/gitops-engine v0.7.1-0.20251217140045-5baed5604d2d (Go), pkg/diff, by which Argo CD says whether an object is
# what its manifest says: a Job and a custom resource with the same pod template, here a JobSet.
# Behaviour: types in Go write a quantity in one form, 1000m as 1 and 0.5 as 500m, so do API servers with a Job and webhooks in Go
# with a custom resource, such as JobSet's, when they fill in what is left out. Of a Job Argo CD knows the type and sees one amount.
# Of the JobSet it compares letters: it is out of sync, and stays so after each sync. One would have guessed that what holds for one
# pod template holds for the other.
# Output seen: Job: 1000m and 1 differ: false, 0.5 and 500m differ: false; JobSet: true, true
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func template(cpu string) map[string]any {
	requests := map[string]any{"requests": map[string]any{"cpu": cpu}}
	container := map[string]any{"name": "a", "image": "example", "resources": requests}
	pod := map[string]any{"restartPolicy": "Never", "containers": []any{container}}
	return map[string]any{"template": map[string]any{"spec": pod}}
}

func object(version, kind string, spec map[string]any) *unstructured.Unstructured {
	name := map[string]any{"namespace": "example", "name": "example"}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": name, "spec": spec}}
}

func job(cpu string) *unstructured.Unstructured {
	return object("batch/v1", "Job", template(cpu))
}

func jobSet(cpu string) *unstructured.Unstructured {
	jobs := []any{map[string]any{"name": "workers", "template": map[string]any{"spec": template(cpu)}}}
	return object("jobset.x-k8s.io/v1alpha2", "JobSet", map[string]any{"replicatedJobs": jobs})
}

func main() {
	for _, kind := range []func(string) *unstructured.Unstructured{job, jobSet} {
		for _, cpu := range []string{"1000m", "0.5"} {
			written := resource.MustParse(cpu)
			result, err := diff.Diff(kind(cpu), kind(written.String()))
			if err != nil {
				panic(err)
			}
			fmt.Printf("%s: %s and %s differ: %t\n", kind(cpu).GetKind(), cpu, written.String(), result.Modified)
		}
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/argoproj/gitops-engine@v0.7.1-0.20251217140045-5baed5604d2d > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Job: 1000m and 1 differ: false
Job: 0.5 and 500m differ: false
JobSet: 1000m and 1 differ: true
JobSet: 0.5 and 500m differ: true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
