#!/bin/sh
# kubernetes 35.0.0 (Python), utils.quantity: numbers that come as floats or leave with a small suffix.
# Behaviour: parse_quantity(0.1), as a manifest's "cpu: 0.1" is read, is not parse_quantity("100m") but a little more, so it does
# not fit into what is exactly enough; format_quantity divides by a float and writes 1.5 with the suffix m in 28 digits.
# Output seen: equal: False; fits: False; 1.5 in m: 1499.999999999999968774977432m
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==35.0.0
cat > finding.py <<'PY'
from decimal import Decimal

from kubernetes.utils.quantity import format_quantity, parse_quantity

wanted, free = parse_quantity(0.1), parse_quantity("100m")
print(f"equal: {wanted == free}; fits: {wanted <= free}; 1.5 in m: {format_quantity(Decimal('1.5'), 'm')}")
PY
seen=$(own/bin/python finding.py)
wanted='equal: False; fits: False; 1.5 in m: 1499.999999999999968774977432m'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
