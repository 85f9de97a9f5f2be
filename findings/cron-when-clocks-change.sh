#!/bin/sh
# github.com/robfig/cron/v3 v3.0.1 (Go), by which CronJobs run, croniter 7.0.0 and cronsim 2.8 (Python): 02:30 in Berlin, daily.
# Behaviour: on the day when clocks go forward there is no 02:30: the two in Python fire at 03:00, a CronJob does not run that day
# at all. When clocks go back it runs at both 02:30s, as by croniter; cronsim fires once. One would have guessed one run a day, as
# Debian's cron has it; it matters to CronJobs with a timeZone that queue jobs for the night.
# Output seen: robfig: 30T02:30 31T02:30, 25T02:30 25T02:30; croniter: 29T03:00 30T02:30, 25T02:30 25T02:30; cronsim: 29T03:00 ...
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 cronsim==2.8 tzdata==2025.2
cat > finding.py <<'PY'
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

berlin = ZoneInfo("Europe/Berlin")
starts = datetime(2026, 3, 28, 12, tzinfo=berlin), datetime(2026, 10, 24, 12, tzinfo=berlin)


def by_croniter(start):
    times = croniter("30 2 * * *", start)
    return [times.get_next(datetime) for _ in range(2)]


def by_cronsim(start):
    times = CronSim("30 2 * * *", start)
    return [next(times) for _ in range(2)]


for name, fire in ("croniter", by_croniter), ("cronsim", by_cronsim):
    print(f"{name}:", ", ".join(" ".join(time.strftime("%dT%H:%M") for time in fire(start)) for start in starts))
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard("TZ=Europe/Berlin 30 2 * * *")
	if err != nil {
		panic(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	fires := func(month time.Month, day int) string {
		first := schedule.Next(time.Date(2026, month, day, 12, 0, 0, 0, berlin))
		return first.Format("02T15:04") + " " + schedule.Next(first).Format("02T15:04")
	}
	fmt.Printf("robfig: %s, %s\n", fires(3, 28), fires(10, 24))
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .)
wanted='croniter: 29T03:00 30T02:30, 25T02:30 25T02:30
cronsim: 29T03:00 30T02:30, 25T02:30 26T02:30
robfig: 30T02:30 31T02:30, 25T02:30 25T02:30'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
