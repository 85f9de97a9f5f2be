#!/bin/sh
# dask 2026.8.0 (Python), utils.parse_bytes, which reads memory limits of workers: Kubernetes' quantities.
# Behaviour: 1Gi and 1G are read as Kubernetes reads them, so it seems to fit. But letters' case does not count: a quantity in
# thousandths, as API servers write 1.1Gi, is read as millions (10^9 times too much), and E is no unit.
# Output seen: 1Gi=1073741824 1G=1000000000 1181116006400m=1181116006400000000 1E=error
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check dask==2026.8.0
cat > finding.py <<'PY'
from dask.utils import parse_bytes


def read(text):
    try:
        return parse_bytes(text)
    except ValueError:
        return "error"


print(*(f"{text}={read(text)}" for text in ("1Gi", "1G", "1181116006400m", "1E")))
PY
seen=$(own/bin/python finding.py)
wanted='1Gi=1073741824 1G=1000000000 1181116006400m=1181116006400000000 1E=error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
