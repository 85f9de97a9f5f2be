#!/bin/sh
# jsonschema 4.26.0 (Python) and k8s.io/apiextensions-apiserver v0.36.3 (Go), which checks custom resources: a number with
# multipleOf 0.1, as for a share of a GPU in tenths.
# Behaviour: for Python 0.3 is no multiple of 0.1, as the quotient of the two floats is not whole; for the API server it is. A
# whole number without a point, 1, which is how JSON is mostly written, is one for Python; the API server makes a whole number of
# 0.1 for it, which is 0, and refuses: "factor MultipleOf declared for ... must be positive: 0". 1.0 it takes. One would have
# guessed that one schema says one thing, and that 1 is ten tenths; a share of one whole GPU is refused unless it is written as
# 1.0.
# Output seen: 0.1: True true; 0.25: False false; 0.3: False true; 0.5: True true; 0.7: False true; 1.0: True true; 1: True false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check jsonschema==4.26.0
cat > finding.py <<'PY'
import json
import sys

from jsonschema import Draft202012Validator

tenths = Draft202012Validator({"type": "number", "multipleOf": 0.1})
for text in sys.argv[1:]:
    print(f"{text}: {tenths.is_valid(json.loads(text))}")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func main() {
	tenth := 0.1
	validator, _, err := validation.NewSchemaValidator(&apiextensions.JSONSchemaProps{Type: "number", MultipleOf: &tenth})
	if err != nil {
		panic(err)
	}
	for _, text := range os.Args[1:] {
		var share any
		if err := json.Unmarshal([]byte(text), &share); err != nil {
			panic(err)
		}
		fmt.Println(len(validation.ValidateCustomResource(field.NewPath("share"), share, validator)) == 0)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- 0.1 0.25 0.3 0.5 0.7 1.0 1
own/bin/python finding.py "$@" > python
go run . "$@" > go
seen=$(paste -d ' ' python go)
wanted='0.1: True true
0.25: False false
0.3: False true
0.5: True true
0.7: False true
1.0: True true
1: True false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
