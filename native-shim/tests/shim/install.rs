//! `install` and `uninstall` in a home that is nobody's.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{scratch_directory, script, write_config};

const ONE: &str = "abcdefghijklmnopabcdefghijklmnop";
const TWO: &str = "ponmlkjihgfedcbaponmlkjihgfedcba";

/// A server that answers the doctor.
const GREETING: &str = r#"
read -r initialize
echo '{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"x","version":"1"}}}'
exec cat
"#;

/// A home with a configuration of two servers.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        let directory = scratch_directory();
        write_config(
            &directory,
            &json!({ "mcpServers": { "a": script(GREETING), "b": script(GREETING) } }).to_string(),
        );
        Self(directory)
    }

    /// Runs the shim: whether it was content, what it printed, and what it complained of.
    async fn run(&self, arguments: &[&str]) -> (bool, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_crablet-shim"))
            .args(arguments)
            .env("HOME", &self.0)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CRABLET_STATE_DIR")
            .output()
            .await
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    async fn install(&self, arguments: &[&str]) -> (bool, String, String) {
        let config = self.config();
        self.run(&[&["install", "--config", &config], arguments].concat()).await
    }

    fn config(&self) -> String {
        self.0.join("servers.json").display().to_string()
    }

    fn manifest(&self, path: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.join(path)).unwrap()).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(target_os = "linux")]
const CHROME: &str = ".config/google-chrome/NativeMessagingHosts/dev.crablet.shim.json";
#[cfg(target_os = "macos")]
const CHROME: &str = "Library/Application Support/Google/Chrome/NativeMessagingHosts/dev.crablet.shim.json";
#[cfg(target_os = "linux")]
const FIREFOX: &str = ".mozilla/native-messaging-hosts/dev.crablet.shim.json";
#[cfg(target_os = "macos")]
const FIREFOX: &str = "Library/Application Support/Mozilla/NativeMessagingHosts/dev.crablet.shim.json";

#[tokio::test]
async fn a_browser_is_told_once_and_forgets_all() {
    let home = Home::new();
    let arguments = ["--browser", "chrome", "--extension", ONE, "--server", "b", "--server", "a"];
    let (good, first, _) = home.install(&arguments).await;
    assert!(good && first.contains(CHROME) && first.ends_with(&format!("for {ONE}, which may use: a, b\n")), "{first}");
    let manifest = home.manifest(CHROME);
    assert_eq!((&manifest["name"], &manifest["type"]), (&json!("dev.crablet.shim"), &json!("stdio")));
    assert_eq!(manifest["allowed_origins"], json!([format!("chrome-extension://{ONE}/")]));
    assert!(Path::new(manifest["path"].as_str().unwrap()).is_absolute());
    let tokens = home.run(&["tokens"]).await.1;

    // Again, with the servers in another order.
    let again = home.install(&["--browser", "chrome", "--extension", ONE, "--server", "a", "--server", "b"]).await;
    assert_eq!((again.1, home.manifest(CHROME), home.run(&["tokens"]).await.1), (first, manifest, tokens));

    // A second extension beside the first, which may use less.
    assert!(home.install(&["--browser", "chrome", "--extension", TWO, "--server", "a"]).await.0);
    assert_eq!(home.manifest(CHROME)["allowed_origins"].as_array().unwrap().len(), 2);
    let (good, said, _) = home.run(&["uninstall", "--browser", "chrome", "--extension", TWO]).await;
    assert!(good && said.contains(&format!("{TWO} may use nothing any more")), "{said}");
    assert_eq!(home.manifest(CHROME)["allowed_origins"], json!([format!("chrome-extension://{ONE}/")]));

    let (good, said, _) = home.run(&["uninstall", "--browser", "chrome"]).await;
    assert!(good && said.contains(&format!("{ONE} may use nothing any more")), "{said}");
    assert!(!home.has(CHROME) && !home.has(".local/state/crablet/native-messaging/dev.crablet.shim"));
    assert_eq!(home.run(&["tokens"]).await.1, "");
    let (good, said, _) = home.run(&["uninstall", "--browser", "chrome"]).await;
    assert!(good && said.ends_with("is not there\n"), "{said}");
}

#[tokio::test]
async fn what_an_extension_may_use_stays_while_one_browser_is_left() {
    let home = Home::new();
    for browser in ["chrome", "brave"] {
        assert!(home.install(&["--browser", browser, "--extension", ONE, "--server", "a"]).await.0);
    }
    home.run(&["uninstall", "--browser", "chrome"]).await;
    assert!(home.run(&["tokens"]).await.1.contains(ONE));
    home.run(&["uninstall", "--browser", "brave"]).await;
    assert_eq!(home.run(&["tokens"]).await.1, "");
}

#[tokio::test]
async fn firefox_has_a_manifest_of_its_own_form() {
    let home = Home::new();
    let arguments = ["--browser", "firefox", "--extension", "notes@example.org"];
    let (good, said, _) = home.install(&arguments).await;
    assert!(good && said.contains("may use: nothing yet"), "{said}");
    assert_eq!(home.manifest(FIREFOX)["allowed_extensions"], json!(["notes@example.org"]));
    assert_eq!(home.manifest(FIREFOX).get("allowed_origins"), None);
}

#[tokio::test]
async fn a_data_directory_and_a_name_of_its_own() {
    let home = Home::new();
    let profile = home.0.join("profile").display().to_string();
    let place = ["--browser", "chromium", "--user-data-dir", &profile, "--host", "org.example.tools"];
    assert!(home.install(&[&place[..], &["--extension", ONE]].concat()).await.0);
    let file = "profile/NativeMessagingHosts/org.example.tools.json";
    assert_eq!(home.manifest(file)["name"], "org.example.tools");
    assert!(home.run(&[&["uninstall"], &place[..]].concat()).await.0 && !home.has(file));
}

#[tokio::test]
async fn what_would_let_in_others_or_nobody_is_refused_and_writes_nothing() {
    let home = Home::new();
    for (arguments, complaint) in [
        (vec!["--browser", "chrome", "--extension", "*"], "no id of an extension"),
        (vec!["--browser", "chrome", "--extension", "chrome-extension://*/"], "no id of an extension"),
        (vec!["--browser", "chrome", "--extension", &ONE[1..]], "no id of an extension"),
        (vec!["--browser", "chrome", "--extension", "notes@example.org"], "no id of an extension in Chrome"),
        (vec!["--browser", "firefox", "--extension", ONE], "no id of an extension in Firefox"),
        (vec!["--browser", "chrome", "--extension", ONE, "--server", "c"], "no server \"c\"; it has: a, b"),
        (vec!["--browser", "chrome", "--extension", ONE, "--host", "../x"], "not a name that browsers take"),
        (vec!["--browser", "firefox", "--extension", "@x", "--user-data-dir", "/tmp"], "has no --user-data-dir"),
        (vec!["--browser", "opera", "--extension", ONE], "invalid value 'opera'"),
        (vec!["--browser", "chrome"], "--extension"),
    ] {
        let (good, _, complained) = home.install(&arguments).await;
        assert!(!good && complained.contains(complaint), "{arguments:?}: {complained}");
    }
    let written: Vec<_> = std::fs::read_dir(&home.0).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(written, ["servers.json"]);
}

#[tokio::test]
async fn the_doctor_looks_at_installations() {
    let home = Home::new();
    assert!(home.install(&["--browser", "chrome", "--extension", ONE, "--server", "a"]).await.0);
    let config = home.config();
    let doctor = ["doctor", "--port", "0", "--config", config.as_str()];
    let (good, said, _) = home.run(&doctor).await;
    assert!(good && said.contains(&format!("ok       Chrome starts the shim for {ONE}, which may use: a")), "{said}");
    assert!(!said.contains("with another program"), "{said}");

    let script = home.0.join(".local/state/crablet/native-messaging/dev.crablet.shim");
    std::fs::remove_file(script).unwrap();
    let (good, said, _) = home.run(&doctor).await;
    assert!(!good && said.contains("problem  Chrome cannot start "), "{said}");

    std::fs::remove_file(home.0.join(CHROME)).unwrap();
    let (good, said, _) = home.run(&doctor).await;
    assert!(!good && said.contains("problem  Chrome finds no dev.crablet.shim.json in "), "{said}");
}
