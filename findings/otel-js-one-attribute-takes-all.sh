#!/bin/sh
# @opentelemetry/resources 2.12.1 (JavaScript), opentelemetry-sdk 1.45.2 (Python) and go.opentelemetry.io/otel/sdk v1.47.0 (Go): one value
# of OTEL_RESOURCE_ATTRIBUTES, with the cluster of a process and a label selector, whose "=" the specification admits in a value.
# Behaviour: Python and Go take what is behind the first "=". JavaScript takes the second for an error and then leaves out all the
# attributes, the cluster's as well, with no word unless a logger of its diagnostics is set. With %3D it reads all. One would have
# guessed one reading for the three; the traces of the parts in JavaScript lose their cluster.
# Output seen: selector=app=a,cluster=b: JavaScript none, Python and Go both; selector=app%3Da,cluster=b: all three both
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit @opentelemetry/resources@2.12.1 @opentelemetry/api@1.9.1 > /dev/null
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check opentelemetry-sdk==1.45.2
cat > finding.mjs <<'JS'
import { envDetector } from '@opentelemetry/resources';

const seen = Object.entries(envDetector.detect().attributes).map(([name, value]) => `${name} is ${value}`);
console.log(`JavaScript: ${seen.sort().join(', ') || 'none'}`);
JS
cat > finding.py <<'PY'
from opentelemetry.sdk.resources import OTELResourceDetector

seen = OTELResourceDetector().detect().attributes
print("Python:", ", ".join(f"{name} is {value}" for name, value in sorted(seen.items())) or "none")
PY
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	read, err := resource.New(context.Background(), resource.WithFromEnv())
	if err != nil {
		panic(err)
	}
	seen := []string{}
	for _, attribute := range read.Attributes() {
		seen = append(seen, fmt.Sprintf("%s is %s", attribute.Key, attribute.Value.AsString()))
	}
	fmt.Println("Go:", strings.Join(seen, ", "))
}
GO
go mod init finding > /dev/null 2>&1
go get go.opentelemetry.io/otel/sdk@v1.47.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
go build -o finding .
seen=$(for attributes in selector=app=a,cluster=b selector=app%3Da,cluster=b; do
  export OTEL_RESOURCE_ATTRIBUTES="$attributes"
  echo "$attributes"
  node finding.mjs
  own/bin/python finding.py
  ./finding
done)
wanted='selector=app=a,cluster=b
JavaScript: none
Python: cluster is b, selector is app=a
Go: cluster is b, selector is app=a
selector=app%3Da,cluster=b
JavaScript: cluster is b, selector is app=a
Python: cluster is b, selector is app=a
Go: cluster is b, selector is app=a'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
