#!/bin/sh
# fast-json-patch 3.1.1 (JavaScript), applyPatch, and gopkg.in/evanphx/json-patch.v4 v4.13.0 (Go), by which API servers apply JSON
# patches: operations on what is not there.
# Behaviour: RFC 6902 wants the place to exist. In JavaScript a remove and a move from an absent member do nothing, and a replace
# of the fourth entry of a list of one fills the list up with nulls; nothing is thrown unless the third argument, validate, is
# true. In Go these are errors, but a replace of an absent member adds it, as in JavaScript. One would have guessed an error for
# each, in both; a webhook's patch that works in its tests fails each object in the cluster.
# Output seen: remove: {"a":[1]}, error; move: {"a":[1]}, error; replace /a/3: {"a":[1,null,null,2]}, error; replace /b:
# {"a":[1],"b":2}, {"a":[1],"b":2}
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit fast-json-patch@3.1.1 > /dev/null
cat > finding.mjs <<'JS'
import patches from 'fast-json-patch';

for (const text of process.argv.slice(2)) {
  try {
    console.log(JSON.stringify(patches.applyPatch({ a: [1] }, JSON.parse(text)).newDocument));
  } catch {
    console.log('error');
  }
}
JS
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, text := range os.Args[1:] {
		patch, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			panic(err)
		}
		patched, err := patch.Apply([]byte(`{"a":[1]}`))
		if err != nil {
			patched = []byte("error")
		}
		fmt.Println(string(patched))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- '[{"op":"remove","path":"/b"}]' '[{"op":"move","from":"/x","path":"/b"}]' \
    '[{"op":"replace","path":"/a/3","value":2}]' '[{"op":"replace","path":"/b","value":2}]'
node finding.mjs "$@" > javascript
go run . "$@" > go
seen=$(paste -d ' ' javascript go)
wanted='{"a":[1]} error
{"a":[1]} error
{"a":[1,null,null,2]} error
{"a":[1],"b":2} {"a":[1],"b":2}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
