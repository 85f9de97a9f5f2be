"""The files of `multikueue demo -f`: what is refused, and which place the error names."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import AVAILABLE, BATCH_JOB, SandboxKind
from multikueued.demo.files import load_files
from multikueued.demo.jobs import ROOM, room_for
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
        load_files(files)
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
        (
            JOB.replace(LABELS, "labels: [a]"),
            '1.yaml, document 1: Job in version "v1" cannot be handled as a Job: json: cannot unmarshal array into Go '
            "struct field metadata.labels of type map",
        ),
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
            f"{JOB}---\n{JOB.replace('name: mine', 'name: mine, namespace: other')}",
            'Job "mine" is in two namespaces: rename one of them',
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
    (job,) = load_files([file]).jobs

    assert job.objects[0]["metadata"]["annotations"] == {"since": "2026-01-31", "at": "22:22", "5": "five"}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_a_field_without_a_value_is_not_there(tmp_path: Path, kind: str) -> None:
    """People take lines out and leave `annotations:`; such a set had no pods that can be read."""
    pod = "{metadata: {labels: {a: b}, annotations: }, spec: {nodeSelector: , containers: [{name: c, image: i}]}}"
    head = f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: mine, annotations: , {LABELS}}}\nstatus:\n"
    file = tmp_path / "job.yaml"
    file.write_text(f"{head}spec: {{serviceName: x, selector: {{matchLabels: {{a: b}}}}, template: {pod}}}\n")
    (job,) = load_files([file]).jobs

    assert "nodeSelector" not in job.objects[0]["spec"]["template"]["spec"]


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.name)
def test_a_sample_of_every_kind_can_be_submitted(tmp_path: Path, kind: SandboxKind) -> None:
    """They are what `--keep` leaves to try."""
    file = tmp_path / "job.yaml"
    file.write_text(sample(kind))
    (job,) = load_files([file]).jobs

    assert job.cpus > 0


def test_each_job_with_a_generated_name_is_one(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(sample(BATCH_JOB))
    names = [job.name for job in load_files([file, file]).jobs]

    assert len(set(names)) == 2
    assert all(name.startswith("hello-") for name in names)


BESIDE = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: code, namespace: team}
data: {main.py: print(1)}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: abc}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: v1
kind: Service
metadata: {name: head}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: runner}
rules: []
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: own, namespace: team}
spec: {clusterQueue: theirs}
"""
PASSED_OVER = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: theirs}
spec: {}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: ray}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: redis}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
"""


def test_what_stands_beside_a_job_is_made_on_the_manager_or_passed_over_with_a_line(tmp_path: Path) -> None:
    """People have in one file what belongs together. A server in memory has taken each of these objects."""
    file = tmp_path / "all.yaml"
    job = JOB.replace("name: mine", "name: mine, namespace: team").replace("user-queue", "own")
    file.write_text(f"{job}---{BESIDE}{PASSED_OVER}")
    loaded = load_files([file])

    assert [obj["kind"] for obj in loaded.beside] == [
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Service",
        "PersistentVolumeClaim",
        "ResourceClaimTemplate",
        "Role",
    ]
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in loaded.everywhere] == [
        ("Namespace", "team"),
        ("LocalQueue", "own"),
    ]
    assert loaded.everywhere[1]["spec"] == {"clusterQueue": "cluster-queue"}, "the one that the demo has"
    passed_over = ("v1beta2 ClusterQueue", "v1 PodMonitor", "v1 Deployment", "v1 PersistentVolume")
    assert len(loaded.notes) == len(passed_over)
    for note, named in zip(loaded.notes, passed_over, strict=True):
        assert "passed over: " in note
        assert named in note
    assert [(job.name, job.objects[0]["metadata"]["namespace"]) for job in loaded.jobs] == [("mine", "team")]


def test_a_job_gets_what_its_controller_asks_of_suspended_ones(tmp_path: Path) -> None:
    """KubeRay holds a RayJob for its `shutdownAfterJobFinishes`, which most samples do without."""
    file = tmp_path / "job.yaml"
    head = "template: {spec: {containers: [{name: head, image: ray}]}}"
    ray = f"rayClusterSpec: {{headGroupSpec: {{rayStartParams: {{}}, {head}}}}}"
    metadata = f"{{name: tune, {LABELS}}}"
    file.write_text(f"{{apiVersion: ray.io/v1, kind: RayJob, metadata: {metadata}, spec: {{entrypoint: x, {ray}}}}}")
    loaded = load_files([file])
    (job,) = loaded.jobs

    assert job.objects[0]["spec"]["shutdownAfterJobFinishes"] is True
    (note,) = loaded.notes
    assert "spec.shutdownAfterJobFinishes: true" in note


def test_a_job_without_a_queue_gets_the_one_of_its_namespace(tmp_path: Path) -> None:
    """The samples of KubeRay, JobSet and the training projects name none."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace(f", {LABELS}", ", namespace: kubeflow"))
    loaded = load_files([file])
    (job,) = loaded.jobs

    assert job.objects[0]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-queue"}
    assert [obj["kind"] for obj in loaded.everywhere] == ["Namespace", "LocalQueue"]
    assert loaded.notes == (
        f'{file}, document 1: Job "mine" names no queue: it is labelled kueue.x-k8s.io/queue-name: user-queue',
    )


def test_a_queue_that_no_file_has_is_made(tmp_path: Path) -> None:
    """Samples keep the queues in another file, which administrators apply."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("user-queue", "team-queue"))
    loaded = load_files([file])
    (job,) = loaded.jobs

    assert job.objects[0]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team-queue"}
    (queue,) = loaded.everywhere
    assert (queue["kind"], queue["metadata"]["name"]) == ("LocalQueue", "team-queue")
    assert loaded.notes == (
        f'{file}, document 1: Job "mine" names the queue "team-queue", which no file has: it is made',
    )


@pytest.mark.parametrize("given", ["", "before", "behind"])
def test_the_priority_class_of_a_job_is_there(tmp_path: Path, given: str) -> None:
    """Kueue makes no Workload without it, and the job waits for ever."""
    group = "kueue.x-k8s.io"
    made = f"apiVersion: {group}/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {{name: high}}\nvalue: 7\n"
    job = JOB.replace("user-queue}", f"user-queue, {group}/priority-class: high}}")
    text = {"": job, "before": f"{made}---\n{job}", "behind": f"{job}---\n{made}"}[given]
    (file := tmp_path / "jobs.yaml").write_text(text)
    loaded = load_files([file])
    (known,) = loaded.beside
    assert (known["kind"], known["metadata"]["name"], known["value"]) == (
        "WorkloadPriorityClass",
        "high",
        7 if given else 0,
    )
    note = f'{file}, document 1: Job "mine" names the priority class "high", which no file has: it is made'
    assert list(loaded.notes) == [note] * (not given)


@pytest.mark.parametrize("text", ["a: 1", "apiVersion: 1\nkind: [Job]", "kind: Job"])
def test_what_has_no_kind_is_no_object(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, f"{JOB}---\n{text}") == "1.yaml, document 2: is not a Kubernetes object"


def test_a_queue_that_cannot_be_made_is_told_with_its_place(tmp_path: Path) -> None:
    message = refusal(tmp_path, JOB.replace("user-queue", "Team_Queue"))

    assert message.startswith('1.yaml, document 1: LocalQueue.kueue.x-k8s.io "Team_Queue" is invalid')


def test_workers_have_as_much_as_the_largest_job_asks_for(tmp_path: Path) -> None:
    """Samples ask for machines that few have. What is smaller stays as it is; one resource raises no other."""
    resources = "requests: {cpu: 500m, memory: 20Gi}, limits: {example.com/gpu: 2}"
    large = f"{JOBSET}spec: {{replicatedJobs: [{{replicas: 2, template: {{spec: {{parallelism: 3, template: {{spec: "
    large += f"{{containers: [{{name: c, image: i, resources: {{{resources}}}}}]}}}}}}}}}}]}}\n"
    unreadable = large.replace("mine", "unreadable").replace("20Gi", "lots")
    file = tmp_path / "job.yaml"
    file.write_text(f"{JOB}---\n{large}---\n{unreadable}")

    assert room_for(load_files([file]).jobs) == {"cpu": "4", "memory": "120Gi", "example.com/gpu": "12"}
    assert room_for([]) == ROOM


def test_what_several_files_hold_belongs_together_whichever_comes_first(tmp_path: Path) -> None:
    """As samples have it: queues, classes and a program in files of their own."""
    group, version = "kueue.x-k8s.io", "kueue.x-k8s.io/v1beta2"
    labelled = f"name: mine, namespace: team, labels: {{{group}/queue-name: own, {group}/priority-class: high}}"
    texts = {
        "a-job.yaml": JOB.replace(f"name: mine, {LABELS}", labelled),
        "b-queue.yaml": f"{{apiVersion: {version}, kind: LocalQueue, metadata: {{name: own, namespace: team}}}}",
        "c-class.yml": f"{{apiVersion: {version}, kind: WorkloadPriorityClass, metadata: {{name: high}}, value: 7}}",
        "d-code.json": '{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap",\n\t"metadata": {"name": "code"}\n}',
        "README.md": "# no YAML: {",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = [tmp_path / name for name in texts if not name.endswith(".md")]
    for given in (files, files[::-1], [tmp_path]):
        loaded = load_files(given)
        assert [job.name for job in loaded.jobs] == ["mine"]
        assert sorted(obj["kind"] for obj in loaded.beside) == ["ConfigMap", "WorkloadPriorityClass"]
        assert loaded.notes == (), "nothing had to be made up"


def test_files_without_any_job_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: Secret, metadata: {name: x}}")
    (tmp_path / "b.yaml").write_text("")
    with pytest.raises(SettingsError, match=r"a\.yaml, .*b\.yaml: holds no job"):
        load_files([tmp_path])
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match="empty: holds no job"):
        load_files([empty])
