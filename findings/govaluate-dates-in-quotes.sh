#!/bin/sh
# github.com/casbin/govaluate v1.10.0 (Go), the language of "when" in Argo's workflows: texts in quotes that look like a time.
# Behaviour: a text that can be read as a date or a clock time is turned into a number of seconds, quotes or not. So a pattern
# that fits "2026-01" and "v2026-01-02" is an error for "2026-01-02", and a text put behind a date is put behind that number. One
# would have guessed that what is in quotes stays a text, as "2026" and "10:30" do; it matters to who compares versions or the
# names of nightly runs, which look like dates.
# Output seen: "2026-01" =~ "^2026": true; "v2026-01-02" =~ "2026": true; "2026-01-02" =~ "^2026": error; "2026-01-02" + "-run" ==
# "2026-01-02-run": false; "2026-01" + "-run" == "2026-01-run": true; "3:04PM" =~ "^3": error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/casbin/govaluate"
)

func main() {
	for _, text := range []string{
		`"2026-01" =~ "^2026"`, `"v2026-01-02" =~ "2026"`, `"2026-01-02" =~ "^2026"`, `"3:04PM" =~ "^3"`,
		`"2026-01" + "-run" == "2026-01-run"`, `"2026-01-02" + "-run" == "2026-01-02-run"`,
	} {
		expression, err := govaluate.NewEvaluableExpression(text)
		if err != nil {
			panic(err)
		}
		value, err := expression.Evaluate(nil)
		if err != nil {
			value = "error"
		}
		fmt.Printf("%s: %v\n", text, value)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/casbin/govaluate@v1.10.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='"2026-01" =~ "^2026": true
"v2026-01-02" =~ "2026": true
"2026-01-02" =~ "^2026": error
"3:04PM" =~ "^3": error
"2026-01" + "-run" == "2026-01-run": true
"2026-01-02" + "-run" == "2026-01-02-run": false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
