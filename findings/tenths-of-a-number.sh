#!/bin/sh
# jsonschema 4.26.0 (Python) and k8s.io/apiextensions-apiserver v0.36.3 (Go), which checks custom resources: multipleOf 0.1, as
# for a share of a GPU in tenths.
# Behaviour: for Python 0.3, 0.6 and 0.7 are no multiples of 0.1, as the quotient of the two floats is not whole; for the API
# server each tenth is one, and 0.25 for neither. One would have guessed that one JSON schema says one thing, and that three
# tenths are tenths; a check before the job is sent refuses what the cluster takes.
# Output seen: 0.1: True true; 0.2: True true; 0.3: False true; 0.5: True true; 0.6: False true; 0.7: False true; 0.25: False
# false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check jsonschema==4.26.0
cat > finding.py <<'PY'
import sys

from jsonschema import Draft202012Validator

tenths = Draft202012Validator({"type": "number", "multipleOf": 0.1})
for text in sys.argv[1:]:
    print(f"{text}: {tenths.is_valid(float(text))}")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

func main() {
	tenth := 0.1
	validator, _, err := validation.NewSchemaValidator(&apiextensions.JSONSchemaProps{Type: "number", MultipleOf: &tenth})
	if err != nil {
		panic(err)
	}
	for _, text := range os.Args[1:] {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		fmt.Println(validator.Validate(number).IsValid())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- 0.1 0.2 0.3 0.5 0.6 0.7 0.25
own/bin/python finding.py "$@" > python
go run . "$@" > go
seen=$(paste -d ' ' python go)
wanted='0.1: True true
0.2: True true
0.3: False true
0.5: True true
0.6: False true
0.7: False true
0.25: False false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
