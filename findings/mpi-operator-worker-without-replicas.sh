#!/bin/sh
# github.com/kubeflow/mpi-operator v0.8.2 (Go): an MPIJob whose Launcher and Worker leave out replicas.
# Behaviour: the defaults give the launcher one replica and the workers none, and the same project's validation then refuses
# the job, as it wants at least one worker if they are named. (Other kinds of Kubeflow default to one.)
# Output seen: launcher 1, worker 0; spec.mpiReplicaSpecs[Worker].replicas: must be greater than or equal to 1
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/a"}}}}
	launcher, worker := &v2beta1.ReplicaSpec{Template: template}, &v2beta1.ReplicaSpec{Template: template}
	job := &v2beta1.MPIJob{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v2beta1.MPIJobSpec{
		MPIReplicaSpecs: map[v2beta1.MPIReplicaType]*v2beta1.ReplicaSpec{
			v2beta1.MPIReplicaTypeLauncher: launcher, v2beta1.MPIReplicaTypeWorker: worker,
		},
	}}
	v2beta1.SetDefaults_MPIJob(job)
	fmt.Printf("launcher %d, worker %d", *launcher.Replicas, *worker.Replicas)
	for _, refused := range validation.ValidateMPIJob(job) {
		fmt.Printf("; %s: %s", refused.Field, refused.Detail)
	}
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/kubeflow/mpi-operator@v0.8.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='launcher 1, worker 0; spec.mpiReplicaSpecs[Worker].replicas: must be greater than or equal to 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
