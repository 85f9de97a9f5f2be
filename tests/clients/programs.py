"""What each program does with a job of the manager: `programs.py NAME DEED JOB`, where nothing of ours is installed.

It prints one line of JSON: the outcome, or the log, as the program has it. Deeds: `wait`, until the job has ended, and
`logs`, of a job that runs.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time

LIMIT = 40
"""Seconds after which a program that still waits counts as one that waits without end."""


def kubectl(deed: str, job: str) -> str:
    """The command line, as it is."""
    found = shutil.which("kubectl")
    assert found, "there is no kubectl"
    if deed == "logs":
        ran = subprocess.run([found, "logs", f"job/{job}"], capture_output=True, text=True, check=False, timeout=LIMIT)
        return ran.stdout or f"exit {ran.returncode}: {ran.stderr.strip()}"
    waits = [
        subprocess.Popen([found, "wait", f"job/{job}", f"--for=condition={end}", f"--timeout={LIMIT}s"])
        for end in ("complete", "failed")
    ]
    try:
        while all(one.poll() is None for one in waits):
            time.sleep(0.1)
        return next(end for end, one in zip(("Complete", "Failed"), waits, strict=True) if one.poll() == 0)
    finally:
        for one in waits:
            one.kill()


def kr8s(deed: str, job: str) -> str:
    """https://docs.kr8s.org."""
    from kr8s.objects import Job, Pod

    found = Job.get(job, namespace="default")
    if deed == "logs":
        pods = list(Pod.list(namespace="default", label_selector={"job-name": job}))
        return "\n".join(line for pod in pods for line in pod.logs()) if pods else "no pods"
    found.wait(["condition=Complete", "condition=Failed"], mode="any", timeout=LIMIT)
    found.refresh()
    return next(str(one.type) for one in found.status.conditions if one.status == "True" and one.type in ENDS)


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
        for one in event["object"].status.conditions or ():
            if one.status == "True" and one.type in ENDS:
                return str(one.type)
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


ENDS = ("Complete", "Failed")
PROGRAMS = {
    "kubectl": kubectl,
    "kr8s": kr8s,
    "kubernetes": kubernetes,
    "dagster-k8s": dagster,
    "dagster-k8s, OnFailure": dagster_job_alone,
}


def main() -> None:
    """Run one; what it raises is its answer, too."""
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
