//! The command `consent`: the tools of pages that wait for the user, and what the user says to them.

use crate::cli::CommandError;
use crate::expose::{Consent, ConsentFile, Shown};
use crate::output;

/// Lists what waits, or decides about the named ones.
pub(crate) fn consent(
    consents: &ConsentFile,
    ids: Vec<String>,
    is_withdrawn: bool,
    shows_all: bool,
) -> Result<(), CommandError> {
    let known = consents.read()?;
    if let Some(unknown) = ids.iter().find(|id| !known.iter().any(|consent| consent.id() == **id)) {
        return Err(CommandError::UnknownTool(unknown.clone()));
    }
    if !ids.is_empty() {
        for consent in consents.decide(&ids, !is_withdrawn)? {
            let word = if is_withdrawn { "withdrawn" } else { "agreed to" };
            output::say(format_args!("{word}: {} of {}", consent.tool.escape_debug(), page(&consent)));
        }
        return Ok(());
    }
    let shown: Vec<&Consent> = known.iter().filter(|consent| shows_all || !consent.agreed).collect();
    if shown.is_empty() {
        output::remark(format_args!("No tool of a page waits for consent."));
    }
    for consent in shown {
        let state = if consent.agreed { "agreed" } else { consent.reason.as_str() };
        output::say(format_args!("{}  {}  of {}  ({state})", consent.id(), consent.tool.escape_debug(), page(consent)));
        if let Some(shown) = &consent.shown {
            print_definition(shown);
        }
    }
    Ok(())
}

/// What the page says of the tool, indented, so that it cannot be taken for lines of this program.
fn print_definition(Shown { title, description, input_schema }: &Shown) {
    let schema = input_schema.as_str();
    for (name, text) in [("title", title.as_str()), ("description", description.as_str()), ("input", schema)] {
        let text = text.replace('\t', " ");
        for (index, line) in text.lines().enumerate() {
            output::say(format_args!("    {:<11}  {line}", if index == 0 { name } else { "" }));
        }
    }
}

fn page(consent: &Consent) -> &str {
    if consent.origin.is_empty() { "a program without an origin" } else { &consent.origin }
}
