//! `doctor`: looks at a set-up the way a helpful colleague would, and says what is wrong with it.

use std::path::Path;

use crablet::json::{Object, RawJson};
use crablet::native::process::GuardianCommand;

use crate::config::{Config, Server};
use crate::era::{Answer, greet};
use crate::grants::{GrantFile, Kept};
use crate::http::HttpGrant;
use crate::install::{Installation, servers_of};
use crate::launcher::Launcher;
use crate::listener::bind;
use crate::log::printable;
use crate::output;
use crate::state::StateDirectory;

/// The problems so far; everything else is only printed.
#[derive(Debug, Default)]
pub(crate) struct Problems(u32);

/// Looks at everything, starts every server once, and prints what it finds. `needs_token` is whether a token is the only way in.
pub(crate) async fn examine(
    file: &Path,
    port: u16,
    state: &StateDirectory,
    guardian: &GuardianCommand,
    needs_token: bool,
) -> Problems {
    let grants = GrantFile::of(state);
    let mut problems = Problems::default();
    let config = match Config::read(file) {
        Ok(config) => config,
        Err(error) => {
            problems.add(&error.to_string());
            Config::default()
        }
    };
    config.remarks.iter().for_each(|text| remark(text));
    let count = examine_grants(&grants, &config, &mut problems)
        + examine_grants(&GrantFile::<HttpGrant>::of(state), &config, &mut problems);
    match count {
        0 if !needs_token => remark("no token has been granted: who comes in is who may use the subjects of NATS"),
        0 => problems.add("no token has been granted, so that nobody can come in; see `crablet-shim grant --help`"),
        count => good(&format!("tokens: {count}")),
    }
    match Installation::all(state) {
        Ok(all) => all.iter().for_each(|one| examine_installation(one, file, state, guardian, &grants, &mut problems)),
        Err(error) => problems.add(&error.to_string()),
    }
    match bind(port).await {
        Ok(_) => remark(&format!("port {port} is free: the shim does not run there at the moment")),
        Err(error) => remark(&format!(
            "port {port} is taken ({error}): by the shim if it runs, otherwise choose another with --port"
        )),
    }
    for (name, server) in &config.servers {
        examine_server(name, server, guardian, &mut problems).await;
    }
    problems
}

/// Looks at the tokens of one front, and says how many there are.
fn examine_grants<G: Kept>(grants: &GrantFile<G>, config: &Config, problems: &mut Problems) -> usize {
    let granted = grants.read().unwrap_or_else(|error| {
        problems.add(&error.to_string());
        Vec::new()
    });
    for grant in &granted {
        let key_id = grant.key_id();
        for server in grant.servers().iter().filter(|server| !config.servers.contains_key(*server)) {
            problems.add(&format!(
                "the token {key_id} is for the server {server:?}, which the configuration does not offer; grant anew \
                 with the right name and `crablet-shim revoke {key_id}`"
            ));
        }
    }
    granted.len()
}

fn examine_installation(
    installation: &Installation,
    config: &Path,
    state: &StateDirectory,
    guardian: &GuardianCommand,
    grants: &GrantFile,
    problems: &mut Problems,
) {
    let Installation { browser, host, folder } = installation;
    let Some(manifest) = installation.manifest() else {
        return problems.add(&format!(
            "{browser} finds no {host}.json in {}; run `crablet-shim install` again, or `crablet-shim uninstall`",
            folder.display()
        ));
    };
    let written = std::fs::read_to_string(&manifest.program);
    let wanted = [state.path(), config].map(std::path::absolute);
    match (written, wanted) {
        (Err(error), _) => problems.add(&format!(
            "{browser} cannot start {} for extensions: {error}; run `crablet-shim install` again",
            manifest.program.display()
        )),
        (Ok(written), [Ok(state_directory), Ok(config)]) => {
            let launcher = Launcher { program: guardian.program.clone(), state_directory, config };
            if launcher.text().is_ok_and(|text| text != written) {
                let script = manifest.program.display();
                remark(&format!("{script} starts the shim with another program, state directory or configuration"));
            }
        }
        _ => {}
    }
    for extension in &manifest.extensions {
        match servers_of(extension, grants) {
            Ok(servers) => good(&format!("{browser} starts the shim for {extension}, which may use: {servers}")),
            Err(error) => problems.add(&error.to_string()),
        }
    }
}

async fn examine_server(name: &str, server: &Server, guardian: &GuardianCommand, problems: &mut Problems) {
    match greet(server.to_command(guardian)).await {
        Some(Answer::Response { outcome: Ok(result), .. }) => {
            good(&format!("the server {name:?} starts and answers: {}", introduce(&result)));
        }
        Some(Answer::Response { outcome: Err(error), .. }) => good(&format!(
            "the server {name:?} starts, and refuses `initialize` ({}): it may speak the stateless revision only",
            error.message
        )),
        Some(Answer::Exited(report)) => problems.add(&report.describe(name)),
        None => problems.add(&format!(
            "the server {name:?} starts but answers nothing; run `{}` by hand and see whether it is an MCP server on \
             standard input and output",
            server.command
        )),
    }
}

/// What a server says of itself.
fn introduce(result: &RawJson) -> String {
    let result = Object::parse(result.as_str()).unwrap_or_default();
    let info = result.object("serverInfo").unwrap_or_default();
    let text = |object: &Object<'_>, member| object.string(member).unwrap_or_else(|| "?".to_owned());
    format!("{} {}, revision {}", text(&info, "name"), text(&info, "version"), text(&result, "protocolVersion"))
}

/// As it may stand in a terminal: servers say what they like of themselves.
fn lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

pub(crate) fn good(text: &str) {
    output::say(format_args!("ok       {}", lines(text)));
}

pub(crate) fn remark(text: &str) {
    output::say(format_args!("note     {}", lines(text)));
}

impl Problems {
    /// How many there are.
    pub(crate) const fn count(&self) -> u32 {
        self.0
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.0 += 1;
        output::say(format_args!("problem  {}", lines(text)));
    }
}
