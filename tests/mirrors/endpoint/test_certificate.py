"""The endpoint's certificate: brought, signed, or our own."""

from __future__ import annotations

import base64
import ssl
from datetime import timedelta
from typing import Any, Final

import attrs
import pytest
from cryptography import x509

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import Conflict, NotFound
from multikueue.testing import NOW
from multikueue.webhook.certificates import UnusableError, make_authority, make_certificate, pem
from multikueued.mirrors.endpoint.callers import KubeletTls
from multikueued.mirrors.endpoint.certificate import MirrorCertificate, WaitingError

KEY: Final = ObjectKey("ns", "tls")
ADDRESS: Final = "10.0.0.7"
SIGNER: Final = "kubernetes.io/kubelet-serving"


@attrs.define(eq=False)
class Cluster:
    """Has the Secret, and requests for certificates."""

    data: dict[str, str] = attrs.field(factory=dict)
    requests: dict[str, Json] = attrs.field(factory=dict)
    version: int = 0
    now: Any = NOW

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        if resource is SECRET:
            metadata = {"namespace": "ns", "name": "tls", "resourceVersion": str(self.version)}
            return {"metadata": metadata, "data": dict(self.data)}
        if key.name not in self.requests:
            raise NotFound("not found")
        return self.requests[key.name]

    async def create(self, resource: Resource, obj: Json) -> Json:
        return self.requests.setdefault(obj["metadata"]["name"], obj)

    async def merge_patch(self, resource: Resource, key: ObjectKey, patch: Json) -> Json:
        if patch["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict("changed")
        self.version += 1
        self.data = {name: text for name, text in {**self.data, **patch["data"]}.items() if text is not None}
        return await self.get(SECRET, key)

    def replica(self, signer: str = "", *, brought: bool = False) -> MirrorCertificate:
        return MirrorCertificate(self, KEY, ADDRESS, signer, brought, KubeletTls(), lambda: self.now)  # type: ignore[arg-type]

    def approve(self) -> x509.CertificateSigningRequest:
        """Sign the one request, as kube-controller-manager does once it is approved."""
        (asked,) = self.requests.values()
        request = x509.load_pem_x509_csr(base64.b64decode(asked["spec"]["request"]))
        made = make_certificate(
            make_authority("ca", self.now, timedelta(days=3650)), ADDRESS, self.now, timedelta(days=90)
        )
        builder = x509.CertificateBuilder(
            made.certificate.issuer,
            request.subject,
            request.public_key(),
            1,
            made.certificate.not_valid_before_utc,
            made.certificate.not_valid_after_utc,
            list(request.extensions),
        )
        signed = builder.sign(made.key, made.certificate.signature_hash_algorithm)  # type: ignore[arg-type]
        asked["status"] = {"certificate": base64.b64encode(pem(signed).encode()).decode()}
        return request

    def decoded(self, field: str) -> str:
        return base64.b64decode(self.data[field]).decode()


async def test_what_is_asked_for_is_what_kubelets_ask_for_and_waits_for_an_administrator() -> None:
    cluster = Cluster()
    with pytest.raises(WaitingError, match="kubectl certificate approve multikueue-mirrors-"):
        await cluster.replica(SIGNER).keep()
    with pytest.raises(WaitingError):
        await cluster.replica(SIGNER).keep()  # a restart, or another replica, asks for nothing new
    (asked,) = cluster.requests.values()
    assert (asked["spec"]["signerName"], asked["spec"]["usages"]) == (SIGNER, ["digital signature", "server auth"])
    request = cluster.approve()
    assert request.subject.rfc4514_string() == "CN=system:node:multikueue-mirrors,O=system:nodes"
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in names] == [ADDRESS]
    replica = cluster.replica(SIGNER)
    replica.tls.trust(pem(make_authority("callers", NOW, timedelta(days=1)).certificate))
    assert replica.tls.why_not_ready is not None
    await replica.keep()
    assert replica.tls.why_not_ready is None
    assert cluster.data.keys() == {"tls.crt", "tls.key"}
    await cluster.replica(SIGNER).keep()
    assert len(cluster.requests) == 1


async def test_it_is_asked_for_again_while_a_third_is_left_and_served_meanwhile() -> None:
    cluster = Cluster()
    with pytest.raises(WaitingError):
        await cluster.replica(SIGNER).keep()
    cluster.approve()
    await cluster.replica(SIGNER).keep()
    before = cluster.decoded("tls.crt")
    cluster.requests.clear()
    cluster.now = NOW + timedelta(days=70)
    replica = cluster.replica(SIGNER)
    with pytest.raises(WaitingError):
        await replica.keep()
    assert replica._served == before
    cluster.approve()
    await replica.keep()
    assert replica._served == cluster.decoded("tls.crt") != before


async def test_one_that_is_denied_is_told_with_what_to_do() -> None:
    cluster = Cluster()
    with pytest.raises(WaitingError):
        await cluster.replica(SIGNER).keep()
    (asked,) = cluster.requests.values()
    asked["status"] = {"conditions": [{"type": "Denied", "message": "not yours"}]}
    with pytest.raises(UnusableError, match=r"is Denied: not yours.*kubectl delete csr"):
        await cluster.replica(SIGNER).keep()


async def test_one_that_somebody_brings_is_served_and_never_written() -> None:
    cluster = Cluster()
    with pytest.raises(UnusableError, match=r"Secret ns/tls has no tls.crt and tls.key"):
        await cluster.replica(brought=True).keep()
    made = make_certificate(make_authority("ca", NOW, timedelta(days=9)), ADDRESS, NOW, timedelta(days=9))
    texts = {"tls.crt": pem(made.certificate), "tls.key": made.key_pem}
    cluster.data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    replica = cluster.replica(brought=True)
    await replica.keep()
    assert (replica._served, cluster.version) == (texts["tls.crt"], 0)


async def test_our_own_is_shared_by_the_replicas() -> None:
    cluster = Cluster()
    one, other = cluster.replica(), cluster.replica()
    await one.keep()
    await other.keep()
    assert one._served == other._served == cluster.decoded("tls.crt")
    assert cluster.version == 1


def test_without_authorities_of_callers_nobody_is_served() -> None:
    tls = KubeletTls()
    for data in ({}, {"client-ca-file": ""}, {"requestheader-client-ca-file": "x"}):
        with pytest.raises(UnusableError, match="has no client-ca-file"):
            tls.take({"data": data})
    assert not tls.ready.is_set()
    authority = make_authority("callers", NOW, timedelta(days=1)).certificate
    tls.take({"data": {"client-ca-file": pem(authority)}})
    assert tls.context.verify_mode == ssl.CERT_REQUIRED
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2
