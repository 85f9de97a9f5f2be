#!/bin/sh
# htcondor 25.14.1 (Python), module classad2: texts that differ in the case of their letters.
# Behaviour: for == and member() they are equal, so Requirements for "a100" hold on a machine with "A100"; for =?=,
# stringListMember() and regexp() they are not, so the same name is in a list and not in a text of names. (stringListMember is an
# error, which is the number 1, until htcondor2 is imported as well.) One would have guessed one rule, as for Kubernetes' labels
# (letters count); it matters to who takes constraints from the one to the other.
# Output seen: ==: True; member: True; =?=: False; stringListMember: False; regexp: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check htcondor==25.14.1
cat > finding.py <<'PY'
import classad2
import htcondor2  # brings stringListMember

tests = {
    "==": '"A100" == "a100"',
    "member": 'member("a100", {"A100", "H100"})',
    "=?=": '"A100" =?= "a100"',
    "stringListMember": 'stringListMember("a100", "A100, H100")',
    "regexp": 'regexp("a100", "A100")',
}
print("; ".join(f"{name}: {classad2.ExprTree(text).eval()}" for name, text in tests.items()))
PY
seen=$(own/bin/python finding.py)
wanted='==: True; member: True; =?=: False; stringListMember: False; regexp: False'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
