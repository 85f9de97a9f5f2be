#!/bin/sh
# github.com/project-codeflare/appwrapper v1.2.2 (Go), at the modules of Kueue v0.19.2: GetPodTemplateSpec, the pod that Kueue
# counts.
# Behaviour: it copies chosen fields, and not restartPolicy of init containers, spec.resources and spec.resourceClaims. So a
# sidecar of 2 CPUs is counted as an init container that ends, of CPUs asked for by the whole pod none, and of devices that are
# claimed none. The same job without its wrapper is counted in full; one would have guessed the same.
# Output seen: sidecar: 4 of 6 CPUs; of the pod: 0 of 8 CPUs; devices: 0 of 1 claims
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/project-codeflare/appwrapper/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	helpers "k8s.io/component-helpers/resource"
)

func cpus(spec corev1.PodSpec) string {
	requests := helpers.PodRequests(&corev1.Pod{Spec: spec}, helpers.PodResourcesOptions{})
	return requests.Cpu().String()
}

func both(spec string) string {
	job, whole := &unstructured.Unstructured{}, corev1.PodSpec{}
	if err := json.Unmarshal([]byte(`{"spec": {"template": {"spec": `+spec+`}}}`), &job.Object); err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte(spec), &whole); err != nil {
		panic(err)
	}
	template, err := utils.GetPodTemplateSpec(job, "template.spec.template")
	if err != nil {
		panic(err)
	}
	claims := fmt.Sprintf("%d of %d claims", len(template.Spec.ResourceClaims), len(whole.ResourceClaims))
	return fmt.Sprintf("%s of %s CPUs, %s", cpus(template.Spec), cpus(whole), claims)
}

func main() {
	fmt.Println("sidecar:", both(`{"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}],
		"containers": [{"resources": {"requests": {"cpu": "4"}}}]}`))
	fmt.Println("of the pod:", both(`{"resources": {"requests": {"cpu": "8"}}, "containers": [{}]}`))
	fmt.Println("devices:", both(`{"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "gpus"}],
		"containers": [{"resources": {"claims": [{"name": "a"}]}}]}`))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/project-codeflare/appwrapper@v1.2.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='sidecar: 4 of 6 CPUs, 0 of 0 claims
of the pod: 0 of 8 CPUs, 0 of 0 claims
devices: 0 of 0 CPUs, 0 of 1 claims'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
