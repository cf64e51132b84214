//! Tells the program which commit it was built from.

use std::process::Command;

fn main() {
    // A package from a registry has no repository, and its version says enough.
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12"]).unwrap_or_default();
    println!("cargo::rustc-env=CRABLET_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    for file in ["HEAD", "refs/heads"].iter().filter_map(|name| git(&["rev-parse", "--git-path", name])) {
        println!("cargo::rerun-if-changed={file}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
