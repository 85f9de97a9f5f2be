#!/bin/sh
# metaflow 2.19.39 (Python), @schedule(cron=...), whose lines are those of AWS, and github.com/robfig/cron/v3 v3.0.1 (Go), by
# which Argo Workflows runs a flow that is deployed there.
# Behaviour: the first five of AWS's six fields are given to Argo as they are. AWS counts weekdays from 1 for Sunday, Argo from 0,
# so "0 10 ? * 2 *", a Monday, becomes a Tuesday; the year is cut off, so "0 0 1 1 ? 2027", once, is each year. One would have
# guessed that a decorator that serves both schedulers translates, or refuses; ranges of names (MON-FRI) are right.
# Output seen: 0 10 ? * 2 *: Tue 2026-03-03, Tue 2026-03-10; 0 0 1 1 ? 2027: Fri 2027-01-01, Sat 2028-01-01
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check metaflow==2.19.39
cat > finding.py <<'PY'
from types import SimpleNamespace

from metaflow.plugins.argo.argo_workflows import ArgoWorkflows
from metaflow.plugins.aws.step_functions.schedule_decorator import ScheduleDecorator

for line in ("0 10 ? * 2 *", "0 0 1 1 ? 2027"):
    schedule = ScheduleDecorator({"cron": line})
    schedule.flow_init(None, None, None, None, None, None, None, None)
    flow = SimpleNamespace(_flow_decorators={"schedule": [schedule]})
    print(ArgoWorkflows._get_schedule(SimpleNamespace(flow=flow))[0])
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	for _, line := range os.Args[1:] {
		schedule, err := cron.ParseStandard(line)
		if err != nil {
			panic(err)
		}
		first := schedule.Next(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		fmt.Printf("%s: %s, %s\n", line, first.Format("Mon 2006-01-02"), schedule.Next(first).Format("Mon 2006-01-02"))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
own/bin/python finding.py > lines
seen=$(go run . "$(sed -n 1p lines)" "$(sed -n 2p lines)")
wanted='0 10 ? * 2: Tue 2026-03-03, Tue 2026-03-10
0 0 1 1 ?: Fri 2027-01-01, Sat 2028-01-01'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
