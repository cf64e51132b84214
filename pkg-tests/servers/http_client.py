"""The official Python client against a server of notes over HTTP: `python http_client.py URL`. A line per mode."""

import asyncio
import sys

from mcp import Client
from mcp_types import ElicitResult

url = sys.argv[1]


async def answer(context: object, params: object) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def check(mode: str, version: str) -> None:
    async with Client(url, mode=mode, elicitation_callback=answer) as client:
        assert client.protocol_version == version, client.protocol_version
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["readFile", "listFiles", "searchFiles", "count", "greet"], names
        read = await client.call_tool("readFile", {"path": "note.txt"})
        assert read.content[0].text == "buy milk", read
        reports: list[float] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            reports.append(progress)

        counted = await client.call_tool("count", {"to": 30}, progress_callback=on_progress)
        assert counted.structured_content == {"counted": 30}, counted
        assert reports and reports == sorted(set(reports)), reports
        greeted = await client.call_tool("greet", {})
        assert greeted.content[0].text == "Hello Ada!", greeted
        contents = (await client.read_resource("notes://echo/hi")).contents
        assert contents[0].text == "hi", contents


for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
    asyncio.run(check(mode, version))
    print(f"ok mcp of Python, {version}")
