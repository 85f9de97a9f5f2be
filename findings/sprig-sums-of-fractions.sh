#!/bin/sh
# github.com/Masterminds/sprig/v3 v3.3.0 (Go), the functions of Helm's charts: sums of CPUs and of quantities.
# Behaviour: mul and add make each number whole before they count, so half a CPU for four workers is 0 and 1.5 and 1.5 are 2; what
# is no whole number as a text is 0, so "500m" twice is 0 and int of "1.9" and of "08" is 0 ("010" is 8, as octal). Nothing says
# an error. One would have guessed 2, 3 and an error; a chart's quota or minimum of a gang is nothing for small jobs. (mulf counts
# in fractions.)
# Output seen: mul 0.5 4: 0; mulf 0.5 4: 2; add 1.5 1.5: 2; mul "500m" 2: 0; int "1.9": 0; int "08": 0; int "010": 8
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

func main() {
	for _, sum := range []string{
		"mul 0.5 4", "mulf 0.5 4", "add 1.5 1.5", `mul "500m" 2`, `int "1.9"`, `int "08"`, `int "010"`,
	} {
		chart := template.Must(template.New("").Funcs(sprig.FuncMap()).Parse("{{ " + sum + " }}"))
		fmt.Printf("%s: ", sum)
		if err := chart.Execute(os.Stdout, nil); err != nil {
			panic(err)
		}
		fmt.Println()
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/Masterminds/sprig/v3@v3.3.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='mul 0.5 4: 0
mulf 0.5 4: 2
add 1.5 1.5: 2
mul "500m" 2: 0
int "1.9": 0
int "08": 0
int "010": 8'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
