#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 and github.com/kubeflow/spark-operator/v2 v2.5.1 (Go): a SparkApplication whose executor has cores: 4.
# Behaviour: Kueue reads coreRequest alone, which few applications have, so it counts no CPU; and without spec.executor.instances
# it counts no executors, where the operator, as Spark, starts two. The operator's own sum has 8 CPUs. It matters to who gives
# Spark a quota of CPUs: it is never used up.
# Output seen: Kueue: 0 executors of 0 CPUs; operator: 2 executors, 8 CPUs together
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

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	operator "github.com/kubeflow/spark-operator/v2/pkg/util"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kueue/pkg/controller/jobs/sparkapplication"
)

func main() {
	app := v1beta2.SparkApplication{}
	app.Spec.Executor.Cores = ptr.To[int32](4)
	podSets, err := (*sparkapplication.SparkApplication)(&app).PodSets(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	executors := podSets[1]
	counted, total := executors.Template.Spec.Containers[0].Resources.Requests, operator.GetExecutorRequestResource(&app)
	fmt.Printf("Kueue: %d executors of %s CPUs; operator: %d executors, %s CPUs together\n",
		executors.Count, counted.Cpu(), operator.GetInitialExecutorNumber(&app), total.Cpu())
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 github.com/kubeflow/spark-operator/v2@v2.5.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Kueue: 0 executors of 0 CPUs; operator: 2 executors, 8 CPUs together'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
