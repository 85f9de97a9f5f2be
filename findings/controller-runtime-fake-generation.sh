#!/bin/sh
# sigs.k8s.io/controller-runtime v0.24.1 (Go), client/fake: what an API server does with an object that is written.
# Behaviour: the generation stays 0 when the spec changes (so a predicate on it lets nothing through in a test), a status that
# is given to Create is kept though the kind has the status subresource, and an Update that changes nothing is a new
# resourceVersion. A server counts the generation, drops the status and keeps the version.
# Output seen: generation 0 then 0; status after create: 5 active; resourceVersion 2, after no change 3
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx, cl, parallelism := context.Background(), fake.NewClientBuilder().Build(), int32(3)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Status: batchv1.JobStatus{Active: 5},
	}
	must(cl.Create(ctx, job))
	must(cl.Get(ctx, client.ObjectKeyFromObject(job), job))
	created, active := job.Generation, job.Status.Active
	job.Spec.Parallelism = &parallelism
	must(cl.Update(ctx, job))
	changed := job.ResourceVersion
	must(cl.Update(ctx, job))
	fmt.Printf("generation %d then %d; status after create: %d active; resourceVersion %s, after no change %s\n",
		created, job.Generation, active, changed, job.ResourceVersion)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/controller-runtime@v0.24.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='generation 0 then 0; status after create: 5 active; resourceVersion 2, after no change 3'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
