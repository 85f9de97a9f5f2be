#!/bin/sh
# common-expression-language 0.10.0 (Python, import cel): a loop over the keys of a map.
# Behaviour: the order is another one at each evaluation, in one process and for one object, so a list that is made of a map
# differs from itself. (Python's own dicts keep the order in which they were made.)
# Output seen: 20 evaluations, more than one order
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check common-expression-language==0.10.0
cat > finding.py <<'PY'
import cel

labels = dict.fromkeys("abcdefgh", "x")
orders = {tuple(cel.evaluate("labels.map(k, k)", {"labels": labels})) for _ in range(20)}
print("20 evaluations,", "more than one order" if len(orders) > 1 else "one order")
PY
seen=$(own/bin/python finding.py)
wanted='20 evaluations, more than one order'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
