#!/bin/sh
# lightkube 1.0.1 (Python), utils.quantity.parse_quantity: the suffixes of small quantities.
# Behaviour: n and u, in which the metrics API writes each usage of CPU, are "invalid", and so is 1E3, which is a quantity with
# an exponent; what is below a thousandth is rounded up to one.
# Output seen: 250m=0.250 1e3=1000.000 0.0001=0.001 250000n=error 250u=error 1E3=error
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check lightkube==1.0.1
cat > finding.py <<'PY'
from lightkube.utils.quantity import parse_quantity


def read(text):
    try:
        return str(parse_quantity(text))
    except ValueError:
        return "error"


print(*(f"{text}={read(text)}" for text in ("250m", "1e3", "0.0001", "250000n", "250u", "1E3")))
PY
seen=$(own/bin/python finding.py)
wanted='250m=0.250 1e3=1000.000 0.0001=0.001 250000n=error 250u=error 1E3=error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
