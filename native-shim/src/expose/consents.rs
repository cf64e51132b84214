//! What the user agreed to: tools of pages as they were defined at that moment, at rest in a file between runs.

use crablet::Millis;
use crablet::json::{Object, RawJson};
use serde::Serialize;

use super::definition::Definition;
use super::text::digest;
use super::withheld::Withheld;
use crate::grants::Exposure;
use crate::state::{PrivateFile, StateDirectory, StateError, Version};

/// One definition of one tool, and whether the user agreed to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Consent {
    /// The token of the page.
    pub(crate) key_id: String,
    /// The page's origin; empty for a program that sends none.
    pub(crate) origin: String,
    pub(crate) tool: String,
    pub(crate) digest: String,
    pub(crate) agreed: bool,
    /// The word of [`Withheld`] for why it waited.
    pub(crate) reason: String,
    pub(crate) seen_at: Millis,
    /// What is shown to the user while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown: Option<Shown>,
}

/// A definition as the user reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) input_schema: RawJson,
}

impl Consent {
    /// Names it on the command line.
    pub(crate) fn id(&self) -> String {
        let digest = digest(&[&self.key_id, &self.origin, &self.tool, &self.digest]);
        digest.iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }

    fn is_of(&self, owner: Owner<'_>) -> bool {
        self.key_id == owner.key_id && self.origin == owner.origin
    }

    fn read(object: &Object<'_>) -> Option<Self> {
        let shown = object.object("shown").and_then(|shown| {
            Some(Shown {
                title: shown.string("title")?,
                description: shown.string("description")?,
                input_schema: shown.raw("inputSchema")?,
            })
        });
        Some(Self {
            key_id: object.string("keyId")?,
            origin: object.string("origin")?,
            tool: object.string("tool")?,
            digest: object.string("digest")?,
            agreed: object.boolean("agreed")?,
            reason: object.string("reason").unwrap_or_default(),
            seen_at: Millis(object.integer("seenAt").unwrap_or(0)),
            shown,
        })
    }
}

/// Whose tools are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) key_id: &'a str,
    /// Empty for a program that sends none.
    pub(crate) origin: &'a str,
}

/// The file of consents. Every call reads it anew, since the command `consent` changes it while the shim runs.
#[derive(Clone, Debug)]
pub(crate) struct ConsentFile(PrivateFile);

impl ConsentFile {
    /// The file in this directory.
    pub(crate) fn of(directory: &StateDirectory) -> Self {
        Self(directory.large_file("consents.json"))
    }

    pub(crate) fn read(&self) -> Result<Vec<Consent>, StateError> {
        self.0.read(LIST, Consent::read)
    }

    /// Tells one state of the file from the next.
    pub(crate) fn version(&self) -> Option<Version> {
        self.0.version()
    }

    /// Which of these tools, all that this owner's pages show at the moment, the user agreed to, in their order. What is seen
    /// for the first time is noted.
    pub(crate) fn review(
        &self,
        owner: Owner<'_>,
        exposure: Exposure,
        tools: &[&Definition],
        now: Millis,
    ) -> Result<Vec<Option<Withheld>>, StateError> {
        let (verdicts, has_changed) = review(&mut self.read()?, owner, exposure, tools, now);
        if !has_changed {
            return Ok(verdicts);
        }
        self.0.change(LIST, Consent::read, |consents| review(consents, owner, exposure, tools, now).0)
    }

    /// Agrees to, or takes back, the consents of these ids; gives those that there are.
    pub(crate) fn decide(&self, ids: &[String], agreed: bool) -> Result<Vec<Consent>, StateError> {
        self.0.change(LIST, Consent::read, |consents| {
            let mut decided = Vec::new();
            for consent in consents.iter_mut().filter(|consent| ids.contains(&consent.id())) {
                consent.agreed = agreed;
                decided.push(consent.clone());
                if agreed {
                    consent.shown = None;
                } else {
                    Withheld::Refused.word().clone_into(&mut consent.reason);
                }
            }
            decided
        })
    }

    /// Forgets what was agreed to for a token.
    pub(crate) fn forget(&self, key_id: &str) -> Result<(), StateError> {
        if self.read()?.iter().any(|consent| consent.key_id == key_id) {
            self.0.change(LIST, Consent::read, |consents| consents.retain(|consent| consent.key_id != key_id))?;
        }
        Ok(())
    }
}

/// The verdicts, and whether the list was changed for them.
fn review(
    consents: &mut Vec<Consent>,
    owner: Owner<'_>,
    exposure: Exposure,
    tools: &[&Definition],
    now: Millis,
) -> (Vec<Option<Withheld>>, bool) {
    let is_first = !consents.iter().any(|consent| consent.is_of(owner));
    let mut has_changed = false;
    let verdicts = tools
        .iter()
        .map(|tool| {
            let of_tool = |consent: &&Consent| consent.is_of(owner) && consent.tool == tool.name;
            let mut known = consents.iter().filter(of_tool);
            if let Some(consent) = known.clone().find(|consent| consent.digest == tool.digest) {
                return (!consent.agreed).then(|| Withheld::from_word(&consent.reason));
            }
            let reason = match tool.risk {
                Some(risk) if !exposure.allow_destructive => Some(Withheld::Risky(risk)),
                _ if is_first || exposure.accept_changes => None,
                _ if known.any(|consent| consent.agreed) => Some(Withheld::Changed),
                _ => Some(Withheld::New),
            };
            let shown = reason.is_some().then(|| Shown {
                title: tool.title.clone(),
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
            });
            if !make_room(consents, owner, tools, shown.is_some()) {
                return Some(Withheld::Unfit("too many tools wait for consent already, or were agreed to".to_owned()));
            }
            has_changed = true;
            consents.push(Consent {
                key_id: owner.key_id.to_owned(),
                origin: owner.origin.to_owned(),
                tool: tool.name.clone(),
                digest: tool.digest.clone(),
                agreed: reason.is_none(),
                reason: reason.as_ref().map_or("", Withheld::word).to_owned(),
                seen_at: now,
                shown,
            });
            reason
        })
        .collect();
    (verdicts, has_changed)
}

/// Makes a place for one more, by forgetting what waits of this owner and is not shown any more. A page that invents tools all
/// the time so takes its own places only.
fn make_room(consents: &mut Vec<Consent>, owner: Owner<'_>, tools: &[&Definition], waits: bool) -> bool {
    let is_current =
        |consent: &Consent| tools.iter().any(|tool| tool.name == consent.tool && tool.digest == consent.digest);
    let mine = |consents: &[Consent], agreed: bool| {
        consents.iter().filter(|consent| consent.is_of(owner) && consent.agreed == agreed).count()
    };
    let is_full = |consents: &[Consent]| {
        consents.len() >= MAX_CONSENTS
            || (waits && consents.iter().filter(|consent| consent.shown.is_some()).count() >= MAX_WAITING)
            || mine(consents, !waits) >= MAX_OF_OWNER
    };
    if is_full(consents) {
        consents.retain(|consent| !consent.is_of(owner) || consent.agreed || is_current(consent));
    }
    while is_full(consents) && !waits {
        let Some(oldest) =
            consents.iter().position(|consent| consent.is_of(owner) && consent.agreed && !is_current(consent))
        else {
            break;
        };
        consents.remove(oldest);
    }
    !is_full(consents)
}

const LIST: &str = "consents";

/// Forty bits: a page cannot aim at an id, since it does not know its token's key id to choose a definition by.
const ID_BYTES: usize = 5;

/// Definitions of one owner that are kept, of those agreed to and of those that wait each: twice what its pages may show.
const MAX_OF_OWNER: usize = 256;

/// Those of all owners. One that was agreed to takes some 300 bytes.
const MAX_CONSENTS: usize = 4_096;

/// Those of all owners that wait, each up to 32 KiB.
const MAX_WAITING: usize = 384;

#[cfg(test)]
mod tests {
    use super::super::definition::Risk;
    use super::*;

    const OWNER: Owner<'_> = Owner { key_id: "k", origin: "https://a.example" };
    const NOW: Millis = Millis(1);

    fn tool(name: &str, version: usize, risk: Option<Risk>) -> Definition {
        Definition {
            name: name.into(),
            digest: format!("{name} {version}"),
            title: name.into(),
            description: String::new(),
            input_schema: RawJson::parse("{}").unwrap(),
            output_schema: None,
            annotations: Default::default(),
            risk,
        }
    }

    fn words(consents: &mut Vec<Consent>, exposure: Exposure, tools: &[Definition]) -> Vec<&'static str> {
        let tools: Vec<&Definition> = tools.iter().collect();
        let (verdicts, _) = review(consents, OWNER, exposure, &tools, NOW);
        verdicts.iter().map(|verdict| verdict.as_ref().map_or("offered", Withheld::word)).collect()
    }

    #[test]
    fn the_first_tools_are_agreed_to_and_later_ones_wait() {
        let mut consents = Vec::new();
        let strict = Exposure::default();
        let [a, b] = [tool("a", 1, None), tool("b", 1, None)];
        assert_eq!(words(&mut consents, strict, &[]), [""; 0]);
        assert_eq!(words(&mut consents, strict, std::slice::from_ref(&a)), ["offered"]);
        assert_eq!(words(&mut consents, strict, &[a.clone(), b.clone()]), ["offered", "new"]);
        assert_eq!(words(&mut consents, strict, &[tool("a", 2, None), b.clone()]), ["changed", "new"]);
        assert_eq!(
            words(&mut consents, strict, std::slice::from_ref(&a)),
            ["offered"],
            "the definition agreed to is still good"
        );
        let accepting = Exposure { accept_changes: true, ..strict };
        assert_eq!(words(&mut consents, accepting, &[tool("a", 3, None)]), ["offered"]);
        assert_eq!(words(&mut consents, accepting, &[tool("a", 4, Some(Risk::Destructive))]), ["destructive"]);
    }

    #[test]
    fn risky_tools_wait_even_at_first_unless_they_are_allowed() {
        let mut consents = Vec::new();
        let risky = [tool("a", 1, Some(Risk::Destructive)), tool("b", 1, Some(Risk::Unannotated)), tool("c", 1, None)];
        assert_eq!(words(&mut consents, Exposure::default(), &risky), ["destructive", "unannotated", "offered"]);
        consents[0].agreed = true;
        assert_eq!(words(&mut consents, Exposure::default(), &risky), ["offered", "unannotated", "offered"]);
        let allowing = Exposure { allow_destructive: true, ..Exposure::default() };
        assert_eq!(words(&mut Vec::new(), allowing, &risky), ["offered", "offered", "offered"]);
        // Only refused ones were seen: what follows is not the first look any more.
        let mut consents = Vec::new();
        assert_eq!(words(&mut consents, Exposure::default(), &risky[..1]), ["destructive"]);
        assert_eq!(words(&mut consents, Exposure::default(), &[tool("d", 1, None)]), ["new"]);
    }

    #[test]
    fn another_token_or_origin_begins_anew() {
        let mut consents = Vec::new();
        assert_eq!(words(&mut consents, Exposure::default(), &[tool("a", 1, None)]), ["offered"]);
        for owner in [Owner { key_id: "other", ..OWNER }, Owner { origin: "https://b.example", ..OWNER }] {
            let (verdicts, _) = review(&mut consents, owner, Exposure::default(), &[&tool("a", 2, None)], NOW);
            assert_eq!(verdicts, [None]);
        }
    }

    #[test]
    fn a_page_that_invents_tools_fills_only_its_own_places() {
        let mut consents = Vec::new();
        let other = Owner { key_id: "other", ..OWNER };
        review(&mut consents, other, Exposure::default(), &[&tool("kept", 1, None)], NOW);
        review(&mut consents, other, Exposure::default(), &[&tool("waits", 1, None)], NOW);
        for version in 0..2_000 {
            words(&mut consents, Exposure::default(), &[tool("a", version, None)]);
        }
        let accepting = Exposure { accept_changes: true, ..Exposure::default() };
        for version in 2_000..4_000 {
            assert_eq!(words(&mut consents, accepting, &[tool("a", version, None)]), ["offered"]);
        }
        assert!(consents.len() <= 2 * MAX_OF_OWNER + 3, "{}", consents.len());
        assert!(["kept", "waits"].iter().all(|tool| consents.iter().any(|consent| consent.tool == *tool)));
    }

    #[test]
    fn a_decision_is_kept() {
        let directory = StateDirectory::scratch("consents");
        let file = ConsentFile::of(&directory);
        let definitions = [tool("a", 1, None), tool("b", 1, Some(Risk::Destructive))];
        let tools: Vec<&Definition> = definitions.iter().collect();
        let verdicts = || file.review(OWNER, Exposure::default(), &tools, NOW).unwrap();
        assert_eq!(verdicts(), [None, Some(Withheld::Risky(Risk::Destructive))]);
        let ids: Vec<String> = file.read().unwrap().iter().map(Consent::id).collect();
        assert_eq!(file.decide(&ids[1..], true).unwrap().len(), 1);
        assert_eq!(verdicts(), [None, None]);
        assert_eq!(file.decide(&ids[..1], false).unwrap().len(), 1);
        assert!(verdicts()[0].is_some());
        assert!(file.decide(&["none".into()], true).unwrap().is_empty());
        file.forget("k").unwrap();
        assert!(file.read().unwrap().is_empty());
        directory.remove();
    }
}
