"""The official Python client against `crablet-shim expose`, whose tools are those of the page fixtures/expose:
`python expose_client.py COMMAND ORIGIN`. A line per mode."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

command, origin = sys.argv[1:]


async def check(mode: str, version: str) -> None:
    changed = asyncio.Event()

    async def on_message(message: object) -> None:
        if "ToolListChanged" in repr(message) or "tools/list_changed" in repr(message):
            changed.set()

    server = StdioServerParameters(command=command, args=["expose"], env=dict(os.environ))
    async with Client(server, mode=mode, message_handler=on_message, cache=None) as client:
        assert client.protocol_version == version, client.protocol_version

        async def listed(count: int) -> dict[str, str]:
            while True:
                changed.clear()
                tools = (await client.list_tools()).tools
                assert all(tool.title.startswith(f"{origin}: ") for tool in tools), tools
                if len(tools) == count:
                    return {tool.title.split(": ")[1]: tool.name for tool in tools}
                await changed.wait()

        async def run() -> None:
            names = await listed(7)
            echoed = await client.call_tool(names["echo"], {"text": "Grüße 🦀"})
            assert echoed.structured_content == {"text": "Grüße 🦀"}, echoed
            reports: list[float] = []

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                reports.append(progress)

            counted = await client.call_tool(names["count"], {"to": 30}, progress_callback=on_progress)
            assert counted.content[0].text == "counted to 30", counted
            assert reports and reports == sorted(set(reports)), reports

            before = (await client.call_tool(names["aborted"], {})).content[0].text
            waiting = asyncio.Event()

            async def on_wait(progress: float, total: float | None, message: str | None) -> None:
                waiting.set()

            call = asyncio.create_task(client.call_tool(names["wait"], {}, progress_callback=on_wait))
            await waiting.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            while (await client.call_tool(names["aborted"], {})).content[0].text == before:
                pass

            await client.call_tool(names["change"], {"extra": True})
            more = await listed(8)
            assert (await client.call_tool(more["extra"], {})).content[0].text == "extra"
            await client.call_tool(names["change"], {"extra": False})
            await listed(7)
            left = await client.call_tool(names["reload"], {})
            assert left.is_error, left
            while (again := await client.call_tool(names["echo"], {"text": "again"})).is_error:
                await changed.wait()
                changed.clear()
            assert again.structured_content == {"text": "again"}, again
            assert await listed(7) == names

        if mode == "legacy":
            await run()
            return
        async with client.listen(tools_list_changed=True) as subscription:

            async def hear() -> None:
                async for _ in subscription:
                    changed.set()

            hearing = asyncio.create_task(hear())
            await run()
            hearing.cancel()


for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
    asyncio.run(check(mode, version))
    print(f"ok mcp of Python, {version}")
