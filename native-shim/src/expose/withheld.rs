use std::fmt;

use super::definition::Risk;

/// Why a tool is not offered, as a sentence for its page and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// It may destroy something, or does not say that it does not.
    Risky(Risk),
    /// It was not among the first tools that the page showed.
    New,
    /// The user agreed to another tool of this name.
    Changed,
    /// The user took the consent back.
    Refused,
    /// It can never be offered as it is, or there is no room for it.
    Unfit(String),
}

impl Withheld {
    /// The word that it is kept by while it waits for consent.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Risky(Risk::Destructive) => "destructive",
            Self::Risky(Risk::Unannotated) => "unannotated",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Refused => "refused",
            Self::Unfit(_) => "unfit",
        }
    }

    /// What a word stands for; an unknown one for what asks most.
    pub(crate) fn from_word(word: &str) -> Self {
        match word {
            "unannotated" => Self::Risky(Risk::Unannotated),
            "new" => Self::New,
            "changed" => Self::Changed,
            "refused" => Self::Refused,
            _ => Self::Risky(Risk::Destructive),
        }
    }

    /// Whether the user can agree to it.
    pub(crate) fn can_be_agreed_to(&self) -> bool {
        !matches!(self, Self::Unfit(_))
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Risky(Risk::Destructive) => "it says that it may destroy something",
            Self::Risky(Risk::Unannotated) => {
                "it does not say that it changes nothing (readOnlyHint) or destroys nothing"
            }
            Self::New => "it is new since the page was let in",
            Self::Changed => "its definition changed since it was agreed to",
            Self::Refused => "the user took the consent back",
            Self::Unfit(reason) => reason,
        })
    }
}
