"""A client with the Python SDK of the Model Context Protocol: `mcp_client.py WORK stdio CANONRY…` or `mcp_client.py
WORK http URL TOKEN`, where WORK is `most` or `cancels`.

It lists, calls, provokes errors, cancels, reads slowly and opens fifty sessions; it ends with 1 and says why where an answer is not
as expected. `tests/it/mcp_clients.rs` starts it against a database with the items that are named here.
"""

import json
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

SESSIONS = 50
# Comparisons that run at once.
PLACES = 4
# Questions whose answers stay unread.
UNREAD = 100
TOOLS = ["check_diff", "check_draft", "find_fix", "get_item", "review_findings", "search_items"]
DRAFT = {
    "title": "panic when the database is read-only",
    "body": "thread 'main' panicked at crates/store/src/sqlite.rs:88:40:\n"
    "read-only database handle cannot begin an immediate transaction",
}

HELD = {"title": "hold this draft"}


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Server:
    """How a session is opened, by the arguments."""

    def __init__(self, arguments):
        self.kind, *self.rest = arguments

    def slow_reader(self):
        return SlowPipe(self.rest) if self.kind == "stdio" else SlowSocket(*self.rest)

    def session(self, mode="auto"):
        if self.kind == "stdio":
            command, *arguments = self.rest
            return Client(StdioServerParameters(command=command, args=arguments, env=dict(ENVIRONMENT)), mode=mode)
        url, token = self.rest
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)
        return Client(streamable_http_client(url, http_client=http), mode=mode)


def is_known(answer):
    content = answer.structured_content
    expect(not answer.is_error, answer)
    expect(content["answer"] == "reported" and content["item"]["number"] == 1, content)


async def lists(client):
    tools = (await client.list_tools()).tools
    expect([tool.name for tool in tools] == TOOLS, tools)
    expect(all(tool.output_schema and tool.annotations.read_only_hint for tool in tools), tools)
    prompts = (await client.list_prompts()).prompts
    expect([prompt.name for prompt in prompts] == ["before-you-file", "before-you-start"], prompts)
    expect(len((await client.list_resource_templates()).resource_templates) == 2, "templates")
    listed, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        listed += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    expect(len(listed) == len(set(listed)) and "canonry://octo/cat/items/1" in listed, listed)
    # Of 60 items two pages; the one that changed last comes first.
    expect(len(listed) == 60 and listed[0] == "canonry://octo/cat/items/60", listed)
    read = await client.read_resource(listed[-1])
    expect(read.contents[0].mime_type == "application/json", read)


async def calls(client):
    is_known(await client.call_tool("check_draft", DRAFT))
    found = await client.call_tool("search_items", {"query": "read-only database", "type": "issue", "limit": 1})
    expect(found.structured_content["items"][0]["number"] == 1, found)
    prompt = await client.get_prompt("before-you-start", {"issue": "1"})
    expect("find_fix" in prompt.messages[0].content.text, prompt)


async def errors(client):
    for arguments, said in [({"title": " "}, "the draft is empty"), ({"title": "x", "author": "no login"}, "login")]:
        answer = await client.call_tool("check_draft", arguments)
        expect(answer.is_error and said in answer.content[0].text, answer)
    for refused in [client.call_tool("no_such_tool", {}), client.read_resource("canonry://octo/cat/items/none")]:
        try:
            await refused
        except MCPError:
            continue
        raise AssertionError("an unknown name was answered")
    try:
        await client.list_resources(cursor="nonsense")
    except MCPError as error:
        expect("cursor" in str(error), error)
    else:
        raise AssertionError("a strange cursor was answered")


async def cancels(client):
    """A cancelled call gives its place to another one, and the session goes on.

    The embedder never answers about HELD, so that four such calls take every place for half a minute.
    """

    async def asks():
        answer = await client.call_tool("check_draft", DRAFT)
        expect(not answer.is_error, answer)

    async with anyio.create_task_group() as group:
        for _ in range(PLACES):
            group.start_soon(client.call_tool, "check_draft", HELD)
        while True:
            with anyio.move_on_after(2) as waiting:
                await asks()
            if waiting.cancelled_caught:
                break
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        await asks()


async def slowly(client):
    """Answers of several megabytes stay unread for seconds; others are served meanwhile, and none is lost."""
    reader = SERVER.slow_reader()
    await anyio.to_thread.run_sync(reader.ask)
    until = anyio.current_time() + 3
    while anyio.current_time() < until:
        with anyio.fail_after(10):
            is_known(await client.call_tool("check_draft", DRAFT))
        await anyio.sleep(0.1)
    answered = await anyio.to_thread.run_sync(reader.read)
    expect(answered == set(range(1, UNREAD + 1)), sorted(answered))


def question(number, method, params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def long_items():
    """Questions about an item whose text is long."""
    call = {"name": "get_item", "arguments": {"number": 2}}
    return [question(number, "tools/call", call) for number in range(1, UNREAD + 1)]


def answered_id(message):
    """The number of a question that got its whole answer."""
    content = message["result"]["structuredContent"]
    expect(content["item"]["number"] == 2 and content["text_is_cut"] and len(content["text"]) > 20_000, message)
    return message["id"]


class SlowPipe:
    """A program whose output nobody reads: the pipe holds 64 KiB."""

    def __init__(self, command):
        self.program = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self):
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "slow", "version": "1"}}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for message in [question(0, "initialize", client), ready, *long_items()]:
            self.program.stdin.write(json.dumps(message).encode() + b"\n")
            self.program.stdin.flush()

    def read(self):
        with self.program as program:
            answers = [json.loads(program.stdout.readline()) for _ in range(UNREAD + 1)]
            program.stdin.close()
            expect(program.wait(30) == 0, "it ends with its input")
        return {answered_id(answer) for answer in answers if answer["id"] != 0}


class SlowSocket:
    """A connection whose answers nobody reads: all questions are sent at once."""

    def __init__(self, url, token):
        self.url, self.token = urlsplit(url), token
        self.socket = socket.create_connection((self.url.hostname, self.url.port), timeout=60)

    def ask(self):
        path = f"{self.url.path}?{self.url.query}"
        for item in long_items():
            body = json.dumps(item).encode()
            # The end of the last answer is the end of the connection.
            connection = "close" if item["id"] == UNREAD else "keep-alive"
            head = (
                f"POST {path} HTTP/1.1\r\nHost: {self.url.netloc}\r\nAuthorization: Bearer {self.token}\r\n"
                "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                f"Content-Length: {len(body)}\r\nConnection: {connection}\r\n\r\n"
            )
            self.socket.sendall(head.encode() + body)

    def read(self):
        answered = set()
        with self.socket, self.socket.makefile("rb") as answers:
            while status := answers.readline():
                expect(status.startswith(b"HTTP/1.1 200"), status)
                lengths = [int(line.split(b":")[1]) for line in iter(answers.readline, b"\r\n") if line.lower().startswith(b"content-length:")]
                answered.add(answered_id(json.loads(answers.read(lengths[0]))))
        return answered


async def at_once(server):
    async def one(done):
        async with server.session() as client:
            is_known(await client.call_tool("check_draft", DRAFT))
            done.append(1)

    done = []
    async with anyio.create_task_group() as group:
        for _ in range(SESSIONS):
            group.start_soon(one, done)
    expect(len(done) == SESSIONS, done)


async def main(work):
    """Everything but `cancels`, or only that: it needs an embedder that never answers about HELD."""
    server = SERVER
    for mode in ["auto", "legacy"]:
        async with server.session(mode) as client:
            for step in [cancels] if work == "cancels" else [lists, calls, errors, slowly]:
                with anyio.fail_after(60):
                    await step(client)
                print(f"{server.kind} {mode} {step.__name__}", flush=True)
    if work == "cancels":
        return
    with anyio.fail_after(200):
        await at_once(server)
    print(f"{server.kind} {SESSIONS} sessions", flush=True)


if __name__ == "__main__":
    import os

    ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    SERVER = Server(sys.argv[2:])
    anyio.run(main, sys.argv[1])
