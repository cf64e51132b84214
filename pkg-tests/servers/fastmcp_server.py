"""A server of FastMCP over Streamable HTTP: `fastmcp_server.py PORT`."""

import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers"""
    return a + b


@server.tool
async def count(to: int, context: Context) -> str:
    """Counts with progress"""
    for number in range(to):
        await context.report_progress(number + 1, to)
    return "done"


@server.resource("test://x")
def x() -> str:
    return "hello"


@server.prompt
def greet(name: str) -> str:
    return f"Hi {name}"


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
