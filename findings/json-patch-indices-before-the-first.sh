#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (Go; what kube-apiserver applies JSON patches with) and jsonpatch 1.48 (Python): an element
# of a list by a negative index, as code has it that looks for an element and finds none (-1).
# Behaviour: Go takes -1 for the last element to remove, and for the place behind it to add, so the last toleration of a pod goes
# away for one that was not there. At -4 of three it adds at the front, and refuses to remove. 01 and +1 are the second element. RFC
# 6902 knows none of these, and Python has an error for each. One would have guessed one, too; but to add at the empty path, which
# is the whole document by the RFC, is an error in Go, and to replace there is not.
# Output seen: of [a b c], Go and Python: remove -1: [a b], error; add -1: [a b c x], error; remove -4: error, error; add -4:
# [x a b c], error; remove 01: [a c], error; remove +1: [a c], error; remove 1: [a c], [a c]; add the whole: error, [x]; replace
# the whole: [x], [x]
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check jsonpatch==1.48
cat > patches.py <<'PY'
import json

import jsonpatch

for operation, place in ("remove", "/-1"), ("add", "/-1"), ("remove", "/-4"), ("add", "/-4"), *(
    ("remove", place) for place in ("/01", "/+1", "/1")
), ("add", ""), ("replace", ""):
    patch = [{"op": operation, "path": place, "value": "x" if place else ["x"]}]
    try:
        result = json.dumps(jsonpatch.apply_patch(["a", "b", "c"], patch), separators=(",", ":"))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        result = "error"
    print(json.dumps(patch), result, sep="\t")
PY
cat > main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text, python, _ := strings.Cut(lines.Text(), "\t")
		patch, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			panic(err)
		}
		result, err := patch.Apply([]byte(`["a","b","c"]`))
		if err != nil {
			result = []byte("error")
		}
		operation, _ := patch[0]["op"].MarshalJSON()
		path, _ := patch[0].Path()
		fmt.Printf("%s %q: Go %s, Python %s\n", strings.Trim(string(operation), `"`), path, result, python)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python patches.py | go run .)
wanted='remove "/-1": Go ["a","b"], Python error
add "/-1": Go ["a","b","c","x"], Python error
remove "/-4": Go error, Python error
add "/-4": Go ["x","a","b","c"], Python error
remove "/01": Go ["a","c"], Python error
remove "/+1": Go ["a","c"], Python error
remove "/1": Go ["a","c"], Python ["a","c"]
add "": Go error, Python ["x"]
replace "": Go ["x"], Python ["x"]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
