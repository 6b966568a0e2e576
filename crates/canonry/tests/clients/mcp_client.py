"""A client with the Python SDK of the Model Context Protocol: `mcp_client.py stdio CANONRY…` or `mcp_client.py http URL TOKEN`.

It lists, calls, provokes errors, cancels, reads slowly and opens fifty sessions; it ends with 1 and says why where an answer is not
as expected. `tests/it/mcp_clients.rs` starts it against a database with the items that are named here.
"""

import sys

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

SESSIONS = 50
TOOLS = ["check_diff", "check_draft", "find_fix", "get_item", "review_findings", "search_items"]
DRAFT = {
    "title": "panic when the database is read-only",
    "body": "thread 'main' panicked at crates/store/src/sqlite.rs:88:40:\n"
    "read-only database handle cannot begin an immediate transaction",
}


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Server:
    """How a session is opened, by the arguments."""

    def __init__(self, arguments):
        self.kind, *self.rest = arguments

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
    """A cancelled call ends at once, and the session goes on."""
    long = {"title": "A long log", "body": "the reader stops at once in line 12\n" * 29_000}
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(client.call_tool, "check_draft", long)
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    with anyio.fail_after(30):
        is_known(await client.call_tool("check_draft", DRAFT))


async def slowly(client):
    """Many questions, whose answers are read one after the other with pauses."""
    answers = []

    async def ask():
        answers.append(await client.call_tool("get_item", {"number": 1}))
        await anyio.sleep(0.02)

    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(ask)
            await anyio.sleep(0.01)
    expect(len(answers) == 30 and not any(answer.is_error for answer in answers), "slow answers")


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


async def main(arguments):
    server = Server(arguments)
    for mode in ["auto", "legacy"]:
        async with server.session(mode) as client:
            for step in [lists, calls, errors, cancels, slowly]:
                with anyio.fail_after(60):
                    await step(client)
                print(f"{server.kind} {mode} {step.__name__}", flush=True)
    with anyio.fail_after(200):
        await at_once(server)
    print(f"{server.kind} {SESSIONS} sessions", flush=True)


if __name__ == "__main__":
    import os

    ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    anyio.run(main, sys.argv[1:])
