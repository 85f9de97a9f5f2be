#!/bin/sh
# @kubernetes/client-node 1.4.0 and yaml 2.9.1 (JavaScript), ruamel.yaml 0.19.1 and PyYAML 6.0.3 (Python), sigs.k8s.io/yaml v1.6.0
# (Go), by which kubectl reads manifests: "defaultMode: 0400", as for the key that the ranks of an MPI job log in with.
# Behaviour: in JavaScript and ruamel.yaml, after YAML 1.2, it is four hundred, which is the mode 0620, and sshd refuses a key
# that others may read; by PyYAML and kubectl it is 256, which is 0400. 0644 is 644, more than a mode may be, so the API server
# refuses it. One would have guessed that all clients of Kubernetes read one manifest alike; 0o400 is 256 by all but PyYAML (a
# text).
# Output seen: client-node: 400 644; yaml: 400 644; ruamel.yaml: 400 644; PyYAML: 256 420; kubectl: 256 420
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 yaml@2.9.1 > /dev/null
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check ruamel.yaml==0.19.1 PyYAML==6.0.3
cat > finding.mjs <<'JS'
import { loadYaml } from '@kubernetes/client-node';
import { parse } from 'yaml';

for (const [name, read] of [['client-node', loadYaml], ['yaml', parse]]) {
  console.log(`${name}: ${['0400', '0644'].map((mode) => read(`defaultMode: ${mode}`).defaultMode).join(' ')}`);
}
JS
cat > finding.py <<'PY'
import yaml
from ruamel.yaml import YAML

for name, read in ("ruamel.yaml", YAML(typ="safe").load), ("PyYAML", yaml.safe_load):
    print(f"{name}:", *(read(f"defaultMode: {mode}")["defaultMode"] for mode in ("0400", "0644")))
PY
cat > main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() {
	seen := map[string]int{}
	if err := yaml.Unmarshal([]byte("a: 0400\nb: 0644"), &seen); err != nil {
		panic(err)
	}
	fmt.Println("kubectl:", seen["a"], seen["b"])
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/yaml@v1.6.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(node finding.mjs; own/bin/python finding.py; go run .)
wanted='client-node: 400 644
yaml: 400 644
ruamel.yaml: 400 644
PyYAML: 256 420
kubectl: 256 420'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
