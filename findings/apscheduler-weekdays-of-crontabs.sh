#!/bin/sh
# apscheduler 3.11.3 (Python) and github.com/robfig/cron/v3 v3.0.1 (Go), by which CronJobs run: one line of a crontab.
# Behaviour: CronTrigger.from_crontab counts weekdays from Monday, so "0 0 * * 0" fires on Mondays (cron: Sundays), and wants the
# day of the month and the weekday at once where cron wants one of them: "0 0 1-7 * 1" is once a month on a Tuesday instead of
# daily for a week and each Monday. One would have guessed what the method's name says.
# Output seen: 0 0 * * 0: 03-02 or 03-08; 0 0 1-7 * 1: 03-03 04-07 or 03-02 03-03
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check apscheduler==3.11.3
cat > finding.py <<'PY'
import sys
from datetime import datetime, timezone

from apscheduler.triggers.cron import CronTrigger

time, previous = datetime(2026, 3, 1, 12, tzinfo=timezone.utc), None
trigger = CronTrigger.from_crontab(sys.argv[1], timezone=timezone.utc)
for _ in range(2):
    time = previous = trigger.get_next_fire_time(previous, time)
    print(time.strftime("%m-%d"), end=" ")
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
	schedule, err := cron.ParseStandard(os.Args[1])
	if err != nil {
		panic(err)
	}
	first := schedule.Next(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println(first.Format("01-02"), schedule.Next(first).Format("01-02"))
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(for schedule in '0 0 * * 0' '0 0 1-7 * 1'; do
  echo "$schedule: $(own/bin/python finding.py "$schedule")or $(go run . "$schedule")"
done)
wanted='0 0 * * 0: 03-02 03-09 or 03-08 03-15
0 0 1-7 * 1: 03-03 04-07 or 03-02 03-03'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
