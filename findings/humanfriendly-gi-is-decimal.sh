#!/bin/sh
# humanfriendly 10.0 (Python), parse_size, by which Snakemake reads mem and disk of a rule: Kubernetes' quantities.
# Behaviour: 1GiB is 2^30; 1Gi is 10^9, as only a unit's first letter counts where it is not known as a whole, so a job gets 7 %
# less memory than its manifest said, and 1.5Ti 9 % less. 500m, which is half a byte, is half a gigabyte. One would have guessed
# 2^30, or an error as for 1e3.
# Output seen: 1GiB: 1073741824; 1Gi: 1000000000; 1.5Ti: 1500000000000; 500m: 500000000; 1e3: InvalidSize
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check humanfriendly==10.0
cat > finding.py <<'PY'
from humanfriendly import InvalidSize, parse_size


def said(text):
    try:
        return parse_size(text)
    except InvalidSize:
        return "InvalidSize"


print("; ".join(f"{text}: {said(text)}" for text in ("1GiB", "1Gi", "1.5Ti", "500m", "1e3")))
PY
seen=$(own/bin/python finding.py)
wanted='1GiB: 1073741824; 1Gi: 1000000000; 1.5Ti: 1500000000000; 500m: 500000000; 1e3: InvalidSize'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
