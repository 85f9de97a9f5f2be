#!/bin/sh
# cattrs 26.2.1 (Python), a Converter as it is: settings whose types do not fit.
# Behaviour: it calls bool, int and str with what it is given: "false" is True, 2.9 is 2, null is the text None and a text is a
# list of its letters, without an error. One would have guessed an error, as its validation of missing fields gives one, or false
# for "false"; it matters to who reads settings from Helm, where many a value is a text.
# Output seen: on=True count=2 name=None names=a,b
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check cattrs==26.2.1
cat > finding.py <<'PY'
import attrs
import cattrs


@attrs.frozen
class Settings:
    on: bool
    count: int
    name: str
    names: list[str]


read = cattrs.structure({"on": "false", "count": 2.9, "name": None, "names": "ab"}, Settings)
print(f"on={read.on} count={read.count} name={read.name} names={','.join(read.names)}")
PY
seen=$(own/bin/python finding.py)
wanted='on=True count=2 name=None names=a,b'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
