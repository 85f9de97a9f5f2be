#!/bin/sh
# Python 3.11.7, 3.12.1 and 3.13.0 (module asyncio), with trustme 1.2.1 for certificates: a server that wants a client's.
# Behaviour: with the module ssl a client that shows none reads the alert that says so; a server of asyncio ends the
# connection without one, so its clients cannot tell a missing certificate from a broken link.
# Output seen: ssl: alert; asyncio: end
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check trustme==1.2.1
cat > finding.py <<'PY'
import asyncio
import socket
import ssl
import threading

import trustme

authority = trustme.CA()
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
authority.issue_cert("localhost").configure_cert(server)
authority.configure_trust(server)
server.verify_mode = ssl.CERT_REQUIRED
client = ssl.create_default_context()
authority.configure_trust(client)


def read(port):
    with socket.create_connection(("localhost", port)) as plain:
        with client.wrap_socket(plain, server_hostname="localhost") as connection:
            try:
                return "alert" if connection.recv(1) else "end"
            except ssl.SSLError as error:
                return "alert" if "alert" in str(error) else "end"
            except ConnectionError:
                return "end"


def accept(listening):
    plain, _ = listening.accept()
    try:
        server.wrap_socket(plain, server_side=True)
    except ssl.SSLError:
        plain.close()


def with_ssl():
    with socket.create_server(("localhost", 0)) as listening:
        threading.Thread(target=accept, args=[listening]).start()
        return read(listening.getsockname()[1])


async def with_asyncio():
    serving = await asyncio.start_server(lambda *_: None, "localhost", 0, ssl=server, family=socket.AF_INET)
    async with serving:
        return await asyncio.to_thread(read, serving.sockets[0].getsockname()[1])


print(f"ssl: {with_ssl()}; asyncio: {asyncio.run(with_asyncio())}")
PY
seen=$(own/bin/python finding.py)
wanted='ssl: alert; asyncio: end'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
