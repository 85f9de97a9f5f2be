#!/bin/sh
# k8s.io/kubectl v0.36.3 (Go), kubectl wait --for=condition=Finished: a Workload whose spec was changed after it had finished.
# Behaviour: the condition is there and True, and it is never met: where a condition has an observedGeneration that is older
# than the object, it does not count, which no help text says; nobody writes the condition of what has ended again, so the wait
# lasts until its timeout. Without observedGeneration the same condition is met.
# Output seen: generation 1: met; generation 2: condition not met for workloads/a; the same without observedGeneration: met
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

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/kubectl/pkg/cmd/wait"
)

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

func waited(generation int64, condition map[string]any) string {
	workload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2",
		"kind":       "Workload",
		"metadata":   map[string]any{"namespace": "ns", "name": "a", "generation": generation},
		"status":     map[string]any{"conditions": []any{condition}},
	}}
	server := "http://127.0.0.1:1"
	getter := genericclioptions.NewConfigFlags(false)
	getter.APIServer = &server
	flags := wait.NewWaitFlags(getter, genericiooptions.NewTestIOStreamsDiscard())
	flags.ForCondition, flags.Timeout = []string{"condition=Finished"}, 0
	options, err := flags.ToOptions([]string{"workload/a"})
	if err != nil {
		panic(err)
	}
	kinds := map[schema.GroupVersionResource]string{workloads: "WorkloadList"}
	options.DynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, workload)
	mapping := &meta.RESTMapping{Resource: workloads}
	info := &resource.Info{Mapping: mapping, Namespace: "ns", Name: "a", Object: workload}
	if _, _, err := options.ConditionFn[0](context.Background(), info, options); err != nil {
		return err.Error()
	}
	return "met"
}

func main() {
	versioned := map[string]any{"type": "Finished", "status": "True", "observedGeneration": int64(1)}
	plain := map[string]any{"type": "Finished", "status": "True"}
	fmt.Printf("generation 1: %s; generation 2: %s; the same without observedGeneration: %s\n",
		waited(1, versioned), waited(2, versioned), waited(2, plain))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/kubectl@v0.36.3 k8s.io/cli-runtime@v0.36.3 k8s.io/client-go@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='generation 1: met; generation 2: condition not met for workloads/a; the same without observedGeneration: met'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
