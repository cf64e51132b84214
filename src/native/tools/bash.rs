use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::command_policy::{CommandPolicy, Decision};
use crate::agent::{Approval, ToolOutput};
use crate::host::tools::{BuiltInTool, definition};
use crate::host::{BoxFuture, Tool, ToolContext};
use crate::json::RawJson;
use crate::native::process::{CommandOutput, GuardianCommand, OutputLimits, ServerCommand, run_to_end};

/// How commands run.
#[derive(Clone, Debug)]
pub struct BashOptions {
    /// The working directory of each command. It is no border: a command reaches whatever this program's user does.
    pub directory: PathBuf,
    /// Which commands run, ask, or do not run. Default: all ask.
    pub policy: CommandPolicy,
    /// How long a command may take. Default 120 s.
    pub timeout: Duration,
    /// The most bytes of output told; of longer output the beginning and the end. Default 30 000.
    pub max_output: usize,
    /// Environment variables beside those of [`ServerCommand::INHERITED`]. A model can read them.
    pub environment: BTreeMap<String, String>,
    /// The shell, which takes a command after `-c`. Default `bash`.
    pub shell: String,
    /// The program that ends a command should this program be killed; see [`process`](crate::native::process).
    pub guardian: Option<GuardianCommand>,
}

impl BashOptions {
    /// Commands in this directory, each of which asks a person.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            policy: CommandPolicy::ask(),
            timeout: Duration::from_secs(120),
            max_output: 30_000,
            environment: BTreeMap::new(),
            shell: "bash".to_owned(),
            guardian: None,
        }
    }
}

/// The tool `bash`, which runs commands as this program's user.
///
/// Each runs in a shell of its own with an empty standard input and an environment without this program's keys. It ends,
/// with everything in its process group, when the time is up, the run is aborted, or the shell itself ends: what it left
/// in the background ends too.
pub fn bash_tool(options: BashOptions) -> BuiltInTool {
    let mut definition = definition("bash", DESCRIPTION, INPUT_SCHEMA);
    // The policy then says for which no one needs to be asked.
    definition.needs_approval = true;
    definition.sequential = true;
    (definition, Arc::new(Bash(Arc::new(options))))
}

struct Bash(Arc<BashOptions>);

#[derive(Deserialize)]
struct Command {
    command: String,
}

impl Tool for Bash {
    fn execute(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, String>> {
        let options = self.0.clone();
        Box::pin(async move {
            let Command { command } = input.read().map_err(|error| error.to_string())?;
            if let Decision::Deny(reason) = options.policy.decide(&command) {
                return Err(reason);
            }
            run(&options, command, &context).await
        })
    }

    fn decide(&self, input: &RawJson) -> Option<Approval> {
        let Command { command } = input.read().ok()?;
        match self.0.policy.decide(&command) {
            Decision::Allow => Some(Approval::Allow),
            Decision::Ask => None,
            Decision::Deny(reason) => Some(Approval::Deny { reason: Some(reason) }),
        }
    }
}

async fn run(options: &BashOptions, command: String, context: &ToolContext) -> Result<ToolOutput, String> {
    if command.contains('\0') {
        return Err("the command holds a zero byte".to_owned());
    }
    let mut process = ServerCommand::new(options.shell.clone(), ["-c".to_owned(), command]);
    process.directory = Some(options.directory.clone());
    process.environment = options.environment.clone();
    process.guardian = options.guardian.clone();
    let limits = OutputLimits { time: options.timeout, bytes: options.max_output };
    let ended = tokio::select! {
        ended = run_to_end(&process, limits) => ended,
        // Dropping it ends the process group.
        () = context.cancel.cancelled() => return Err("the call was cancelled".to_owned()),
    };
    ended
        .map(|output| told(&output, options.timeout))
        .map_err(|error| format!("the shell could not be started: {error}"))
}

fn told(output: &CommandOutput, limit: Duration) -> ToolOutput {
    let mut text = output.text.trim_end().to_owned();
    let ending = match (output.timed_out, output.code, output.signal) {
        (true, ..) => format!("[ended after {} s: run it in smaller steps]", limit.as_secs_f32()),
        (_, Some(0), _) if text.is_empty() => "[no output]".to_owned(),
        (_, Some(0), _) => String::new(),
        (_, Some(code), _) => format!("[exit code {code}]"),
        (_, None, Some(signal)) => format!("[ended by signal {signal}]"),
        (_, None, None) => "[ended]".to_owned(),
    };
    if !text.is_empty() && !ending.is_empty() {
        text.push('\n');
    }
    text.push_str(&ending);
    let details = json!({ "code": output.code, "signal": output.signal, "timedOut": output.timed_out });
    let is_error = output.timed_out || output.code != Some(0);
    ToolOutput { details: RawJson::from_value(&details).ok(), is_error, ..ToolOutput::text(text) }
}

const DESCRIPTION: &str = "Run a command in a shell. Each call is a new shell in the same folder: variables and `cd` do not \
    last. Standard input is empty, so nothing can be asked. Standard output and errors come back together, the middle left \
    out where they are long.";

const INPUT_SCHEMA: &str = r#"{"type":"object","properties":{
"command":{"type":"string","description":"The command, as for bash -c"}
},"required":["command"],"additionalProperties":false}"#;
