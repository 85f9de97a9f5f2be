#!/bin/sh
# github.com/robfig/cron/v3 v3.0.1 (Go), by which CronJobs run, croniter 7.0.0 and cronsim 2.8 (Python): "0 0 */2 * 1".
# Behaviour: a day of the month that begins with a star does not count as restricted in Debian's cron, so both fields must hold,
# and it is Mondays with an odd date; cronsim says so. robfig and croniter fire if one of both holds: each second day and each
# Monday, 19 times a month instead of two. One would have guessed that a line of a crontab that becomes a CronJob keeps its
# meaning.
# Output seen: croniter: 19 in March; cronsim: 2 in March; robfig: 19 in March
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 cronsim==2.8
cat > finding.py <<'PY'
from datetime import datetime
from itertools import takewhile

from croniter import croniter
from cronsim import CronSim

line, start, end = "0 0 */2 * 1", datetime(2026, 2, 28, 12), datetime(2026, 4, 1)
for name, times in ("croniter", croniter(line, start).all_next(datetime)), ("cronsim", CronSim(line, start)):
    print(f"{name}: {sum(1 for _ in takewhile(lambda time: time < end, times))} in March")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard("0 0 */2 * 1")
	if err != nil {
		panic(err)
	}
	count := 0
	for at := schedule.Next(time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)); at.Month() == time.March; at = schedule.Next(at) {
		count++
	}
	fmt.Printf("robfig: %d in March\n", count)
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .)
wanted='croniter: 19 in March
cronsim: 2 in March
robfig: 19 in March'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
