#!/bin/sh
# k8s.io/kubernetes v1.36.3 (Go), pkg/printers, by which the API server makes the table of kubectl get jobs: two Jobs that ran for
# an hour and ended nine hours ago, one Complete and one Failed.
# Behaviour: a Job that failed has no completionTime, so its DURATION is counted up to now, for ever: it says ten hours where the
# condition Failed has the time of its end. One would have guessed one hour for both; who sums up the column for what jobs have used
# counts each failed job until it is deleted.
# Output seen: Complete: 60m; Failed: 10h
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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
	"k8s.io/kubernetes/pkg/printers/storage"
)

func main() {
	tables := storage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(internalversion.AddHandlers)}
	start, end := metav1.NewTime(time.Now().Add(-10*time.Hour)), metav1.NewTime(time.Now().Add(-9*time.Hour))
	for _, ended := range []batch.JobConditionType{batch.JobComplete, batch.JobFailed} {
		condition := batch.JobCondition{Type: ended, Status: core.ConditionTrue, LastTransitionTime: end}
		status := batch.JobStatus{StartTime: &start, Conditions: []batch.JobCondition{condition}}
		if ended == batch.JobComplete {
			status.CompletionTime = &end
		}
		table, err := tables.ConvertToTable(context.Background(), &batch.Job{Status: status}, nil)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", table.Rows[0].Cells[1], table.Rows[0].Cells[3])
	}
}
GO
go mod init finding > /dev/null 2>&1
for module in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap \
    code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming csi-translation-lib \
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler \
    kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver streaming; do
    go mod edit -replace "k8s.io/$module=k8s.io/$module@v0.36.3"  # the program's own go.mod has folders here
done
go get k8s.io/kubernetes@v1.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Complete: 60m
Failed: 10h'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
