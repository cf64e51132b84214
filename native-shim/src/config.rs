//! The configuration file: the usual `mcpServers` JSON, checked with messages that say where, what and what to do.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crablet::json::Object;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny};
use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::origin::Origin;
use crate::relaxed_json::plain_json;
use crate::variables::{Expanded, Variables};

/// What the shim offers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// The servers that are not disabled, by name.
    pub(crate) servers: BTreeMap<String, Server>,
    /// What is odd but no error, as sentences for the log.
    pub(crate) remarks: Vec<String>,
}

/// One server: a command line that only this file decides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) command: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
    /// The only origins that may use it; empty for every origin that a token names.
    pub(crate) origins: Vec<Origin>,
    pub(crate) limits: Limits,
}

/// Everything that is wrong with a file.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) struct ConfigError {
    file: PathBuf,
    problems: Vec<Problem>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Problem {
    /// Line and column, from 1; `None` when the whole file is meant.
    place: Option<(usize, usize)>,
    message: String,
}

impl Config {
    /// Reads a file.
    pub(crate) fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read(file).map_err(|error| {
            let message = format!("cannot be read: {error}; give the path of your mcpServers file with --config");
            ConfigError { file: file.to_owned(), problems: vec![Problem { place: None, message }] }
        })?;
        let directory = file.parent().unwrap_or(Path::new(""));
        Self::parse(&decode(&text), directory).map_err(|problems| ConfigError { file: file.to_owned(), problems })
    }

    /// The names of the servers, for a line of text.
    pub(crate) fn names(&self) -> String {
        if self.servers.is_empty() {
            return "nothing".to_owned();
        }
        self.servers.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Reads the text of a file that lies in this directory.
    pub(crate) fn parse(text: &str, directory: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse_with(text, directory, Variables::OF_PROGRAM)
    }

    fn parse_with(text: &str, directory: &Path, variables: Variables<'_>) -> Result<Self, Vec<Problem>> {
        let text = &*plain_json(text.strip_prefix('\u{feff}').unwrap_or(text));
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            let what = error.to_string();
            let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
            let message = format!("not valid JSON: {what}; JSON has double quotes, and commas between its members");
            return Err(vec![Problem { place: Some((error.line(), error.column().max(1))), message }]);
        }
        let mut reader = Reader { text, directory, variables, config: Self::default(), problems: Vec::new() };
        reader.read_file();
        if reader.problems.is_empty() { Ok(reader.config) } else { Err(reader.problems) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { place, message }) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(formatter)?;
            }
            write!(formatter, "{}", self.file.display())?;
            if let Some((line, column)) = place {
                write!(formatter, ":{line}:{column}")?;
            }
            write!(formatter, ": {message}")?;
        }
        Ok(())
    }
}

/// The text of a file: in UTF-8, or in UTF-16 where its first bytes say so, as PowerShell writes it.
fn decode(bytes: &[u8]) -> String {
    let read: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes).into_owned(),
    };
    String::from_utf16_lossy(&bytes.as_chunks().0.iter().copied().map(read).collect::<Vec<_>>())
}

/// Walks a text that is known to be valid JSON, and notes every problem on the way.
struct Reader<'text> {
    text: &'text str,
    directory: &'text Path,
    variables: Variables<'text>,
    config: Config,
    problems: Vec<Problem>,
}

impl<'text> Reader<'text> {
    fn read_file(&mut self) {
        let Ok(file) = Object::parse(self.text) else {
            return self.problem(self.text.trim_start(), "must be an object: { \"mcpServers\": { … } }");
        };
        // The second name is that of VS Code's mcp.json.
        let Some(servers) = file.get("mcpServers").or_else(|| file.get("servers")) else {
            let advice = "has no \"mcpServers\"; write { \"mcpServers\": { \"<name>\": { \"command\": \"…\" } } }";
            return self.problem(self.text.trim_start(), advice);
        };
        let Ok(entries) = Object::parse(servers.get()) else {
            return self.problem(servers.get(), "the servers must be an object: one member for each");
        };
        let mut names = Vec::new();
        for (name, entry) in entries.iter() {
            if names.contains(&name) {
                self.problem(entry.get(), &format!("the server {name:?} is there twice; rename or remove one"));
            }
            names.push(name);
            if name.is_empty() {
                self.problem(entry.get(), "a server has an empty name; give it one");
            }
            self.read_server(name, entry.get());
        }
    }

    fn read_server(&mut self, name: &str, text: &'text str) {
        let Ok(entry) = Object::parse(text) else {
            return self.problem(text, &format!("the server {name:?} must be an object with a \"command\""));
        };
        if entry.get("command").is_none() && entry.get("url").is_some() {
            let remark =
                format!("the server {name:?} is a remote one and not served here: connect to its URL directly");
            return self.config.remarks.push(remark);
        }
        let known = ["command", "args", "env", "cwd", "disabled", "origins", "limits", "type"];
        for (member, _) in entry.iter().filter(|(member, _)| !known.contains(member)) {
            self.config.remarks.push(format!("{member:?} of the server {name:?} means nothing to the shim"));
        }
        let shape = |member: &str, shape: &str| format!("{member:?} of the server {name:?} must be {shape}");
        let disabled = self.read_member(&entry, "disabled", &shape("disabled", "true or false")).unwrap_or(false);
        let command = self.read_command(name, text, &entry);
        let shape_of_arguments = shape("args", "an array of texts, such as [\"-y\", \"x\"]");
        let arguments: Vec<Scalar> = self.read_member(&entry, "args", &shape_of_arguments).unwrap_or_default();
        let shape_of_environment = shape("env", "an object of texts, such as {\"KEY\": \"x\"}");
        let environment: BTreeMap<String, Option<Scalar>> =
            self.read_member(&entry, "env", &shape_of_environment).unwrap_or_default();
        let directory: Option<String> = self.read_member(&entry, "cwd", &shape("cwd", "a path as a text"));
        if disabled {
            return;
        }
        let mut expand = |member: &str, value: String| {
            let place = entry.get(member).map_or(text, |value| value.get());
            self.expand(name, member, place, &value)
        };
        let command = command.map(|command| expand("command", command));
        let arguments = arguments.into_iter().map(|Scalar(text)| expand("args", text)).collect();
        // Without a value it is not set, which it would not be anyway.
        let given = environment.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let environment = given.map(|(key, Scalar(text))| (key, expand("env", text))).collect();
        let directory = directory.map(|directory| expand("cwd", directory));
        let origins: Option<Vec<String>> = self.read_member(
            &entry,
            "origins",
            &shape("origins", "an array of origins, such as [\"https://a.example\"]"),
        );
        let mut allowed = Vec::new();
        for origin in origins.into_iter().flatten() {
            match Origin::parse(&origin) {
                Ok(origin) => allowed.push(origin),
                Err(error) => {
                    let place = entry.get("origins").map_or(text, |value| value.get());
                    self.problem(place, &format!("\"origins\" of the server {name:?}: {error}"));
                }
            }
        }
        let limits = self.read_limits(name, &entry);
        let directory = directory.map(|directory| self.directory.join(self.variables.at_home(directory)));
        if let Some(directory) = directory.as_deref().filter(|directory| !directory.is_dir()) {
            let place = entry.get("cwd").map_or(text, |value| value.get());
            self.problem(place, &format!("\"cwd\" of the server {name:?} is no directory: {}", directory.display()));
        }
        if let Some(command) = command {
            let command = self.variables.at_home(command);
            let server = Server { command, arguments, environment, directory, origins: allowed, limits };
            self.config.servers.insert(name.to_owned(), server);
        }
    }

    /// Replaces the variables in a value, and notes those that cannot be.
    fn expand(&mut self, name: &str, member: &str, place: &str, value: &str) -> String {
        let Expanded { text, unset, inputs } = self.variables.expand(value);
        for variable in unset {
            self.config.remarks.push(format!(
                "{member:?} of the server {name:?} names the environment variable {variable}, which is not set; it stays as it is \
                 written"
            ));
        }
        for input in inputs {
            let message = format!(
                "{member:?} of the server {name:?} wants the input {input:?}, which only an editor asks for; write ${{env:NAME}} \
                 for an environment variable of the shim, or the value itself"
            );
            self.problem(place, &message);
        }
        text
    }

    fn read_limits(&mut self, name: &str, entry: &Object<'text>) -> Limits {
        let Some(value) = entry.get("limits") else { return Limits::default() };
        let Ok(limits) = Object::parse(value.get()) else {
            self.problem(value.get(), &format!("\"limits\" of the server {name:?} must be an object"));
            return Limits::default();
        };
        let known = ["idleSeconds", "lifetimeSeconds", "processes"];
        for (member, _) in limits.iter().filter(|(member, _)| !known.contains(member)) {
            self.config.remarks.push(format!("the limit {member:?} of the server {name:?} means nothing to the shim"));
        }
        let mut number = |member: &str| {
            let message = format!("{member:?} of the server {name:?} must be a whole number from 1 on");
            let number: Option<u32> = self.read_member(&limits, member, &message);
            if number == Some(0) {
                self.problem(limits.get(member).map_or(value.get(), |value| value.get()), &message);
            }
            number
        };
        Limits {
            idle: number("idleSeconds").map(|seconds| Duration::from_secs(seconds.into())),
            lifetime: number("lifetimeSeconds").map(|seconds| Duration::from_secs(seconds.into())),
            processes: number("processes").and_then(|count| usize::try_from(count).ok()),
        }
    }

    fn read_command(&mut self, name: &str, text: &'text str, entry: &Object<'text>) -> Option<String> {
        let Some(value) = entry.get("command") else {
            self.problem(text, &format!("the server {name:?} has no \"command\"; name the program that starts it"));
            return None;
        };
        let command = entry.string("command").filter(|command| !command.trim().is_empty());
        if command.is_none() {
            let message =
                format!("\"command\" of the server {name:?} must be the name or path of a program, as a text");
            self.problem(value.get(), &message);
        }
        command
    }

    /// A member that may be absent or `null`, and otherwise has this type.
    fn read_member<T: serde::de::DeserializeOwned>(
        &mut self,
        entry: &Object<'text>,
        member: &str,
        message: &str,
    ) -> Option<T> {
        let value = entry.get(member)?;
        match serde_json::from_str::<Option<T>>(value.get()) {
            Ok(value) => value,
            Err(_) => {
                self.problem(value.get(), message);
                None
            }
        }
    }

    /// Notes what is wrong with a part of the text.
    fn problem(&mut self, part: &str, message: &str) {
        // Parts are slices of the text, never copies.
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.problems.push(Problem { place: Some((line, column)), message: message.to_owned() });
    }
}

/// A text, or what people write for one in JSON: a number, `true` or `false`.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(deserializer)?;
        match raw.get().as_bytes() {
            [b'"', ..] => serde_json::from_str(raw.get()).map(Self).map_err(D::Error::custom),
            [b'{' | b'[', ..] | b"null" => Err(D::Error::custom("not a text")),
            _ => Ok(Self(raw.get().to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let problems = Config::parse(text, Path::new("")).unwrap_err();
        ConfigError { file: "servers.json".into(), problems }.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_usual_file_is_read() {
        let text = r#"{ "mcpServers": {
            "files": { "type": "stdio", "command": "npx", "args": ["-y", "x"], "env": { "A": "b" }, "cwd": ".",
                       "origins": ["https://a.example"], "limits": { "idleSeconds": 60, "processes": 2, "x": 1 } },
            "off": { "command": "x", "disabled": true, "cwd": "/no/such/directory" },
            "far": { "url": "https://example.com/mcp" },
            "odd": { "command": "x", "args": null, "icon": "y" }
        } }"#;
        let config = Config::parse(text, Path::new("")).unwrap();
        assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["files", "odd"]);
        let files = &config.servers["files"];
        assert_eq!((files.command.as_str(), files.arguments.len(), files.environment["A"].as_str()), ("npx", 2, "b"));
        assert_eq!(files.origins, [Origin::parse("https://a.example").unwrap()]);
        let limits = Limits { idle: Some(Duration::from_secs(60)), lifetime: None, processes: Some(2) };
        assert_eq!(files.limits, limits);
        assert_eq!(config.remarks.len(), 3);
    }

    #[test]
    fn an_error_tells_line_column_what_and_what_to_do() {
        assert_eq!(
            problems("{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"args\": \"-y\" }\n  }\n}"),
            [r#"servers.json:3:42: "args" of the server "files" must be an array of texts, such as ["-y", "x"]"#]
        );
        let [message] = problems("{ // the servers\n  \"mcpServers\": {},\n  'x': 1\n}").try_into().unwrap();
        assert!(message.starts_with("servers.json:3:3: not valid JSON: "), "{message}");
        assert!(message.contains("JSON has double quotes"), "{message}");
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let text = r#"{"mcpServers":{"a":{"command":5},"b":{},"c":3,"a":{"command":"x","env":{"K":[]},"origins":["*"],
            "limits":{"idleSeconds":0,"processes":"2"}}}}"#;
        let problems = problems(text);
        assert_eq!(problems.len(), 8, "{problems:#?}");
    }

    fn variables() -> Variables<'static> {
        Variables { environment: &|name| ["HOME", "USERPROFILE", "KEY"].contains(&name).then(|| "/tmp".to_owned()) }
    }

    #[test]
    fn a_file_of_an_editor_is_read_as_the_editor_does() {
        // VS Code's mcp.json, by hand: another name for the servers, comments, trailing commas, variables.
        let text = r#"{
            // "inputs": none here
            "servers": {
                "files": { /* stdio */ "type": "stdio", "command": "~/bin/files",
                           "args": ["--port", 8080, "${userHome}/a", "${env:KEY}", "~/stays", "${x%y}",],
                           "env": { "A": "${KEY}b", "N": 1, "T": true, "U": null, "D": "${NO:-d}" }, "cwd": "~", },
                "odd": { "command": "x", "args": ["${ABSENT}"] },
            },
        }"#;
        let config = Config::parse_with(text, Path::new("/etc"), variables()).unwrap();
        let files = &config.servers["files"];
        assert_eq!(files.command, "/tmp/bin/files");
        assert_eq!(files.arguments, ["--port", "8080", "/tmp/a", "/tmp", "~/stays", "${x%y}"]);
        let environment: Vec<_> = files.environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(environment, ["A=/tmpb", "D=d", "N=1", "T=true"]);
        assert_eq!(files.directory.as_deref(), Some(Path::new("/tmp")));
        assert_eq!(config.servers["odd"].arguments, ["${ABSENT}"]);
        let [remark] = config.remarks.try_into().unwrap();
        assert!(remark.contains("the environment variable ABSENT, which is not set"), "{remark}");
    }

    #[test]
    fn what_an_editor_would_ask_for_is_told() {
        let text = r#"{"servers":{"a":{"command":"x","env":{"K":"${input:key}"}},
            "b":{"command":"x","disabled":true,"env":{"K":"${input:key}"}}}}"#;
        let [message] = problems(text).try_into().unwrap();
        assert!(
            message.starts_with("servers.json:1:38: \"env\" of the server \"a\" wants the input \"key\""),
            "{message}"
        );
    }

    #[test]
    fn a_file_in_utf_16_is_read() {
        let text = "\u{feff}{\"mcpServers\":{\"é\":{\"command\":\"x\"}}}";
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
            assert_eq!(Config::parse(&decode(&bytes), Path::new("")).unwrap().names(), "é");
        }
        assert_eq!(decode(text.as_bytes()), text);
    }

    #[test]
    fn files_of_another_shape_are_refused() {
        for text in ["[]", "{}", r#"{"mcpServers":[]}"#, "", r#"{"mcpServers":{"":{"command":"x"}}}"#] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
        let error = Config::read(Path::new("no/such/file.json")).unwrap_err().to_string();
        assert!(error.starts_with("no/such/file.json: cannot be read: "), "{error}");
    }
}
