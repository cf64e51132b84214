//! `crablet-shim` hands local stdio MCP servers to pages, extensions and workers over a loopback WebSocket.
//!
//! ```text
//! crablet-shim pair --server files                                  shows a code to type into a page, which gets a token
//! crablet-shim grant --origin https://app.example --server files    prints a token for one origin and named servers
//! crablet-shim grant --native --server files                        the same for a program that sends no Origin
//! crablet-shim tokens                                               lists tokens by their key id
//! crablet-shim revoke <key-id>                                      takes one back, from open connections too
//! crablet-shim pair --expose                                        the same for a page that offers tools of its own
//! crablet-shim consent [<id>…]                                      shows tools of pages that wait, and agrees to them
//! crablet-shim expose                                               serves tools of pages to the agent that starts it
//! crablet-shim doctor --config servers.json                         says what is wrong with a set-up
//! crablet-shim serve --config servers.json [--port 6735] [--origin https://app.example]… [--grace 60]
//! crablet-shim install --browser chrome --extension ID --server files --config servers.json
//!                                                                   lets a browser start the shim for an extension
//! crablet-shim uninstall --browser chrome                           takes that back
//! ```
//!
//! `servers.json` is the usual `{ "mcpServers": { "<name>": { "command", "args", "env", "cwd", "disabled" } } }`, with
//! `origins` beside them to narrow a server to some of the origins that tokens name, and `limits` (`idleSeconds`,
//! `lifetimeSeconds`, `processes`). Comments, trailing commas, VS Code's `servers` and the variables of editors
//! (`${NAME}`, `${env:NAME}`, `${NAME:-default}`, `${userHome}`) are taken. A change of the file counts for
//! connections made after it. Commands, arguments, environment
//! and directories come from this file only: a client names a server and nothing else.
//!
//! What a browser starts for an extension is `native-messaging`, by way of a script that `install` writes: it serves that
//! extension over standard input and output (`crablet::mcp::transport::shim` has the wire format) and ends with the pipe.
//!
//! `serve` listens on 127.0.0.1 alone and checks each request in this order, before anything is started: the peer is on
//! this machine, the path is exactly `/servers/<name>` or `/expose`, `Host` is this shim, `Origin` is allowed (`null`
//! never is), the proof of a token is right, fresh and unused, and the request is a WebSocket upgrade. Who is refused gets
//! a status and no reason; the reason is a line on standard error. Nothing of messages or tokens is ever written there.
//!
//! Tokens lie in `grants.json` (mode 0600) in the state directory: `--state-dir`, `CRABLET_STATE_DIR`,
//! `$XDG_STATE_HOME/crablet`, or the folder of the user for such files, as `~/.local/state/crablet` on Linux.
//!
//! Each connection has a process of its own, in its own process group, under a guardian (this program again) that ends
//! it with all its descendants when the shim is gone, killed or not. A client that loses its socket has the grace to come
//! back to the same process, and neither side loses or repeats a message.

mod browser;
mod cli;
mod command;
mod config;
mod connection;
mod consent;
mod crashes;
mod doctor;
mod era;
mod expose;
mod extension;
mod gate;
mod grants;
mod http;
mod install;
mod launcher;
mod limits;
mod listener;
mod lockout;
mod log;
mod native_host;
mod native_messages;
#[cfg(feature = "nats")]
mod nats;
mod origin;
mod output;
mod owner_only;
mod pairing_socket;
mod pairings;
mod plain_socket;
#[cfg(windows)]
mod registry;
mod relaxed_json;
mod reload;
mod session;
mod sessions;
mod signals;
mod socket;
mod state;
mod variables;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // A guardian is neither a server nor a command for people: it runs before anything else is set up.
    #[cfg(unix)]
    {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|first| first == cli::GUARD) {
            return crablet::native::process::guardian_main(arguments);
        }
    }
    let code = match cli::run(cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::note_failure(&error);
            ExitCode::FAILURE
        }
    };
    log::flush();
    code
}
