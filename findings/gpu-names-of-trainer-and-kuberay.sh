#!/bin/sh
# github.com/kubeflow/trainer/v2 v2.2.1 and github.com/ray-project/kuberay/ray-operator v1.6.2 (Go), at the modules of Kueue
# v0.19.2: which resources are GPUs.
# Behaviour: Trainer takes each whose name has "gpu" in it, so a gpumem of 8000 MiB would be 8000 GPUs and a MIG slice none (it
# starts as many processes as there are CPUs); KubeRay takes those that end in gpu and MIG slices without an attribute, so
# gpu.shared, the name that NVIDIA's plugin gives shared GPUs, is none. One would have guessed one rule; Ray and PyTorch see other
# numbers on one node.
# Output seen: gpu: 2 true; gpu.shared: 2 false; mig-1g.5gb: 0 true; mig-1g.5gb.me: 0 false; gpumem: 2 false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/kubeflow/trainer/v2/pkg/runtime"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, name := range []string{"gpu", "gpu.shared", "mig-1g.5gb", "mig-1g.5gb.me", "gpumem"} {
		name = "nvidia.com/" + name
		limits := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("2")}
		counted := runtime.GetNumGPUPerNode(&corev1.ResourceRequirements{Limits: limits})
		fmt.Printf("%s: Trainer %d, KubeRay %t\n", name, counted, utils.IsGPUResourceKey(name))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/trainer/v2@v2.2.1 github.com/ray-project/kuberay/ray-operator@v1.6.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='nvidia.com/gpu: Trainer 2, KubeRay true
nvidia.com/gpu.shared: Trainer 2, KubeRay false
nvidia.com/mig-1g.5gb: Trainer 0, KubeRay true
nvidia.com/mig-1g.5gb.me: Trainer 0, KubeRay false
nvidia.com/gpumem: Trainer 2, KubeRay false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
