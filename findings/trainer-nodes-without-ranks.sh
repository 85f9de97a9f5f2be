#!/bin/sh
# github.com/kubeflow/trainer/v2 v2.2.1 (Go), at the modules of Kueue v0.19.2: its plugin for PyTorch, for a TrainJob that takes all
# from its runtime, of two nodes, and for one that has an empty spec.trainer besides.
# Behaviour: spec.trainer is optional, but without it none of the variables that torchrun reads is set (PET_NNODES, PET_NODE_RANK,
# PET_MASTER_ADDR and so on): two pods start and each trains alone, as node 0 of 1, without an error. "trainer: {}" is all that it
# takes. One would have guessed that what is left out is as if it were empty.
# Output seen: without trainer: 2 pods, no variables; trainer {}: 2 pods, PET_NNODES PET_NPROC_PER_NODE PET_NODE_RANK
# PET_MASTER_ADDR PET_MASTER_PORT
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

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/constants"
	"github.com/kubeflow/trainer/v2/pkg/runtime"
	"github.com/kubeflow/trainer/v2/pkg/runtime/framework"
	"github.com/kubeflow/trainer/v2/pkg/runtime/framework/plugins/torch"
)

func say(name string, job *trainer.TrainJob) {
	plugin, err := torch.New(context.Background(), nil, nil, nil)
	if err != nil {
		panic(err)
	}
	ancestor, nodes := constants.AncestorTrainer, int32(2)
	pods := runtime.PodSet{Name: constants.Node, Ancestor: &ancestor, Count: &nodes}
	pods.Containers = []runtime.Container{{Name: constants.Node}}
	info := &runtime.Info{}
	info.RuntimePolicy.MLPolicySource = &trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{}}
	info.TemplateSpec.PodSets = []runtime.PodSet{pods}
	if err := plugin.(framework.EnforceMLPolicyPlugin).EnforceMLPolicy(info, job); err != nil {
		panic(err)
	}
	fmt.Printf("%s: %d pods, variables", name, *info.TemplateSpec.PodSets[0].Count)
	for _, variable := range info.TemplateSpec.PodSets[0].Containers[0].Env {
		fmt.Printf(" %s", *variable.Name)
	}
	fmt.Println()
}

func main() {
	say("without trainer", &trainer.TrainJob{})
	say("trainer {}", &trainer.TrainJob{Spec: trainer.TrainJobSpec{Trainer: &trainer.Trainer{}}})
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/trainer/v2@v2.2.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='without trainer: 2 pods, variables
trainer {}: 2 pods, variables PET_NNODES PET_NPROC_PER_NODE PET_NODE_RANK PET_MASTER_ADDR PET_MASTER_PORT'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
