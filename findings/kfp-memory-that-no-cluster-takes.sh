#!/bin/sh
# kfp 2.17.3 (Python), Kubeflow Pipelines' SDK, and k8s.io/apimachinery v0.36.3 (Go), by which clusters read quantities: the
# memory of a task.
# Behaviour: 1024K is taken, as K is in the SDK's list, and no cluster reads it (a thousand is k); 1024k, 1.5Gi and 1e9, which
# clusters read, are a ValueError. One would have guessed that what the SDK takes can be run, and the other way round; the
# pipeline compiles and fails where it runs.
# Output seen: 1Gi: taken, read; 1024K: taken, error; 1024k: ValueError, read; 1.5Gi: ValueError, read; 1e9: ValueError, read
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kfp==2.17.3
cat > finding.py <<'PY'
from kfp import dsl
from google.protobuf import json_format


@dsl.component
def train():
    pass


def said(memory):
    try:
        @dsl.pipeline(name="pipeline")
        def pipeline():
            train().set_memory_limit(memory)
    except ValueError:
        return "ValueError"
    spec = json_format.MessageToDict(pipeline.pipeline_spec)["deploymentSpec"]["executors"]["exec-train"]
    return "taken" if spec["container"]["resources"]["resourceMemoryLimit"] == memory else "changed"


for memory in ("1Gi", "1024K", "1024k", "1.5Gi", "1e9"):
    print(memory, said(memory))
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	said := "read"
	if _, err := resource.ParseQuantity(os.Args[1]); err != nil {
		said = "error"
	}
	fmt.Println(said)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
go build -o read .
own/bin/python -W ignore finding.py > taken
seen=$(while read -r memory said; do echo "$memory: $said, $(./read "$memory")"; done < taken)
wanted='1Gi: taken, read
1024K: taken, error
1024k: ValueError, read
1.5Gi: ValueError, read
1e9: ValueError, read'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
