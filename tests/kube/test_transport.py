"""Which certificates of servers are trusted, and how connections end."""

from __future__ import annotations

import gc
import socket
import ssl
import threading
import warnings

import anyio
import pytest
import trustme

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.http.transport import ssl_context

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


def test_a_server_that_does_not_end_tls_keeps_no_socket_open() -> None:
    """A command ends with its loop: a connection that waits for the server's end of TLS would stay open after it."""
    authority, ended = trustme.CA(), threading.Event()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)

    def answer_in_part(listener: socket.socket) -> None:
        with served.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
            ended.wait(10.0)

    async def ask(url: str) -> None:
        config = ClusterConfig(url, ca_pem=authority.cert_pem.bytes().decode())
        async with KubeClient(config, name="w1", options=ClientOptions(deadline=0.2)) as client:
            with pytest.raises(ApiError):
                await client.get(JOB, ObjectKey("default", "a"))

    with socket.create_server(("127.0.0.1", 0)) as listener, warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", ResourceWarning)
        server = threading.Thread(target=answer_in_part, args=(listener,))
        server.start()
        anyio.run(ask, f"https://127.0.0.1:{listener.getsockname()[1]}")
        gc.collect()
        ended.set()
        server.join()
    assert [str(warning.message) for warning in raised] == []
