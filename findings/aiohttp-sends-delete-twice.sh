#!/bin/sh
# aiohttp 3.14.5 (Python), client: a server that takes a request on a connection that was used before and ends without an answer.
# Behaviour: a DELETE or PUT is sent a second time and only the second answer is seen, so a delete that worked is "not found" and
# a PUT conflicts with itself; a POST or PATCH raises ServerDisconnectedError. On a new connection each raises.
# Output seen: DELETE: 404 after 2; PUT: 409 after 2; POST: error after 1; PATCH: error after 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check aiohttp==3.14.5
cat > finding.py <<'PY'
import asyncio

import aiohttp

second = {"DELETE": 404, "PUT": 409}
counts = {}


async def serve(reader, writer):
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            break
        method = head.split()[0].decode()
        counts[method] = counts.get(method, 0) + 1
        if method != "GET" and counts[method] == 1:
            break
        code = second.get(method, 200)
        writer.write(f"HTTP/1.1 {code} -\r\nContent-Length: 0\r\n\r\n".encode())
    writer.close()


async def sent(session, method, url):
    async with session.get(url) as answer:
        await answer.read()
    try:
        async with session.request(method, url) as answer:
            said = answer.status
    except aiohttp.ServerDisconnectedError:
        said = "error"
    return f"{method}: {said} after {counts[method]}"


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = "http://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession() as session:
        print("; ".join([await sent(session, method, url) for method in ("DELETE", "PUT", "POST", "PATCH")]))


asyncio.run(main())
PY
seen=$(own/bin/python finding.py)
wanted='DELETE: 404 after 2; PUT: 409 after 2; POST: error after 1; PATCH: error after 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
