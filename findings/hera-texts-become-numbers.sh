#!/bin/sh
# hera 7.1.0 (Python), for Argo Workflows: a script whose parameter is annotated as str, and texts that look like something else.
# Behaviour: the script that it writes reads each parameter as JSON first and keeps the text only if that fails, whatever the
# annotation: the commit 12345678 is an int, 85e7 is 850000000.0, null is None and true is True; 007 and abc stay texts. One would
# have guessed that a parameter that is annotated as a text is one; a comparison or a path fails for few values, on the cluster
# only.
# Output seen: abc: str abc; 007: str 007; 12345678: int 12345678; 85e7: float 850000000.0; null: NoneType None; true: bool True
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check hera==7.1.0
cat > finding.py <<'PY'
from hera.workflows import Steps, Workflow, script


@script(image="python:3.12")
def report(commit: str):
    print(type(commit).__name__, commit)


with Workflow(generate_name="a-", entrypoint="steps") as workflow, Steps(name="steps"):
    report(arguments={"commit": "abc"})
templates = {template["name"]: template for template in workflow.to_dict()["spec"]["templates"]}
source = templates["report"]["script"]["source"]
for value in ("abc", "007", "12345678", "85e7", "null", "true"):
    print(f"{value}: ", end="")
    exec(source.replace("{{inputs.parameters.commit}}", value), {})  # as Argo Workflows puts it in
PY
seen=$(own/bin/python finding.py)
wanted='abc: str abc
007: str 007
12345678: int 12345678
85e7: float 850000000.0
null: NoneType None
true: bool True'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
