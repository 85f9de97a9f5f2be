#!/bin/sh
# jsonnet 0.22.0 (C++), gojsonnet 0.22.0 (Go) and rjsonnet 0.5.6 (Rust), each as its package for Python: std.parseYaml of one
# manifest.
# Behaviour: the one in Go reads yes, 0400, 08 and 1_000 as true and numbers, as kubectl does; the one in C++ reads all as texts,
# even ~, which is null in each version of YAML; the one in Rust reads 0400 as 256 and the other words as texts. The page of
# std.parseYaml promises no more than its best. One would have guessed that one language has one answer; a mode or a switch in a
# values file changes with the program that renders it.
# Output seen: yes: "yes" true "yes"; 0400: "0400" 256 256; 08: "08" 8 "08"; 1_000: "1_000" 1000 "1_000"; ~: "~" null null
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check jsonnet==0.22.0 gojsonnet==0.22.0 rjsonnet==0.5.6
cat > finding.py <<'PY'
import json

import _gojsonnet
import _jsonnet
import rjsonnet


def read(library, text: str) -> str:
    program = f"std.parseYaml({json.dumps('a: ' + text)}).a"
    return library.evaluate_snippet("example", program).strip()


for text in ("yes", "0400", "08", "1_000", "~"):
    print(f"{text}:", *(read(library, text) for library in (_jsonnet, _gojsonnet, rjsonnet)))
PY
seen=$(own/bin/python finding.py)
wanted='yes: "yes" true "yes"
0400: "0400" 256 256
08: "08" 8 "08"
1_000: "1_000" 1000 "1_000"
~: "~" null null'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
