#!/bin/sh
# github.com/project-codeflare/appwrapper v1.2.2 (Go), InferPodSets: a RayCluster whose worker group has several hosts a replica.
# Behaviour: numOfHosts is not read: of 2 replicas with 4 hosts each, for which KubeRay makes 8 pods, it infers 2. A JobSet's
# replicas are multiplied by the parallelism of their jobs, as they should be.
# Output seen: RayCluster: 1 2; JobSet: 8
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"github.com/project-codeflare/appwrapper/pkg/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func inferred(text string) string {
	wrapped, counts := &unstructured.Unstructured{}, []string{}
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	if err := wrapped.UnmarshalJSON(json); err != nil {
		panic(err)
	}
	podSets, err := utils.InferPodSets(wrapped)
	if err != nil {
		panic(err)
	}
	for _, podSet := range podSets {
		counts = append(counts, fmt.Sprint(*podSet.Replicas))
	}
	return wrapped.GetKind() + ": " + strings.Join(counts, " ")
}

func main() {
	pod := "{spec: {containers: [{name: a, image: example.com/a}]}}"
	ray := inferred("{apiVersion: ray.io/v1, kind: RayCluster, spec: {headGroupSpec: {template: " + pod +
		"}, workerGroupSpecs: [{groupName: w, replicas: 2, numOfHosts: 4, template: " + pod + "}]}}")
	set := inferred("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: w, replicas: 2, " +
		"template: {spec: {parallelism: 4, template: " + pod + "}}}]}}")
	fmt.Printf("%s; %s\n", ray, set)
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/project-codeflare/appwrapper@v1.2.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='RayCluster: 1 2; JobSet: 8'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
