"""The files of `multikueue demo -f`: what is refused, and which place the error names."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import AVAILABLE, BATCH_JOB, SandboxKind
from multikueued.demo.jobs import load_jobs
from multikueued.demo.kept_clusters import sample

LABELS = "labels: {kueue.x-k8s.io/queue-name: user-queue}"
HEAD = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: mine, {LABELS}}}\n"
JOB = f"{HEAD}spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}\n"
JOBSET = f"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: mine, {LABELS}}}\n"
POD = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: mine, {LABELS}}}\n"


def refusal(tmp_path: Path, *texts: str) -> str:
    """The error for files that are refused, without their folder."""
    files = [tmp_path / f"{number}.yaml" for number in range(1, len(texts) + 1)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_jobs(files)
    return str(caught.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: .nan", '1.yaml: not valid YAML in line 1, column 4: ".nan" is no number that JSON has'),
        ("{~: a}", "1.yaml: not valid YAML in line 1, column 2: this cannot be a key: put it in quotes"),
        ("a: !!int abc", '1.yaml: not valid YAML in line 1, column 4: "abc" is no int'),
        ("[" * 3000, "1.yaml: not valid YAML in line 1, column 100: more than 100 levels of nesting"),
        ("&a [*a]", "1.yaml: not valid YAML in line 1, column 5: an alias stands in what it repeats"),
        ("a: !!binary /w==", "1.yaml: not valid YAML in line 1, column 4: this is no base64 of a text"),
        ("kind: List\nitems: 3", "1.yaml, document 1: items is not a list"),
        ("kind: List\nitems: [3]", "1.yaml, document 1, item 1: is not a Kubernetes object"),
        (JOB.replace(LABELS, "labels: [a]"), '1.yaml, document 1: Job "mine" names no queue'),
        (
            JOB.replace(LABELS, f"{LABELS}, annotations: [a]"),
            '1.yaml, document 1: Job in version "v1" cannot be handled as a Job: json: cannot unmarshal array into Go '
            "struct field metadata.annotations of type map",
        ),
        (
            f"{HEAD}spec: {{template: 5}}",
            '1.yaml, document 1: Job in version "v1" cannot be handled as a Job: json: cannot unmarshal number into Go '
            "struct field spec.template of type map",
        ),
        (f"{HEAD}spec: {{template: {{spec: {{}}}}}}", '1.yaml, document 1: Job.batch "mine" is invalid'),
        (f"{POD}spec: {{containers: 5}}", '1.yaml, document 1: Pod in version "v1" cannot be handled as a Pod'),
        (
            f"{JOBSET}spec: {{replicatedJobs: 5}}",
            '1.yaml, document 1: JobSet "mine" has no pods that can be read',
        ),
        (
            f"{JOBSET}spec: {{replicatedJobs: [{{template: {{spec: {{template: {{spec: {{containers: [5]}}}}}}}}}}]}}",
            '1.yaml, document 1: JobSet "mine" has no pods that can be read',
        ),
        (f"{JOBSET}spec: {{replicatedJobs: []}}", '1.yaml, document 1: JobSet "mine" has no pods'),
        (
            JOB.replace("name: mine", "name: mine, namespace: other"),
            '1.yaml, document 1: Job "mine" is in namespace "other": only default has a queue here',
        ),
        (f"{JOB}---\n---\n{JOB}", '1.yaml, document 3: jobs.batch "mine" already exists'),
    ],
)
def test_what_the_clusters_would_refuse_is_reported_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    """Before anything is started."""
    message = refusal(tmp_path, text)

    assert message.startswith(told)
    assert "\n" not in message


def test_a_job_in_two_files_is_refused_at_the_second(tmp_path: Path) -> None:
    assert refusal(tmp_path, JOB, JOB) == '2.yaml, document 1: jobs.batch "mine" already exists'


def test_values_that_are_no_json_are_taken_as_kubectl_takes_them(tmp_path: Path) -> None:
    """A date is a text, and so is the number that names a field."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace(LABELS, f"{LABELS}, annotations: {{since: 2026-01-31, at: 22:22, 5: five}}"))
    (job,) = load_jobs([file])

    assert job.objects[0]["metadata"]["annotations"] == {"since": "2026-01-31", "at": "22:22", "5": "five"}


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.name)
def test_a_sample_of_every_kind_can_be_submitted(tmp_path: Path, kind: SandboxKind) -> None:
    """They are what `--keep` leaves to try."""
    file = tmp_path / "job.yaml"
    file.write_text(sample(kind))
    (job,) = load_jobs([file])

    assert job.cpus > 0


def test_each_job_with_a_generated_name_is_one(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(sample(BATCH_JOB))
    names = [job.name for job in load_jobs([file, file])]

    assert len(set(names)) == 2
    assert all(name.startswith("hello-") for name in names)
