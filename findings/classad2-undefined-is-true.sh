#!/bin/sh
# htcondor 25.14.1 (Python), module classad2: attributes that are undefined.
# Behaviour: what an expression gives for them, Value.Undefined, is the number 2: it is true, it is larger than 1, and it can be
# added, so an "if" or a comparison around an undefined Requirements takes it for fulfilled. get() with a default returns it, too,
# where the attribute is there and set to None. An error is the number 1.
# Output seen: true: True; > 1: True; + 1: 3; get: Undefined; error: 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check htcondor==25.14.1
cat > finding.py <<'PY'
import classad2

job = classad2.ClassAd({"Requirements": classad2.ExprTree("Memory > 1024"), "RequestGpus": None})
value = job.eval("Requirements")
error = classad2.ExprTree("1 / 0").eval()
print(f"true: {bool(value)}; > 1: {value > 1}; + 1: {value + 1}; get: {job.get('RequestGpus', 0).name}; error: {error + 0}")
PY
seen=$(own/bin/python finding.py)
wanted='true: True; > 1: True; + 1: 3; get: Undefined; error: 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
