//! What Canonry writes on items that it closes, reopens or points at.

use crate::{ItemNumber, ItemType, Probability, text_enum};

/// The label that Canonry sets. People's own label `duplicate` is never touched.
pub const POSSIBLE_DUPLICATE: &str = "possible-duplicate";

/// Shared facts that a comment lists: more would bury how to object.
const FACTS_SHOWN: usize = 8;
/// Duplicates that a back-link lists: 500 lines stay far below the 65,536 characters of a comment.
const BACK_LINKS_SHOWN: usize = 500;

/// What a closing comment says. Titles and facts are quoted as they are: the caller has taken every
/// mention, reference and marker out of them.
#[derive(Debug, Clone, Copy)]
pub struct ClosingText<'a> {
    pub item_type: ItemType,
    pub target: ItemNumber,
    pub target_title: Option<&'a str>,
    pub facts: &'a [String],
    pub confidence: Probability,
    /// Whether a maintainer decided that it is closed: its author's word does not undo that.
    pub approved: bool,
    /// The name that commands begin with, where somebody listens to them.
    pub handle: Option<&'a str>,
    /// A repository's own text with `{target}`, `{title}`, `{evidence}`, `{confidence}` and
    /// `{objection}`.
    pub template: Option<&'a str>,
}

text_enum! {
    /// Why a close is undone.
    pub enum UndoReason: "a reason to undo" {
        NotDuplicate = "not-duplicate",
        /// It is a duplicate, but of another item.
        WrongTarget = "wrong-target",
        Other = "other",
    }
}

/// The comment that is written before an item is closed.
///
/// A repository's own template may leave out the target and how to object; both are added then,
/// because nobody must be left without them.
pub fn closing_comment(text: &ClosingText<'_>) -> String {
    let Some(template) = text.template else {
        let objection = if_incorrect(text.item_type, text.approved, text.handle);
        let mut parts = vec![format!("{} {objection}", naming(text.target))];
        parts.extend(same_as(text));
        parts.extend(evidence(text));
        return parts.join("\n\n");
    };
    let objection = if_incorrect(text.item_type, text.approved, text.handle);
    let fill = |name: &str| match name {
        "target" => Some(format!("#{}", text.target)),
        "title" => Some(text.target_title.unwrap_or_default().to_owned()),
        "evidence" => Some(evidence(text).unwrap_or_default()),
        "confidence" => Some(percent(text.confidence)),
        "objection" => Some(objection.clone()),
        _ => None,
    };
    let mut parts = vec![filled(template, fill).trim().to_owned()];
    if !template.contains("{target}") {
        parts.insert(0, naming(text.target));
    }
    if !template.contains("{objection}") {
        parts.push(objection.clone());
    }
    parts.join("\n\n")
}

/// What the closing comment is changed to when the close does not come about: somebody was faster with
/// a comment or a change, the plan was withdrawn, or GitHub refuses it.
pub fn comment_if_refused(item_type: ItemType, target: ItemNumber) -> String {
    format!(
        "This {} was about to be closed as a duplicate of #{target}. It stays open: something changed meanwhile, or GitHub did not let it be closed.",
        item_type.in_words()
    )
}

/// The one comment on a canonical that lists what was closed in favour of it.
pub fn back_link_comment(item_type: ItemType, duplicates: &[ItemNumber]) -> String {
    let mut numbers = duplicates.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let this = item_type.in_words();
    if numbers.is_empty() {
        return format!("Nothing is closed as a duplicate of this {this} any more.");
    }
    let mut lines = vec![format!("Closed as duplicates of this {this}:"), String::new()];
    lines.extend(numbers.iter().take(BACK_LINKS_SHOWN).map(|number| format!("- #{number}")));
    if numbers.len() > BACK_LINKS_SHOWN {
        lines.push(format!("- and {} more", numbers.len() - BACK_LINKS_SHOWN));
    }
    lines.join("\n")
}

/// The comment on an item that is opened again.
pub fn undo_comment(item_type: ItemType, target: ItemNumber, reason: UndoReason) -> String {
    let this = item_type.in_words();
    match reason {
        UndoReason::NotDuplicate => {
            format!("Reopened: this {this} is not a duplicate of #{target}. It will not be closed as one again.")
        }
        UndoReason::WrongTarget => {
            format!("Reopened: this {this} was closed in favour of #{target}, which was the wrong one.")
        }
        UndoReason::Other => format!("Reopened: closing this {this} as a duplicate of #{target} was taken back."),
    }
}

/// The comment on a closed duplicate whose canonical is closed in favour of another item.
pub fn repointed_comment(item_type: ItemType, from: ItemNumber, target: ItemNumber) -> String {
    format!(
        "Now a duplicate of #{target}: #{from}, which this {} was closed in favour of, is itself a duplicate of it. {}",
        item_type.in_words(),
        if_incorrect(item_type, true, None)
    )
}

fn naming(target: ItemNumber) -> String {
    format!("Closing as duplicate of #{target}.")
}

/// Only what works is named.
fn if_incorrect(item_type: ItemType, approved: bool, handle: Option<&str>) -> String {
    let this = item_type.in_words();
    let reopen = format!("If this is incorrect, reopen the {this} (it will not be closed again)");
    let Some(handle) = handle else {
        return format!("{reopen}, or say so in a comment: a maintainer can take this back.");
    };
    if approved {
        return format!("{reopen}. A maintainer can also write `/{handle} undo`, which opens it again.");
    }
    // Whoever opened an item cannot always reopen it, so there is a way that needs no rights.
    format!(
        "{reopen}. Its author can also write `/{handle} not a duplicate`, and a maintainer `/{handle} undo`: both open it again. A 👎 from its author, or from two people, is noted as an objection."
    )
}

/// What goes on elsewhere: a problem is followed, a change is worked on.
fn same_as(text: &ClosingText<'_>) -> Option<String> {
    let title = text.target_title.filter(|title| !title.is_empty())?;
    Some(match text.item_type {
        ItemType::Issue => format!("The problem is followed in #{}: {title}", text.target),
        ItemType::Pr => {
            format!("The same change is proposed in #{}: {title}\nWhat is missing there is welcome there.", text.target)
        }
    })
}

fn evidence(text: &ClosingText<'_>) -> Option<String> {
    if text.facts.is_empty() {
        return Some(format!("Confidence: {}.", percent(text.confidence)));
    }
    let both = match text.item_type {
        ItemType::Issue => "issues",
        ItemType::Pr => "pull requests",
    };
    let mut lines = vec![format!("What both {both} share (confidence {}):", percent(text.confidence)), String::new()];
    lines.extend(text.facts.iter().take(FACTS_SHOWN).map(|fact| format!("- {fact}")));
    Some(lines.join("\n"))
}

/// Rounded down: 99.96 % is not certainty.
fn percent(confidence: Probability) -> String {
    format!("{} %", (confidence.get() * 100.0 + 1e-9).floor())
}

/// Fills a template in one pass, so that nothing filled in is read as a template again. Unknown names
/// stay as they are written.
fn filled(template: &str, fill: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        let inside = &rest[open + 1..];
        let value = inside.find('}').and_then(|close| Some((fill(&inside[..close])?, close)));
        if let Some((value, close)) = value {
            text.push_str(&value);
            rest = &inside[close + 1..];
        } else {
            text.push('{');
            rest = inside;
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{ClosingText, UndoReason, back_link_comment, closing_comment, comment_if_refused, repointed_comment};
    use crate::{ItemNumber, ItemType, Probability, undo_comment};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("valid")
    }

    fn closing<'a>(item_type: ItemType, facts: &'a [String], template: Option<&'a str>) -> ClosingText<'a> {
        let confidence = Probability::new(0.9596).expect("valid");
        let target_title = Some("Exec approvals ignore ask=off");
        let (target, approved, handle) = (number(12), false, Some("canonry"));
        ClosingText { item_type, target, target_title, facts, confidence, approved, handle, template }
    }

    fn facts() -> Vec<String> {
        vec!["the error `approval required`".into(), "the setting {target}".into()]
    }

    #[test]
    fn what_a_maintainer_decided_only_a_maintainer_takes_back() {
        let ruled = closing_comment(&ClosingText { approved: true, ..closing(ItemType::Issue, &[], None) });
        assert!(!ruled.contains("not a duplicate") && ruled.contains("A maintainer can also write `/canonry undo`"));
        assert!(
            !closing_comment(&closing(ItemType::Issue, &[], None)).contains("in a comment"),
            "nobody would hear it"
        );
        let unheard = closing_comment(&ClosingText { handle: None, ..closing(ItemType::Issue, &[], None) });
        assert!(unheard.contains("or say so in a comment: a maintainer can take this back.") && !unheard.contains('/'));
    }

    #[test]
    fn an_issue_is_told_why_and_how_to_object() {
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts(), None)), @"
        Closing as duplicate of #12. If this is incorrect, reopen the issue (it will not be closed again). Its author can also write `/canonry not a duplicate`, and a maintainer `/canonry undo`: both open it again. A 👎 from its author, or from two people, is noted as an objection.

        The problem is followed in #12: Exec approvals ignore ask=off

        What both issues share (confidence 95 %):

        - the error `approval required`
        - the setting {target}
        ");
    }

    #[test]
    fn a_pull_request_is_told_where_the_change_goes_on() {
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Pr, &[], None)), @"
        Closing as duplicate of #12. If this is incorrect, reopen the pull request (it will not be closed again). Its author can also write `/canonry not a duplicate`, and a maintainer `/canonry undo`: both open it again. A 👎 from its author, or from two people, is noted as an objection.

        The same change is proposed in #12: Exec approvals ignore ask=off
        What is missing there is welcome there.

        Confidence: 95 %.
        ");
    }

    #[test]
    fn an_own_template_keeps_the_target_and_the_objection() {
        let facts = facts();
        let full = "Dup of {target} ({title}), {confidence} {unknown} {\n{evidence}\n{objection}";
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts, Some(full))), @"
        Dup of #12 (Exec approvals ignore ask=off), 95 % {unknown} {
        What both issues share (confidence 95 %):

        - the error `approval required`
        - the setting {target}
        If this is incorrect, reopen the issue (it will not be closed again). Its author can also write `/canonry not a duplicate`, and a maintainer `/canonry undo`: both open it again. A 👎 from its author, or from two people, is noted as an objection.
        ");
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts, Some("Thanks all the same!"))), @"
        Closing as duplicate of #12.

        Thanks all the same!

        If this is incorrect, reopen the issue (it will not be closed again). Its author can also write `/canonry not a duplicate`, and a maintainer `/canonry undo`: both open it again. A 👎 from its author, or from two people, is noted as an objection.
        ");
    }

    #[test]
    fn the_back_link_lists_each_duplicate_once() {
        let comment = back_link_comment(ItemType::Issue, &[number(9), number(3), number(9)]);
        assert_eq!(comment, "Closed as duplicates of this issue:\n\n- #3\n- #9");
        assert_eq!(
            back_link_comment(ItemType::Pr, &[]),
            "Nothing is closed as a duplicate of this pull request any more."
        );
        let many: Vec<ItemNumber> = (1..=20_000).map(number).collect();
        let comment = back_link_comment(ItemType::Issue, &many);
        assert!(comment.ends_with("- #500\n- and 19500 more"), "{comment}");
        assert!(comment.len() < 65_536);
    }

    #[test]
    fn the_other_comments_name_their_items() {
        let mut texts = vec![comment_if_refused(ItemType::Issue, number(12))];
        texts.extend(UndoReason::ALL.iter().map(|reason| undo_comment(ItemType::Pr, number(12), *reason)));
        texts.push(repointed_comment(ItemType::Issue, number(12), number(15)));
        insta::assert_snapshot!(texts.join("\n"), @"
        This issue was about to be closed as a duplicate of #12. It stays open: something changed meanwhile, or GitHub did not let it be closed.
        Reopened: this pull request is not a duplicate of #12. It will not be closed as one again.
        Reopened: this pull request was closed in favour of #12, which was the wrong one.
        Reopened: closing this pull request as a duplicate of #12 was taken back.
        Now a duplicate of #15: #12, which this issue was closed in favour of, is itself a duplicate of it. If this is incorrect, reopen the issue (it will not be closed again), or say so in a comment: a maintainer can take this back.
        ");
    }
}
