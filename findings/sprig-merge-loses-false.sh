#!/bin/sh
# github.com/Masterminds/sprig/v3 v3.3.0 (Go), the functions of Helm's charts: merge and mergeOverwrite of values and defaults.
# Behaviour: merge lets the first one win, by its page, but not where its value is false, 0 or an empty text or list: suspend:
# false over a default of true is true, and 0 retries are three. mergeOverwrite the other way round keeps them. One would have
# guessed that both say the same; a job that a values file switches off, or on, is as the chart had it.
# Output seen: merge: {"backoffLimit":3,"suspend":true}; mergeOverwrite: {"backoffLimit":0,"suspend":false}
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const chart = `{{ $values := dict "suspend" false "backoffLimit" 0 }}{{ $defaults := dict "suspend" true "backoffLimit" 3 -}}
merge: {{ toJson (merge (deepCopy $values) $defaults) }}
mergeOverwrite: {{ toJson (mergeOverwrite (deepCopy $defaults) $values) }}
`

func main() {
	if err := template.Must(template.New("").Funcs(sprig.FuncMap()).Parse(chart)).Execute(os.Stdout, nil); err != nil {
		panic(err)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/Masterminds/sprig/v3@v3.3.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='merge: {"backoffLimit":3,"suspend":true}
mergeOverwrite: {"backoffLimit":0,"suspend":false}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
