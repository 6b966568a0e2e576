//! Why triage commented on an item, changed its comment, or did not comment: stored with the action, shown in words.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::text_enum;

/// The prefix of the stored reason if the comment announced a close; the number of hours follows.
const ANNOUNCED: &str = "grace:";

text_enum! {
    pub enum TriageReason: "a reason of triage" {
        AboveThreshold = "above_threshold",
        /// The comment asks for a description instead of naming another item.
        AskedForDescription = "asked_for_description",
        NoLongerPredicted = "no_longer_predicted",
        /// The standing comment already has this text.
        SaidAlready = "said_already",
        Mode = "mode",
        NotDuplicate = "not_duplicate",
        /// The selected target has no score to compare with the threshold.
        NoScore = "no_score",
        BelowThreshold = "below_threshold",
        /// Too many suggestions were wrong in this repository, at every level.
        FallenSilent = "fallen_silent",
        /// People deleted the comment, and it would name the same target again or ask for a description again.
        CommentDeleted = "comment_deleted",
        /// The last comment on the item is too recent for another one.
        Cooldown = "cooldown",
        OverBudget = "over_budget",
        /// A budget is set, but the model's prices are unknown, so that nothing can be spent.
        NoPrices = "no_prices",
    }
}

impl TriageReason {
    /// The reason after "because".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::AboveThreshold => "the match is at or above this repository's threshold",
            Self::AskedForDescription => "it has no text besides its template",
            Self::NoLongerPredicted => "the match has changed",
            Self::SaidAlready => "the comment already says this",
            Self::Mode => "the mode does not comment",
            Self::NotDuplicate => "no duplicate was found",
            Self::NoScore => "the match has no score",
            Self::BelowThreshold => "the match is below this repository's threshold",
            Self::FallenSilent => "too many suggestions were wrong in this repository",
            Self::CommentDeleted => "somebody deleted Canonry's comment",
            Self::Cooldown => "Canonry's last comment here is too recent",
            Self::OverBudget => "the budget for models is spent",
            Self::NoPrices => "the model's prices are not configured",
        }
    }
}

/// The stored reason of a triage action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionReason {
    Rule(TriageReason),
    /// The comment announced a close.
    Announced {
        hours: u32,
    },
    /// Another version's reason.
    Other(String),
}

impl ActionReason {
    /// The reason after "because"; another version's reason as it is stored, without markup.
    pub fn in_words(&self) -> Cow<'static, str> {
        match self {
            Self::Rule(reason) => reason.in_words().into(),
            Self::Announced { hours } => format!("a close was announced, due after {hours} hours").into(),
            Self::Other(text) => plain_reason(text).into(),
        }
    }
}

impl From<TriageReason> for ActionReason {
    fn from(reason: TriageReason) -> Self {
        Self::Rule(reason)
    }
}

impl FromStr for ActionReason {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if let Ok(reason) = text.parse() {
            return Ok(Self::Rule(reason));
        }
        let hours = text.strip_prefix(ANNOUNCED).and_then(|hours| hours.parse().ok());
        Ok(hours.map_or_else(|| Self::Other(text.to_owned()), |hours| Self::Announced { hours }))
    }
}

impl fmt::Display for ActionReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(reason) => reason.fmt(formatter),
            Self::Announced { hours } => write!(formatter, "{ANNOUNCED}{hours}"),
            Self::Other(text) => formatter.write_str(text),
        }
    }
}

impl Serialize for ActionReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl PartialEq<TriageReason> for ActionReason {
    fn eq(&self, other: &TriageReason) -> bool {
        *self == Self::Rule(*other)
    }
}

/// Stored reasons without a sentence of their own are words joined by underscores.
pub(crate) fn plain_reason(reason: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ' ' | '-');
    reason.chars().filter(|character| plain(*character)).collect::<String>().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::{ActionReason, TriageReason};

    #[test]
    fn every_stored_reason_reads_back() {
        let rules = TriageReason::ALL.iter().map(|reason| reason.as_str());
        for stored in rules.chain(["grace:72", "grace:soon", "a reason_of <b>2031</b>", ""]) {
            let Ok(read) = stored.parse::<ActionReason>();
            assert_eq!(read.to_string(), stored);
            assert_eq!(serde_json::to_value(&read).expect("serialises"), stored);
            assert_eq!(matches!(read, ActionReason::Rule(_)), stored.parse::<TriageReason>().is_ok());
            assert!(!read.in_words().contains(['_', '<']), "{read:?}");
        }
        assert_eq!("grace:72".parse(), Ok(ActionReason::Announced { hours: 72 }));
        assert_eq!("grace:soon".parse(), Ok(ActionReason::Other("grace:soon".to_owned())));
    }
}
