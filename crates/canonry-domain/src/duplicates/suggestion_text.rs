//! The one comment by which Canonry names what a new item looks like.

use crate::close::grace::announcement;
use crate::learning::prediction::points;
use crate::{ItemNumber, ItemType, Login, POSSIBLE_DUPLICATE, Similarity, Verdict};

/// Shared facts that the comment lists: more would bury how to object.
const FACTS_SHOWN: usize = 5;

/// An item that a suggestion names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarItem<'a> {
    pub number: ItemNumber,
    /// Its title, quoted; empty when it is not known.
    pub title: &'a str,
    pub score: Similarity,
}

/// What a suggestion says. Titles, reasoning and facts are put in as they are: the caller has taken every mention,
/// reference, link and marker out of them. Whatever line breaks they have become spaces.
#[derive(Debug, Clone, Copy)]
pub struct SuggestionComment<'a> {
    pub item_type: ItemType,
    /// What it is called: a duplicate, or perhaps one.
    pub verdict: Verdict,
    pub target: SimilarItem<'a>,
    /// Why, in the judge's words, quoted; empty when it gave none.
    pub reasoning: &'a str,
    pub facts: &'a [String],
    /// Other open ones that are alike, best first.
    pub open: &'a [SimilarItem<'a>],
    /// Closed ones that are alike, best first: what they are about may be fixed.
    pub closed: &'a [SimilarItem<'a>],
    /// How many items are named at most, the target among them.
    pub max_items: usize,
    /// Whether the item will be closed unless somebody objects.
    pub closes: Option<ClosesIn<'a>>,
}

/// When an item is closed that nobody objects about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosesIn<'a> {
    /// After so many hours.
    pub hours: u32,
    /// The name by which Canonry is spoken to here.
    pub handle: &'a str,
}

/// The comment on a new item that looks like a duplicate.
///
/// It never says "duplicate of" before a number: at the start of a comment GitHub takes that as an order.
pub fn suggestion_text(suggestion: &SuggestionComment<'_>) -> String {
    let others = suggestion.max_items.saturating_sub(1);
    // A closed one may hold the answer, so that a place is kept for the best of them.
    let open = suggestion.open.len().min(others.saturating_sub(suggestion.closed.len().min(1)));
    let closed = suggestion.closed.len().min(others - open);
    let facts = suggestion.facts.iter().filter_map(|fact| one_line(fact)).take(FACTS_SHOWN);
    let mut parts = vec![format!("{}\n\n- {}", opening(suggestion), naming(&suggestion.target))];
    parts.extend(one_line(suggestion.reasoning).map(|reasoning| format!("Why:\n\n> {reasoning}")));
    parts.extend(listed("What both have in common:", facts));
    parts.extend(listed("Also similar:", most_similar_first(&suggestion.open[..open])));
    parts.extend(listed("Closed, maybe fixed:", most_similar_first(&suggestion.closed[..closed])));
    parts.push(match suggestion.closes {
        Some(ClosesIn { hours, handle }) => announcement(suggestion.item_type, hours, handle, POSSIBLE_DUPLICATE),
        None => format!(
            "Nothing is closed because of this. If it is wrong, give this comment a 👎 (Canonry learns from it) and remove the label `{POSSIBLE_DUPLICATE}`, or just say so below."
        ),
    });
    parts.join("\n\n")
}

/// What the comment is changed to when the item no longer looks like a duplicate.
pub fn withdrawn_text(item_type: ItemType, target: ItemNumber) -> String {
    format!(
        "Since it was edited, this {} no longer looks like a duplicate. Before that, #{target} was named here.",
        item_type.in_words()
    )
}

/// What the comment is changed to when a person ruled that the two are no duplicates.
pub fn ruled_apart_text(item_type: ItemType, target: ItemNumber, by: &Login) -> String {
    let this = item_type.in_words();
    // In code, so that nobody is called by it.
    format!(
        "`{by}` ruled that this {this} is not the same as #{target}. Canonry will not close it because of that one."
    )
}

fn opening(suggestion: &SuggestionComment<'_>) -> String {
    let this = suggestion.item_type.in_words();
    let (seems, is) = match suggestion.item_type {
        ItemType::Issue => ("be about the same thing", "is about the same thing"),
        ItemType::Pr => ("make the same change", "makes the same change"),
    };
    match suggestion.verdict {
        Verdict::Duplicate => format!("This {this} looks like a duplicate. An open one seems to {seems}:"),
        Verdict::MaybeDuplicate | Verdict::NotDuplicate => {
            format!("This {this} may be a duplicate. Please check whether this one {is}:")
        }
    }
}

fn naming(item: &SimilarItem<'_>) -> String {
    // Rounded down, as it is held against the threshold: what is shown as 85 % has reached 85.
    let similar = format!("({} % similar)", points(item.score));
    let title = one_line(item.title).map(|title| format!(" {title}")).unwrap_or_default();
    format!("#{}{title} {similar}", item.number)
}

/// Which ones are named is by their rank; what is written beside them orders them.
fn most_similar_first<'a>(items: &[SimilarItem<'a>]) -> impl Iterator<Item = String> + use<'a> {
    let mut items = items.to_vec();
    items.sort_by_key(|item| std::cmp::Reverse(item.score));
    items.into_iter().map(|item| naming(&item))
}

fn listed(heading: &str, lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
    (!lines.is_empty()).then(|| format!("{heading}\n\n{}", lines.join("\n")))
}

fn one_line(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::{ClosesIn, SimilarItem, SuggestionComment, suggestion_text, withdrawn_text};
    use crate::items::named_duplicate::named_duplicate;
    use crate::{ItemNumber, ItemType, Similarity, Verdict};

    fn similar(number: i64, title: &str, score: f64) -> SimilarItem<'_> {
        let score = Similarity::new(score).expect("in range");
        SimilarItem { number: ItemNumber::new(number).expect("positive"), title, score }
    }

    fn bare(item_type: ItemType, verdict: Verdict) -> SuggestionComment<'static> {
        let target = similar(12, "Exec approvals ignore ask=off", 0.9396);
        let (reasoning, facts, open, closed) = ("", &[], &[], &[]);
        SuggestionComment { item_type, verdict, target, reasoning, facts, open, closed, max_items: 3, closes: None }
    }

    #[test]
    fn an_issue_is_told_what_it_looks_like_and_why() {
        let facts = ["the error `approval required`".to_owned(), "the setting `ask`".to_owned()];
        let suggestion = SuggestionComment {
            reasoning: "Both ask for approval\nalthough `ask` is off.",
            facts: &facts,
            open: &[similar(15, "Approval prompts in CI", 0.88), similar(16, "Not shown", 0.87)],
            closed: &[similar(7, "Approvals are asked for twice", 0.86), similar(8, "Not shown", 0.85)],
            ..bare(ItemType::Issue, Verdict::Duplicate)
        };
        insta::assert_snapshot!(suggestion_text(&suggestion), @"
        This issue looks like a duplicate. An open one seems to be about the same thing:

        - #12 Exec approvals ignore ask=off (93 % similar)

        Why:

        > Both ask for approval although `ask` is off.

        What both have in common:

        - the error `approval required`
        - the setting `ask`

        Also similar:

        - #15 Approval prompts in CI (88 % similar)

        Closed, maybe fixed:

        - #7 Approvals are asked for twice (86 % similar)

        Nothing is closed because of this. If it is wrong, give this comment a 👎 (Canonry learns from it) and remove the label `possible-duplicate`, or just say so below.
        ");
    }

    #[test]
    fn a_maybe_is_a_question() {
        insta::assert_snapshot!(suggestion_text(&bare(ItemType::Pr, Verdict::MaybeDuplicate)), @"
        This pull request may be a duplicate. Please check whether this one makes the same change:

        - #12 Exec approvals ignore ask=off (93 % similar)

        Nothing is closed because of this. If it is wrong, give this comment a 👎 (Canonry learns from it) and remove the label `possible-duplicate`, or just say so below.
        ");
    }

    #[test]
    fn a_close_to_come_is_announced_with_what_stops_it() {
        let closes = Some(ClosesIn { hours: 72, handle: "dedupe" });
        insta::assert_snapshot!(suggestion_text(&SuggestionComment { closes, ..bare(ItemType::Issue, Verdict::Duplicate) }), @"
        This issue looks like a duplicate. An open one seems to be about the same thing:

        - #12 Exec approvals ignore ask=off (93 % similar)

        If nobody objects within 3 days, this issue will be closed as a duplicate. To keep it open, give this comment a 👎 or 😕, comment, edit the issue, remove the label `possible-duplicate`, or write `/dedupe not a duplicate`. Any one of them is enough.
        ");
    }

    #[test]
    fn no_more_items_than_wanted_are_named() {
        let open = [similar(15, "a", 0.9), similar(16, "b", 0.89), similar(17, "c", 0.88)];
        let closed = [similar(7, "d", 0.87), similar(8, "e", 0.86)];
        for (max_items, open, closed, expected) in [
            (1, &open[..], &closed[..], vec![12]),
            (2, &open, &closed, vec![12, 7]),
            (3, &open, &closed, vec![12, 15, 7]),
            (3, &open, &[], vec![12, 15, 16]),
            (3, &open[..1], &closed, vec![12, 15, 7]),
            (3, &[], &closed, vec![12, 7, 8]),
            (8, &open, &closed, vec![12, 15, 16, 17, 7, 8]),
            (0, &open, &closed, vec![12]),
        ] {
            let bare = bare(ItemType::Issue, Verdict::Duplicate);
            let text = suggestion_text(&SuggestionComment { open, closed, max_items, ..bare });
            let named: Vec<i64> =
                text.lines().filter_map(|line| line.strip_prefix("- #")?.split(' ').next()?.parse().ok()).collect();
            assert_eq!(named, expected, "{max_items}:\n{text}");
        }
    }

    #[test]
    fn what_is_put_in_stays_on_its_line() {
        let facts = ["one\n\n- two".to_owned(), "  ".to_owned()];
        let suggestion = SuggestionComment {
            target: similar(12, "a\n\n# head", 0.9),
            reasoning: "yes\n\nno\u{2028}# no",
            facts: &facts,
            ..bare(ItemType::Issue, Verdict::Duplicate)
        };
        let text = suggestion_text(&suggestion);
        for line in ["- #12 a # head (90 % similar)", "> yes no # no", "- one - two"] {
            assert!(text.lines().any(|found| found == line), "{line:?} is not a line of:\n{text}");
        }
        assert!(!text.contains("- \n"), "{text}");
    }

    #[test]
    fn no_text_can_be_taken_for_an_order_to_mark_a_duplicate() {
        let repo = "o/n".parse().expect("a name");
        for item_type in [ItemType::Issue, ItemType::Pr] {
            for verdict in Verdict::ALL {
                let bare = bare(item_type, *verdict);
                assert_eq!(named_duplicate(&repo, &suggestion_text(&bare)), None);
                let closes = Some(ClosesIn { hours: 72, handle: "canonry" });
                assert_eq!(named_duplicate(&repo, &suggestion_text(&SuggestionComment { closes, ..bare })), None);
            }
            assert_eq!(
                named_duplicate(&repo, &withdrawn_text(item_type, ItemNumber::new(12).expect("positive"))),
                None
            );
        }
    }

    #[test]
    fn what_is_withdrawn_says_what_was_there() {
        insta::assert_snapshot!(
            withdrawn_text(ItemType::Issue, ItemNumber::new(12).expect("positive")),
            @"Since it was edited, this issue no longer looks like a duplicate. Before that, #12 was named here."
        );
    }
}
