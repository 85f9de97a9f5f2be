#!/bin/sh
# PyYAML 6.0.3 (Python): which texts safe_dump writes without quotes, and how safe_load reads such words.
# Behaviour: it puts no quotes around "n", "08", "1e3" and "0o17", which other readers of YAML (1.1: n; 1.2: the others) take
# for a boolean and numbers. It reads back what it wrote, as 1e3 is a text to it (a float needs a dot) and 22:22 is 1342.
# Output seen: {a: n, b: 08, c: 1e3, d: 0o17} [False, '1e3', 1342, 1000.0]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check PyYAML==6.0.3
cat > finding.py <<'PY'
import yaml

written = yaml.safe_dump({"a": "n", "b": "08", "c": "1e3", "d": "0o17"}, default_flow_style=True).strip()
print(written, yaml.safe_load("[off, 1e3, 22:22, 1.0e+3]"))
PY
seen=$(own/bin/python finding.py)
wanted="{a: n, b: 08, c: 1e3, d: 0o17} [False, '1e3', 1342, 1000.0]"
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
