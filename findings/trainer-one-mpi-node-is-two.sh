#!/bin/sh
# github.com/kubeflow/trainer/v2 v2.2.1 (Go), at the modules of Kueue v0.19.2: its plugin for MPI, with runLauncherAsNode, by which
# the launcher is one of the nodes: TrainJobs of 1 to 3 nodes.
# Behaviour: the launcher and the number of nodes less one are started, but at least one beside it, so numNodes 1 starts two pods,
# each with the GPUs of a node, and the gang scheduler is told two, without an error. One would have guessed one pod for one node,
# as to try a job in the small before it gets more.
# Output seen: numNodes 1: 2 pods; numNodes 2: 2 pods; numNodes 3: 3 pods
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
	"github.com/kubeflow/trainer/v2/pkg/runtime/framework/plugins/mpi"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func main() {
	plugin, err := mpi.New(context.Background(), fake.NewClientBuilder().Build(), nil, nil)
	if err != nil {
		panic(err)
	}
	for numNodes := int32(1); numNodes <= 3; numNodes++ {
		launchers, nodes, processes, asNode := int32(1), int32(1), int32(1), true
		mpiPolicy := &trainer.MPIMLPolicySource{NumProcPerNode: &processes, RunLauncherAsNode: &asNode}
		info := &runtime.Info{}
		info.RuntimePolicy.MLPolicySource = &trainer.MLPolicySource{MPI: mpiPolicy}
		info.TemplateSpec.PodSets = []runtime.PodSet{{Name: constants.Launcher, Count: &launchers}, {Name: constants.Node, Count: &nodes}}
		job := &trainer.TrainJob{Spec: trainer.TrainJobSpec{Trainer: &trainer.Trainer{NumNodes: &numNodes}}}
		if _, refused := plugin.(framework.CustomValidationPlugin).Validate(context.Background(), info, nil, job); len(refused) > 0 {
			panic(refused)
		}
		if err := plugin.(framework.EnforceMLPolicyPlugin).EnforceMLPolicy(info, job); err != nil {
			panic(err)
		}
		fmt.Printf("numNodes %d: %d pods\n", numNodes, launchers+nodes)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/trainer/v2@v2.2.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='numNodes 1: 2 pods
numNodes 2: 2 pods
numNodes 3: 3 pods'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
