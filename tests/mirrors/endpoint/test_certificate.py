"""The endpoint's certificate: brought, signed, or our own."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import attrs
import pytest
from cryptography import x509

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import Conflict, NotFound
from multikueue.testing import NOW
from multikueue.webhook.certificates import general_name, make_authority, make_certificate, make_key, pem
from multikueue.webhook.errors import UnusableError
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

    def replica(self, signer: str = "", *, brought: bool = False, tls: KubeletTls | None = None) -> MirrorCertificate:
        client: Any = self
        return MirrorCertificate(client, KEY, ADDRESS, tls or KubeletTls(), lambda: self.now, signer, brought)

    def approve(self, names: Sequence[x509.GeneralName] = (), key: Any = None) -> x509.CertificateSigningRequest:
        """Sign the one request, as kube-controller-manager does once it is approved; with other names, another key."""
        (asked,) = self.requests.values()
        request = x509.load_pem_x509_csr(base64.b64decode(asked["spec"]["request"]))
        made = make_certificate(
            make_authority("ca", self.now, timedelta(days=3650)), ADDRESS, self.now, timedelta(days=90)
        )
        named = x509.Extension(x509.SubjectAlternativeName.oid, False, x509.SubjectAlternativeName(names))
        builder = x509.CertificateBuilder(
            made.certificate.issuer,
            request.subject,
            key or request.public_key(),
            1,
            made.certificate.not_valid_before_utc,
            made.certificate.not_valid_after_utc,
            [named] if names else list(request.extensions),
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
    assert [str(name.value) for name in names] == [ADDRESS]
    tls = KubeletTls()
    tls.trust(pem(make_authority("callers", NOW, timedelta(days=1)).certificate))
    assert tls.why_not_ready is not None
    await cluster.replica(SIGNER, tls=tls).keep()
    assert tls.why_not_ready is None
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


async def asked_for() -> Cluster:
    cluster = Cluster()
    with pytest.raises(WaitingError):
        await cluster.replica(SIGNER).keep()
    return cluster


async def test_one_that_is_signed_for_another_address_is_told_and_no_new_one_is_asked_for_each_minute() -> None:
    cluster = await asked_for()
    cluster.approve([x509.DNSName("elsewhere")])
    for _ in range(3):
        with pytest.raises(UnusableError, match=rf"but not for {ADDRESS}\. .*kubectl delete csr"):
            await cluster.replica(SIGNER).keep()
    assert len(cluster.requests) == 1
    assert cluster.data.keys() == {"next.key"}


@pytest.mark.parametrize("key", ["", "no key"])
@pytest.mark.parametrize("certificate", ["", "no certificate"])
async def test_one_in_the_secret_that_is_damaged_is_asked_for_anew(certificate: str, key: str) -> None:
    cluster = await asked_for()
    cluster.approve()
    await cluster.replica(SIGNER).keep()
    texts = {"tls.crt": certificate or cluster.decoded("tls.crt"), "tls.key": key}
    cluster.data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    with pytest.raises(WaitingError):
        await cluster.replica(SIGNER).keep()
    cluster.requests.pop(next(iter(cluster.requests)))
    cluster.approve()
    await cluster.replica(SIGNER).keep()
    assert cluster.decoded("tls.crt") not in texts.values()


async def test_names_that_a_signer_adds_do_no_harm() -> None:
    cluster = await asked_for()
    cluster.approve([x509.DNSName("also"), general_name(ADDRESS)])
    for _ in range(3):
        await cluster.replica(SIGNER).keep()
    assert len(cluster.requests) == 1
    assert cluster.data.keys() == {"tls.crt", "tls.key"}


async def test_one_for_another_key_or_that_is_no_text_does_not_replace_what_is_served() -> None:
    cluster = await asked_for()
    cluster.approve(key=make_key().public_key())
    with pytest.raises(UnusableError):
        await cluster.replica(SIGNER).keep()
    (asked,) = cluster.requests.values()
    asked["status"] = {"certificate": base64.b64encode(b"\xff").decode()}
    with pytest.raises(UnusableError, match="is not text"):
        await cluster.replica(SIGNER).keep()
    assert cluster.data.keys() == {"next.key"}


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
    first, second = cluster.replica(), cluster.replica()
    await first.keep()
    await second.keep()
    assert first._served == second._served == cluster.decoded("tls.crt")
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
