#!/bin/sh
# kubeflow 0.5.0 (Python), resources of a training node, and k8s.io/apiextensions-apiserver v0.36.3 (Go), which checks TrainJobs.
# Behaviour: the SDK takes half a CPU as the number 0.5 and sends it as one. A custom resource's quantity is a whole number or a
# text, so the API server refuses the job; the text "0.5" is taken. (In a Pod both are.) One would have guessed that the SDK
# writes what a TrainJob may have, or says no itself.
# Output seen: 0.5: refused; "0.5": taken; 2.0: taken
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubeflow==0.5.0
cat > finding.py <<'PY'
import json

from kubeflow.trainer.backends.kubernetes.utils import get_resources_per_node

for cpus in 0.5, "0.5", 2:
    print(json.dumps(get_resources_per_node({"cpu": cpus}).to_dict()["requests"]["cpu"]))
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
)

func main() {
	quantity := apiextensions.JSONSchemaProps{
		XIntOrString: true, AnyOf: []apiextensions.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
	}
	validator, _, err := validation.NewSchemaValidator(&quantity)
	if err != nil {
		panic(err)
	}
	for _, text := range os.Args[1:] {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			panic(err)
		}
		said := "taken"
		if len(validation.ValidateCustomResource(nil, value, validator)) > 0 {
			said = "refused"
		}
		fmt.Printf("%s: %s\n", text, said)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . $(own/bin/python finding.py))
wanted='0.5: refused
"0.5": taken
2.0: taken'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
