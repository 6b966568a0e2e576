//! Reads what the text of an item says about another item that it names.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::markdown::{FoldedText, own_words};
use crate::{ItemNumber, JudgedItem, PairRelation};

/// What one of two items says about the other, if that shows that they are no duplicates. A text that also calls the
/// two the same proves nothing.
pub(crate) fn cited_relation(one: &JudgedItem<'_>, other: &JudgedItem<'_>) -> Option<PairRelation> {
    let said = [said_about(one, other.number), said_about(other, one.number)];
    if said.contains(&Some(Citation::Same)) {
        return None;
    }
    let found = said.into_iter().flatten().filter_map(|said| match said {
        Citation::Same => None,
        Citation::Related(relation) => Some(relation),
    });
    // Both may name the other; the order of the two must not matter.
    found.max()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Citation {
    Same,
    Related(PairRelation),
}

fn said_about(item: &JudgedItem<'_>, number: ItemNumber) -> Option<Citation> {
    let mark = format!("#{number}");
    if ![item.title, item.body].iter().any(|text| text.contains(&mark)) {
        return None;
    }
    let words = format!("{}\n{}", item.title, own_words(item.body, FoldedText::Omit));
    let found = |pattern: &Regex, may_be_doubted: bool| {
        pattern.captures_iter(&words).any(|found| {
            let whole = found.get(0).expect("invariant: group 0 is the match");
            let numbers = NUMBER.captures_iter(&found["list"]).any(|one| one[1].parse() == Ok(number.get()));
            numbers && (may_be_doubted || !is_doubted(&words[..whole.start()]))
        })
    };
    let names = |pattern: &Regex| found(pattern, false);
    if names(&DIFFERENT) {
        return Some(Citation::Related(PairRelation::CitedAsDifferent));
    }
    // "Possibly the same as #12" is enough to let a judge decide.
    if found(&SAME, true) {
        return Some(Citation::Same);
    }
    let related = [
        (&REVERT, PairRelation::Revert),
        (&BACKPORT, PairRelation::Backport),
        (&CAUSE, PairRelation::CausedBy),
        (&FOLLOW_UP, PairRelation::FollowUp),
    ];
    related.into_iter().find(|(pattern, _)| names(pattern)).map(|(_, relation)| Citation::Related(relation))
}

/// Whether the author only wonders, or negates what follows: "not sure if this is different from #3".
fn is_doubted(before: &str) -> bool {
    let clause = before.rsplit(['.', '!', '?', ';', '\n', ',', ':']).next().unwrap_or_default();
    DOUBT.is_match(clause)
}

fn pattern(phrases: &str) -> Regex {
    let pattern = format!(
        r"(?xi) (?: ^ | [^\w-] ) (?: {phrases} ) \s* :? \s* (?: (?: the | this | that | my | our ) \s+ )?
            (?: (?: open | closed | earlier | previous ) \s+ )?
            (?: (?: issues? | bugs? | tickets? | prs? | pulls? | pull \s+ requests? | changes? (?: \s+ (?: from | in | of ) )? ) \s* )?
            \(? (?<list> (?: \# | gh- ) \d{{1,18}} (?: (?: \s* [,/&] \s* | \s+ ) (?: (?: and | or ) \s+ )? (?: \# | gh- ) \d{{1,18}} )* ) \b"
    );
    Regex::new(&pattern).expect("invariant: the pattern is constant")
}

static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d{1,18})").expect("invariant: the pattern is constant"));

static DOUBT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi) \b (?: unsure | unclear | wonder(?:ing)? | if | whether | might | may | maybe | perhaps | possibl[ey] | probabl[ey]
        | could | is \s+ (?: this | it | that ) | not | no | never | \w+ n['’]t ) (?: \s+ [\w'’]+ ){0,3} \s* $";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

static DIFFERENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?: not | isn['’]?t ) \s+ (?: (?: really | quite | exactly ) \s+ )?
              (?: an? \s+ dup(?:e|licate)? \s+ of | dup(?:e|licate)? \s+ of | (?: an? | the ) \s+ same (?: \s+ \w+ ){0,2} \s+ (?: as | like ) )
          | different (?: \s+ \w+ ){0,3} \s+ (?: from | than | to ) | differs? \s+ from | distinct \s+ from | unrelated \s+ to
          | separate (?: \s+ \w+ ){0,2} \s+ from | unlike (?: \s+ in )? | as \s+ opposed \s+ to | in \s+ contrast \s+ (?: to | with )",
    )
});

static SAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"same (?: \s+ \w+ ){0,3} \s+ (?: as | like ) | identical \s+ to | dup(?:e|licate|licates)? (?: \s+ of )? | duped \s+ by
          | superse(?:de|des|ding|ded\s+by) | replac(?:e|es|ing|ed\s+by) | re-?submi(?:t|ts|tted|ssion)(?: \s+ of )? | rebase[sd]?(?: \s+ of )?
          | re-?opens? | alternative \s+ (?: to | for | of )",
    )
});

static REVERT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?: reverts? | reverting | reverted | revert \s+ of | roll(?:s|ing)? \s+ back | back(?:s|ing)? \s+ out | undo(?:es|ing)? )",
    )
});

/// A pull request with the title of a merge commit brings that change to another branch.
static BACKPORT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?: back-?port(?:s|ed|ing)? (?: \s+ (?: of | from ) )? | cherry[-\ ]?pick(?:s|ed|ing)? (?: \s+ (?: of | from ) )?
          | merge \s+ pull \s+ request )",
    )
});

static CAUSE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"caused \s+ by | regress(?:ion|ed) (?: \s+ \w+ ){0,3} \s+ (?: from | by | in | since | after | due \s+ to )
          | (?: introduced | broken | broke ) (?: \s+ \w+ ){0,2} \s+ (?: by | in | with ) | fall-?out \s+ (?: from | of )",
    )
});

/// "based on #N" and "continuation of #N" are not here: people also resubmit a change with these words.
static FOLLOW_UP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"follow(?:s|ed|ing)? [-\ ]? ups? (?: \s+ \w+ ){0,2} \s+ (?: to | of | for | on | from ) | following \s+ up \s+ on
          | spawned (?: \s+ off )? \s+ (?: of | from ) | spun \s+ (?: off | out ) (?: \s+ (?: of | from ) )?
          | (?: split | broken | forked | factored | extracted ) (?: \s+ (?: off | out ) )? \s+ (?: of | from )
          | builds \s+ (?: up )? on | on \s+ top \s+ of | stacked \s+ on | depends \s+ (?: up )? on | blocked \s+ (?: by | on )
          | re-?appl(?:y|ies|ied|ying) | re-?land(?:s|ed|ing)? | blocks | (?: last | first | next | second )? \s* part \s+ of | sub-? (?: issue | task ) \s+ of",
    )
});

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::cited_relation;
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, PairRelation};

    fn cited(body: &str) -> Option<PairRelation> {
        let item = |at, body| JudgedItem {
            number: ItemNumber::new(at).expect("positive"),
            state: ItemState::Open,
            item_type: ItemType::Issue,
            title: "It stops",
            body,
            labels: &[],
            origin: ItemOrigin::default(),
        };
        let (one, other) = (item(20, body), item(12, "It stops too."));
        assert_eq!(cited_relation(&one, &other), cited_relation(&other, &one), "{body}");
        cited_relation(&one, &other)
    }

    #[test]
    fn what_a_text_says_is_read() {
        use PairRelation::{Backport, CausedBy, CitedAsDifferent, FollowUp, Revert};
        for (text, expected) in [
            ("Unlike #12, this happens at night.", CitedAsDifferent),
            ("This is not the same issue as #12.", CitedAsDifferent),
            ("Note that this is a different bug from #12", CitedAsDifferent),
            ("Not a duplicate of #12", CitedAsDifferent),
            ("This isn't a duplicate of #12", CitedAsDifferent),
            ("appears to be distinct from #3 and #12", CitedAsDifferent),
            ("Follow up to #12.", FollowUp),
            ("Follow-up of PR #12", FollowUp),
            ("Followup of #12, test the output as well", FollowUp),
            ("spawned off of #12", FollowUp),
            ("Blocked by #12. Part of #3.", FollowUp),
            ("It depends on issue #12", FollowUp),
            ("This is a subtask of #12", FollowUp),
            ("This regression was caused by #12.", CausedBy),
            ("Fix two regressions introduced by #12.", CausedBy),
            ("Reverts #12", Revert),
            ("Revert PR #12 and add documentation", Revert),
            ("Backport of #12 to beta", Backport),
            ("Cherry-picked from #12", Backport),
            ("Merge pull request #12 from wave/anchor", Backport),
            ("Reapply #12, which was reverted by mistake", FollowUp),
            ("Reland: #12", FollowUp),
        ] {
            assert_eq!(cited(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_says_nothing_or_the_opposite() {
        for text in [
            "",
            "See #12",
            "Related to #12",
            "unlike #123",
            "Possible duplicate of #12",
            "Same error as #12, but see the follow-up to #12",
            "This is no different from #12",
            "Not sure whether this is different from #12",
            "I do not know if this is a follow-up to #12",
            "Might be caused by #12",
            "> unlike #12",
            "`unlike #12`",
            "```\ncaused by #12\n```",
            "Rebased #12, which is part of #12",
            "This supersedes #12 and reverts nothing",
            "#12 unlike",
        ] {
            assert_eq!(cited(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            cited(&format!("{text} #12 {text}"));
        }
    }
}
