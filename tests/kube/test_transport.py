"""Which certificates of servers are trusted."""

from __future__ import annotations

import ssl

import pytest
import trustme

from multikueue.kube import ClusterConfig
from multikueue.kube.transport import ssl_context

HOST = "worker1.example"


def shake_hands(config: ClusterConfig, served: ssl.SSLContext) -> None:
    """Connect in memory; raises what the client makes of the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl_context(config).wrap_bio(to_client, to_server, server_hostname=HOST)
    server = served.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() is not None


@pytest.mark.parametrize("given", ["root", "intermediate", "leaf"])
def test_a_ca_that_is_no_root_is_trusted_as_go_trusts_it(given: str) -> None:
    """Kubeconfigs of cluster-proxy have the server's own certificate as the CA: refused on Python 3.11 and 3.12."""
    root = trustme.CA()
    intermediate = root.create_child_ca()
    leaf = intermediate.issue_cert(HOST)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(served)
    pem = {
        "root": root.cert_pem.bytes(),
        "intermediate": intermediate.cert_pem.bytes(),
        "leaf": leaf.cert_chain_pems[0].bytes(),
    }[given].decode()
    shake_hands(ClusterConfig(f"https://{HOST}", ca_pem=pem), served)


def test_another_certificate_is_not_trusted() -> None:
    served, pem = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), trustme.CA().cert_pem.bytes().decode()
    trustme.CA().issue_cert(HOST).configure_cert(served)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(ClusterConfig(f"https://{HOST}", ca_pem=pem), served)
