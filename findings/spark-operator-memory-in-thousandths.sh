#!/bin/sh
# github.com/kubeflow/spark-operator/v2 v2.5.1 (Go), pkg/util, at the modules of Kueue v0.19.2: Spark's memory, as in its
# examples.
# Behaviour: GetExecutorRequestResource, which tells gang schedulers what two executors need at least, reads Spark's 512m (MiB) as
# thousandths of a byte, and leaves out 4g, as Kubernetes has no g. The function beside it, for pods, converts both, but makes
# 4GGi of 4G, which Spark takes. One would have guessed 1Gi and 8Gi; the minimum of such a group is nothing.
# Output seen: 512m: 1024m and 512Mi; 4g: nothing and 4Gi; 4G: 8G and 4GGi
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	"github.com/kubeflow/spark-operator/v2/pkg/util"
	"k8s.io/utils/ptr"
)

func main() {
	for _, memory := range []string{"512m", "4g", "4G"} {
		app := &v1beta2.SparkApplication{}
		app.Spec.Executor.Instances = ptr.To[int32](2)
		app.Spec.Executor.Memory = ptr.To(memory)
		said := "nothing"
		if counted, found := util.GetExecutorRequestResource(app)["memory"]; found {
			said = counted.String()
		}
		fmt.Printf("%s: %s and %s\n", memory, said, util.ConvertJavaMemoryStringToK8sMemoryString(memory))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/spark-operator/v2@v2.5.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='512m: 1024m and 512Mi
4g: nothing and 4Gi
4G: 8G and 4GGi'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
