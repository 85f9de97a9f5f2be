"""What each program does with a job of the manager: `programs.py NAME DEED JOB`, where nothing of ours is installed.

It prints one line of JSON: the outcome, or the log, as the program has it. Deeds: `wait`, until the job has ended, and
`logs`, of a job that runs.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from typing import Any

LIMIT = 40
"""Seconds after which a program that still waits counts as one that waits without end."""


def kubectl(deed: str, job: str) -> str:
    """The command line, as it is."""
    kubectl_path = shutil.which("kubectl")
    assert kubectl_path, "there is no kubectl"
    if deed == "logs":
        ran = subprocess.run(
            [kubectl_path, "logs", f"job/{job}"], capture_output=True, text=True, check=False, timeout=LIMIT
        )
        return ran.stdout or f"exit {ran.returncode}: {ran.stderr.strip()}"
    waits = [
        subprocess.Popen([kubectl_path, "wait", f"job/{job}", f"--for=condition={end}", f"--timeout={LIMIT}s"])
        for end in ("complete", "failed")
    ]
    try:
        while all(wait.poll() is None for wait in waits):
            time.sleep(0.1)
        return next(end for end, wait in zip(("Complete", "Failed"), waits, strict=True) if wait.poll() == 0)
    finally:
        for wait in waits:
            wait.kill()


def kr8s(deed: str, job: str) -> str:
    """https://docs.kr8s.org."""
    from kr8s.objects import Job, Pod

    live = Job.get(job, namespace="default")
    if deed == "logs":
        pods = list(Pod.list(namespace="default", label_selector={"job-name": job}))
        return "\n".join(line for pod in pods for line in pod.logs()) if pods else "no pods"
    live.wait(["condition=Complete", "condition=Failed"], mode="any", timeout=LIMIT)
    live.refresh()
    return next(
        str(condition.type)
        for condition in live.status.conditions
        if condition.status == "True" and condition.type in ENDS
    )


def kubernetes(deed: str, job: str) -> str:
    """The official client: what its examples do."""
    from kubernetes import client, config, watch

    config.load_kube_config()
    if deed == "logs":
        pods = client.CoreV1Api().list_namespaced_pod("default", label_selector=f"job-name={job}").items
        logs = [client.CoreV1Api().read_namespaced_pod_log(pod.metadata.name, "default") for pod in pods]
        return "\n".join(logs) if pods else "no pods"
    selected = f"metadata.name={job}"
    events = watch.Watch().stream(
        client.BatchV1Api().list_namespaced_job, "default", field_selector=selected, timeout_seconds=LIMIT
    )
    for event in events:
        for condition in event["object"].status.conditions or ():
            if condition.status == "True" and condition.type in ENDS:
                return str(condition.type)
    return "waits without end"


def dagster(deed: str, job: str) -> str:
    """dagster-k8s: the waiting of `execute_k8s_job`, which looks for pods first."""
    from dagster_k8s.client import DagsterKubernetesClient
    from kubernetes import config

    config.load_kube_config()
    client = DagsterKubernetesClient.production_client()
    pods = client.wait_for_job_to_have_pods(job, "default", wait_timeout=LIMIT / 4, wait_time_between_attempts=1)
    if deed == "logs":
        return "\n".join(client.retrieve_pod_logs(pod.metadata.name, "default") for pod in pods)
    client.wait_for_job_success(job, "default", wait_timeout=LIMIT, wait_time_between_attempts=1)
    return "Complete"


def prefect(deed: str, job: str) -> str:
    """prefect-kubernetes, the block `KubernetesJob`: its own waiting, which captures logs of pods."""
    import asyncio

    from prefect_kubernetes import KubernetesCredentials, KubernetesJob
    from prefect_kubernetes.credentials import KubernetesClusterConfig
    from prefect_kubernetes.jobs import KubernetesJobRun

    if deed == "logs":
        return "not asked for"
    config = KubernetesClusterConfig.from_file(os.environ["KUBECONFIG"])
    body = {"metadata": {"name": job}}
    block = KubernetesJob(
        v1_job=body,
        credentials=KubernetesCredentials(cluster_config=config),
        delete_after_completion=False,
        interval_seconds=1,
    )
    run = KubernetesJobRun(block, body)
    asyncio.run(asyncio.wait_for(run.await_for_completion(print), LIMIT))
    return "Complete" if run.pod_logs else "Complete, no logs"


def airflow(deed: str, job: str) -> str:
    """KubernetesJobOperator, as it is."""
    from airflow.providers.cncf.kubernetes.operators.job import KubernetesJobOperator

    return _operated(KubernetesJobOperator, deed, job, get_logs=True)


def airflow_queued(deed: str, job: str) -> str:
    """The same with the subclass of docs/clients.md."""
    import re
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    made: dict[str, Any] = {}
    exec(next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "airflow" in code), made)
    return _operated(made["QueuedJobOperator"], deed, job, get_logs=False)


def _operated(operator: type[Any], deed: str, job: str, *, get_logs: bool) -> str:
    """A task of its own with one more Job of the same template: operators create what they wait for."""
    from kubernetes import client, config

    if deed == "logs":
        return "not asked for"
    config.load_kube_config()
    jobs = client.BatchV1Api()
    template = jobs.read_namespaced_job(job, "default")
    jobs.delete_namespaced_job(job, "default", propagation_policy="Background")
    template.spec.selector = template.spec.manual_selector = None
    labels = template.spec.template.metadata.labels or {}
    template.spec.template.metadata.labels = {
        k: v for k, v in labels.items() if "job-name" not in k and "-uid" not in k
    }
    template.metadata = client.V1ObjectMeta(
        name=f"{job}-task", labels=template.metadata.labels, annotations=template.metadata.annotations
    )
    task = operator(
        task_id="task",
        full_job_spec=template,
        namespace="default",
        wait_until_job_complete=True,
        get_logs=get_logs,
        kubernetes_conn_id=None,
        config_file=os.environ["KUBECONFIG"],
        job_poll_interval=1,
        parallelism=1,
        random_name_suffix=False,
    )
    task.execute({"ti": _TaskInstance(), "dag": None, "dag_run": _TaskInstance(), "run_id": "run", "task": task})
    return "Complete"


class _TaskInstance:
    """What an operator asks of its context, of the run of its DAG, too."""

    dag_id, task_id, run_id, try_number, map_index, logical_date = "dag", "task", "run", 1, -1, None

    def xcom_push(self, **kwargs: object) -> None:
        """Nobody reads it."""


def dagster_job_alone(deed: str, job: str) -> str:
    """dagster-k8s with `restart_policy: OnFailure`, for which it does not look for pods."""
    from dagster_k8s.client import DagsterKubernetesClient
    from kubernetes import config

    if deed == "logs":
        return "not asked for"
    config.load_kube_config()
    client = DagsterKubernetesClient.production_client()
    client.wait_for_job_success(job, "default", wait_timeout=LIMIT, wait_time_between_attempts=1)
    return "Complete"


def kubeflow(deed: str, job: str) -> str:
    """Kubeflow's SDK, of TrainJobs: `train()` cannot say `managedBy`, so somebody else has created them."""
    from kubeflow.trainer import TrainerClient

    client = TrainerClient()
    if deed == "logs":
        return (
            "\n".join(client.get_job_logs(job))
            or f"nothing; steps: {[step.name for step in client.get_job(job).steps]}"
        )
    return str(client.wait_for_job_status(job, timeout=LIMIT, polling_interval=1).status)


def kubeflow_train(deed: str, job: str) -> str:
    """The same SDK's own `train()`, with the label of the queue."""
    from kubeflow.trainer import CustomTrainerContainer, TrainerClient
    from kubeflow.trainer.options import Labels

    if deed == "logs":
        return "not asked for"
    client = TrainerClient()
    trainer = CustomTrainerContainer(image="train:1", num_nodes=1, resources_per_node={"cpu": 1})
    made = client.train(runtime=RUNTIME, trainer=trainer, options=[Labels({"kueue.x-k8s.io/queue-name": "user-queue"})])
    return str(client.wait_for_job_status(made, timeout=LIMIT // 4, polling_interval=1).status)


def kubeflow_training(deed: str, job: str) -> str:
    """kubeflow-training, of a PyTorchJob that it has created as `create_job` does."""
    from kubeflow.training import TrainingClient

    client = TrainingClient(job_kind="PyTorchJob")
    if deed == "logs":
        logs, _ = client.get_job_logs(job)
        return "\n".join(logs.values()) or "nothing"
    ended = client.wait_for_job_conditions(job, wait_timeout=LIMIT, polling_interval=1)
    return str(ended.status.conditions[-1].type)


RUNTIME = "torch-distributed"
ENDS = ("Complete", "Failed")
PROGRAMS = {
    "kubectl": kubectl,
    "kr8s": kr8s,
    "kubernetes": kubernetes,
    "dagster-k8s": dagster,
    "dagster-k8s, OnFailure": dagster_job_alone,
    "prefect-kubernetes": prefect,
    "apache-airflow": airflow,
    "apache-airflow, with the subclass": airflow_queued,
    "kubeflow": kubeflow,
    "kubeflow, train()": kubeflow_train,
    "kubeflow-training": kubeflow_training,
}


def main() -> None:
    """Run a program; what it raises is its answer, too."""
    name, deed, job = sys.argv[1:]
    logging.disable()
    begin = time.monotonic()
    try:
        said = PROGRAMS[name](deed, job)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition(" with status: ")[0]
    sys.stdout.write(json.dumps({"said": said, "seconds": round(time.monotonic() - begin, 1)}) + "\n")


if __name__ == "__main__":
    main()
