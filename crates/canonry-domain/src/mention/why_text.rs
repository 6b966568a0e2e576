//! Why Canonry said what it said about an item, or said nothing, as the answer to `why`.

use jiff::Timestamp;

use crate::learning::prediction::points;
use crate::{
    CurrentThreshold, ItemNumber, ItemType, OverrideKind, Probability, Similarity, ThresholdSource, TriageMode, Verdict,
};

/// Shared facts that the answer names.
const FACTS_SHOWN: usize = 3;

/// All that the answer rests on. Reasoning and facts are put in as they are: the caller has quoted them.
#[derive(Debug, Clone, Default)]
pub struct WhyItem<'a> {
    /// What was found when it was looked at last; `None` when it never was.
    pub said: Option<WhyVerdict<'a>>,
    pub rulings: Vec<(OverrideKind, Option<ItemNumber>)>,
    /// When it is going to be closed, and in favour of what.
    pub closing: Option<(Timestamp, ItemNumber)>,
    /// What a close that was announced or ruled last was in favour of, and why it did not come, in words after
    /// "because".
    pub left_open: Option<(ItemNumber, &'a str)>,
    /// When Canonry closed it last, and in favour of what.
    pub closed: Option<(Timestamp, ItemNumber)>,
    /// A person wants nothing to be written in the repository.
    pub is_paused: bool,
    /// Too many people objected to closes in the repository.
    pub is_breaker_in_force: bool,
}

/// What was found when an item was looked at.
#[derive(Debug, Clone)]
pub struct WhyVerdict<'a> {
    pub item_type: ItemType,
    pub verdict: Verdict,
    pub target: Option<(ItemNumber, Similarity)>,
    pub confidence: Option<Probability>,
    pub gate: &'a str,
    pub reasoning: &'a str,
    pub facts: &'a [String],
    /// What came of it; `None` when nothing was decided.
    pub done: Option<WhyActions<'a>>,
}

/// What came of what was found.
#[derive(Debug, Clone)]
pub struct WhyActions<'a> {
    pub mode: TriageMode,
    pub threshold: CurrentThreshold,
    pub source: ThresholdSource,
    pub is_said: bool,
    pub reason: &'a str,
}

pub fn why_text(why: &WhyItem<'_>) -> String {
    let mut parts = vec![why.said.as_ref().map_or_else(|| "I have not looked at this one.".to_owned(), about)];
    for (kind, other) in &why.rulings {
        parts.push(match (kind, other) {
            (OverrideKind::Duplicate, Some(other)) => format!("A person ruled that it is the same as #{other}."),
            (OverrideKind::NotDuplicate, Some(other)) => format!("A person ruled that it is not the same as #{other}."),
            (OverrideKind::Excluded, Some(other)) => {
                format!("A person ruled that it is not to be closed as a duplicate of #{other}.")
            }
            _ => "A person ruled that it is the one to stay open.".to_owned(),
        });
    }
    if let Some((due, target)) = why.closing {
        parts.push(format!("I will close it in favour of #{target} after {}, unless somebody objects.", minute(due)));
    }
    if let Some((target, because)) = why.left_open {
        parts.push(format!("I was going to close it in favour of #{target}, and left it open because {because}."));
    }
    if let Some((at, target)) = why.closed {
        parts.push(format!("I closed it in favour of #{target} on {}.", minute(at)));
    }
    if why.is_paused {
        parts.push(
            "I am paused in this repository: until a maintainer ends that, I suggest and close nothing.".to_owned(),
        );
    }
    if why.is_breaker_in_force {
        let words = "Too many closes turned out to be wrong here lately: until a maintainer ends that, I close nothing by myself.";
        parts.push(words.to_owned());
    }
    let mut text = parts.join(" ");
    if let Some(said) = why.said.as_ref().filter(|said| said.target.is_some() && !said.reasoning.is_empty()) {
        text.push_str(&format!("\n\n> {}", said.reasoning));
    }
    let facts: Vec<&str> = why.said.iter().flat_map(|said| said.facts).map(String::as_str).take(FACTS_SHOWN).collect();
    if !facts.is_empty() {
        text.push_str(&format!("\n\nBoth have in common: {}.", facts.join("; ")));
    }
    text
}

fn about(said: &WhyVerdict<'_>) -> String {
    let kind = said.item_type.in_words();
    let Some((target, score)) = said.target else {
        return format!("I found no open {kind} that says the same ({}).", in_words(said.gate));
    };
    let sure = said.confidence.map(|sure| format!(", the judge being {:.0} % sure", sure.get() * 100.0));
    let found = format!("#{target} is {} % similar{}", points(score), sure.unwrap_or_default());
    let taken_for = match said.verdict {
        Verdict::Duplicate => "and looks like the same thing",
        Verdict::MaybeDuplicate => "and may be the same thing",
        Verdict::NotDuplicate => return format!("{found}, which is not enough ({}).", in_words(said.gate)),
    };
    let Some(done) = &said.done else { return format!("{found}, {taken_for}.") };
    let from = match (done.threshold, done.source) {
        (CurrentThreshold::Silent, _) => {
            return format!("{found}, {taken_for}. Too many suggestions were wrong here, so I keep them to myself.");
        }
        (CurrentThreshold::From(threshold), ThresholdSource::Learned) => {
            format!("from {} % on, as learned from what people did before", threshold.get())
        }
        (CurrentThreshold::From(threshold), ThresholdSource::Configured) => {
            format!("from {} % on, as configured", threshold.get())
        }
    };
    match done.is_said {
        true => format!("{found}, {taken_for}. I speak {from}."),
        false if !done.mode.speaks() => format!("{found}, {taken_for}. In the mode `{}` I only watch.", done.mode),
        false => format!("{found}, {taken_for}. I speak {from}; this time I did not ({}).", in_words(done.reason)),
    }
}

/// Stored reasons are words of ours, joined by underscores.
fn in_words(reason: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ' ' | '-');
    reason.chars().filter(|character| plain(*character)).collect::<String>().replace('_', " ")
}

fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{WhyActions, WhyItem, WhyVerdict, why_text};
    use crate::{
        CurrentThreshold, ItemNumber, ItemType, OverrideKind, Probability, Similarity, Threshold, ThresholdSource,
        TriageMode, Verdict,
    };

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn found(verdict: Verdict) -> WhyVerdict<'static> {
        WhyVerdict {
            item_type: ItemType::Issue,
            verdict,
            target: Some((number(12), Similarity::new(0.93).expect("in range"))),
            confidence: Probability::new(0.97).ok(),
            gate: "accepted",
            reasoning: "Both stop at the same wave.",
            facts: &[],
            done: Some(WhyActions {
                mode: TriageMode::Suggest,
                threshold: CurrentThreshold::From(Threshold::new(85).expect("in range")),
                source: ThresholdSource::Configured,
                is_said: true,
                reason: "above_threshold",
            }),
        }
    }

    #[test]
    fn what_was_said_is_explained() {
        let facts = ["the error `E12`".to_owned()];
        let said = WhyVerdict { facts: &facts, ..found(Verdict::Duplicate) };
        let due = "2026-03-01T10:00:00Z".parse().expect("a moment");
        let why = WhyItem { said: Some(said), closing: Some((due, number(12))), ..WhyItem::default() };
        assert_snapshot!(why_text(&why), @r"
        #12 is 93 % similar, the judge being 97 % sure, and looks like the same thing. I speak from 85 % on, as configured. I will close it in favour of #12 after 2026-03-01 10:00 UTC, unless somebody objects.

        > Both stop at the same wave.

        Both have in common: the error `E12`.
        ");
    }

    #[test]
    fn silence_is_explained() {
        let silent = |mode, reason| {
            let mut said = found(Verdict::MaybeDuplicate);
            said.reasoning = "";
            said.done = said.done.map(|done| WhyActions { mode, reason, is_said: false, ..done });
            why_text(&WhyItem { said: Some(said), ..WhyItem::default() })
        };
        assert_snapshot!(silent(TriageMode::Shadow, "mode"), @r"
        #12 is 93 % similar, the judge being 97 % sure, and may be the same thing. In the mode `shadow` I only watch.
        ");
        assert_snapshot!(silent(TriageMode::Suggest, "comment_deleted"), @r"
        #12 is 93 % similar, the judge being 97 % sure, and may be the same thing. I speak from 85 % on, as configured; this time I did not (comment deleted).
        ");
        let nothing = WhyVerdict { target: None, gate: "no_candidates", reasoning: "", ..found(Verdict::NotDuplicate) };
        assert_snapshot!(why_text(&WhyItem { said: Some(nothing), ..WhyItem::default() }), @r"
        I found no open issue that says the same (no candidates).
        ");
        assert_snapshot!(why_text(&WhyItem::default()), @r"
        I have not looked at this one.
        ");
    }

    #[test]
    fn rulings_and_closes_are_told() {
        let at = "2026-03-01T10:00:00Z".parse().expect("a moment");
        let why = WhyItem {
            said: Some(WhyVerdict { reasoning: "", ..found(Verdict::Duplicate) }),
            rulings: vec![(OverrideKind::NotDuplicate, Some(number(12))), (OverrideKind::Canonical, None)],
            closed: Some((at, number(12))),
            ..WhyItem::default()
        };
        assert_snapshot!(why_text(&why), @r"
        #12 is 93 % similar, the judge being 97 % sure, and looks like the same thing. I speak from 85 % on, as configured. A person ruled that it is not the same as #12. A person ruled that it is the one to stay open. I closed it in favour of #12 on 2026-03-01 10:00 UTC.
        ");
    }

    #[test]
    fn what_holds_back_is_told() {
        let why = WhyItem {
            left_open: Some((number(12), "somebody commented")),
            is_paused: true,
            is_breaker_in_force: true,
            ..WhyItem::default()
        };
        assert_snapshot!(why_text(&why), @r"
        I have not looked at this one. I was going to close it in favour of #12, and left it open because somebody commented. I am paused in this repository: until a maintainer ends that, I suggest and close nothing. Too many closes turned out to be wrong here lately: until a maintainer ends that, I close nothing by myself.
        ");
    }
}
