#!/bin/sh
# croniter 7.0.0 (Python) and github.com/robfig/cron/v3 v3.0.1 (Go), by which CronJobs are checked and run: one schedule.
# Behaviour: croniter takes Sunday as 7 and ranges that wrap around, which the API server refuses; it refuses "@every 90m" and
# "?" for the minute, which CronJobs may have. So a check in Python says nothing about a CronJob in either way.
# Output seen: 0 0 * * 7: yes no; 0 22-2 * * *: yes no; @every 90m: no yes; ? * * * *: no yes; 0 0 * * 1-5: yes yes
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0
cat > finding.py <<'PY'
import sys

from croniter import croniter

print(*("yes" if croniter.is_valid(schedule) else "no" for schedule in sys.argv[1:]))
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/robfig/cron/v3"
)

func main() {
	python, seen := strings.Fields(os.Args[1]), []string{}
	for index, schedule := range os.Args[2:] {
		said := "yes"
		if _, err := cron.ParseStandard(schedule); err != nil {
			said = "no"
		}
		seen = append(seen, schedule+": "+python[index]+" "+said)
	}
	fmt.Println(strings.Join(seen, "; "))
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
set -- '0 0 * * 7' '0 22-2 * * *' '@every 90m' '? * * * *' '0 0 * * 1-5'
seen=$(go run . "$(own/bin/python finding.py "$@")" "$@")
wanted='0 0 * * 7: yes no; 0 22-2 * * *: yes no; @every 90m: no yes; ? * * * *: no yes; 0 0 * * 1-5: yes yes'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
