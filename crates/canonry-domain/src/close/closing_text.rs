//! Writes the comments on items that Canonry closes or reopens, and on their canonicals.

use crate::duplicates::suggestion_text::{in_brackets, same};
use crate::{ItemNumber, ItemType, PairFact, evidence_sentences, text_enum};

/// The label that Canonry sets. Canonry never touches the label `duplicate` that people use themselves.
pub const POSSIBLE_DUPLICATE: &str = "possible-duplicate";

/// The most duplicates that a back-link lists: 500 lines stay far below the 65,536 characters of a comment.
const BACK_LINKS_SHOWN: usize = 500;

/// The contents of a closing comment. The title is inserted as it is: the caller has removed every mention, reference
/// and marker from it.
#[derive(Debug, Clone, Copy)]
pub struct ClosingText<'a> {
    pub item_type: ItemType,
    pub target: ItemNumber,
    pub target_title: Option<&'a str>,
    pub facts: &'a [PairFact],
    /// Whether a maintainer decided to close the item: its author cannot undo that with a comment.
    pub approved: bool,
    /// The name that commands begin with; `None` if no process listens to commands.
    pub handle: Option<&'a str>,
    /// The repository's own text with `{target}`, `{title}`, `{evidence}` and `{objection}`.
    pub template: Option<&'a str>,
}

text_enum! {
    pub enum UndoReason: "a reason to undo" {
        NotDuplicate = "not-duplicate",
        /// The item is a duplicate, but of another item.
        WrongTarget = "wrong-target",
        Other = "other",
    }
}

/// The comment that is written before an item is closed.
///
/// A repository's own template may leave out the target or how to object. Whatever is missing is added, because the
/// author must always see both.
pub fn closing_comment(text: &ClosingText<'_>) -> String {
    let evidence = evidence_sentences(text.facts);
    let objection = if_wrong(text.approved, text.handle);
    let Some(template) = text.template else {
        // With evidence the title is not needed.
        let title = if evidence.is_none() { in_brackets(text.target_title.unwrap_or_default()) } else { String::new() };
        let mut parts = vec![format!("{}{title}.", closed_for(text.item_type, text.target))];
        parts.extend(evidence);
        parts.push(objection);
        return parts.join("\n\n");
    };
    let fill = |name: &str| match name {
        "target" => Some(format!("#{}", text.target)),
        "title" => Some(text.target_title.unwrap_or_default().to_owned()),
        "evidence" => Some(evidence.clone().unwrap_or_default()),
        // Deprecated: comments contain no percentages, and only what is confident enough is closed.
        "confidence" => Some("high".to_owned()),
        "objection" => Some(objection.clone()),
        _ => None,
    };
    let mut parts = vec![filled(template, fill).trim().to_owned()];
    if !template.contains("{target}") {
        parts.insert(0, format!("{}.", closed_for(text.item_type, text.target)));
    }
    if !template.contains("{objection}") {
        parts.push(objection.clone());
    }
    parts.join("\n\n")
}

/// The new text of the closing comment if the close does not happen: another person commented or changed something
/// first, the plan was withdrawn, or GitHub refused the close.
pub fn comment_if_refused(item_type: ItemType, target: ItemNumber) -> String {
    format!(
        "This stays open: something changed in the meantime, or GitHub refused the close. #{target} may still be {}.",
        same(item_type)
    )
}

/// The comment on a canonical that lists the items that were closed as its duplicates.
pub fn back_link_comment(item_type: ItemType, duplicates: &[ItemNumber]) -> String {
    let mut numbers = duplicates.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let this = item_type.in_words();
    if numbers.is_empty() {
        return format!("No {this} is closed as a duplicate of this one any more.");
    }
    let mut lines = vec![format!("Closed as duplicates of this {this}:"), String::new()];
    lines.extend(numbers.iter().take(BACK_LINKS_SHOWN).map(|number| format!("- #{number}")));
    if numbers.len() > BACK_LINKS_SHOWN {
        lines.push(format!("- and {} more", numbers.len() - BACK_LINKS_SHOWN));
    }
    lines.join("\n")
}

/// The comment on an item that is reopened.
pub fn undo_comment(item_type: ItemType, target: ItemNumber, reason: UndoReason) -> String {
    let same = same(item_type);
    match reason {
        UndoReason::NotDuplicate => {
            format!("Reopened: this is not {same} as #{target}. Canonry will not close it because of #{target} again.")
        }
        UndoReason::WrongTarget => format!("Reopened: #{target} is not {same}. The close named the wrong number."),
        UndoReason::Other => format!("Reopened: the close because of #{target} was undone."),
    }
}

/// The comment on a closed duplicate whose canonical is closed as a duplicate of another item.
pub fn repointed_comment(item_type: ItemType, from: ItemNumber, target: ItemNumber) -> String {
    format!(
        "{}. It replaces #{from}, which is closed as a duplicate too.\n\n{}",
        closed_for(item_type, target),
        if_wrong(true, None)
    )
}

/// Says that the item is closed, and where to continue. The text never contains "duplicate of" before a number: GitHub
/// executes that at the start of a comment as a command, and so would a program that reads why an item was closed.
fn closed_for(item_type: ItemType, target: ItemNumber) -> String {
    match item_type {
        ItemType::Issue => format!("Closed as a duplicate; please follow #{target}"),
        ItemType::Pr => format!("Closed as a duplicate; please continue in #{target}"),
    }
}

/// How to object. It names only ways that work. The author of an item cannot always reopen it, so one way needs no
/// rights.
fn if_wrong(approved: bool, handle: Option<&str>) -> String {
    let other_way = match (handle, approved) {
        (None, _) => "ask a maintainer to".to_owned(),
        (Some(handle), true) => format!("ask a maintainer to comment `/{handle} undo`"),
        (Some(handle), false) => format!("comment `/{handle} not a duplicate` (its author or a maintainer)"),
    };
    format!("**Wrong?** Reopen it, or {other_way}. Canonry will not close it again.")
}

/// Fills in a template in one pass, so that an inserted text is never read as a template. Unknown names stay as they
/// are.
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
    use crate::{ItemNumber, ItemType, PairFact, undo_comment};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("valid")
    }

    fn closing<'a>(item_type: ItemType, facts: &'a [PairFact], template: Option<&'a str>) -> ClosingText<'a> {
        let target_title = Some("Exec approvals ignore ask=off");
        let (target, approved, handle) = (number(79), false, Some("canonry"));
        ClosingText { item_type, target, target_title, facts, approved, handle, template }
    }

    fn facts() -> Vec<PairFact> {
        vec![PairFact::Message("approval required by {target}".into()), PairFact::Place("gzip.rs:95:16".into())]
    }

    #[test]
    fn only_ways_out_that_work_are_named() {
        let ruled = closing_comment(&ClosingText { approved: true, ..closing(ItemType::Issue, &[], None) });
        insta::assert_snapshot!(ruled, @"
        Closed as a duplicate; please follow #79 (*Exec approvals ignore ask=off*).

        **Wrong?** Reopen it, or ask a maintainer to comment `/canonry undo`. Canonry will not close it again.
        ");
        let unheard = closing_comment(&ClosingText { handle: None, ..closing(ItemType::Issue, &[], None) });
        insta::assert_snapshot!(unheard, @"
        Closed as a duplicate; please follow #79 (*Exec approvals ignore ask=off*).

        **Wrong?** Reopen it, or ask a maintainer to. Canonry will not close it again.
        ");
    }

    #[test]
    fn a_close_says_where_to_go_and_why() {
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts(), None)), @"
        Closed as a duplicate; please follow #79.

        Both show `approval required by {target}` at `gzip.rs:95:16`.

        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Pr, &facts(), None)), @"
        Closed as a duplicate; please continue in #79.

        Both show `approval required by {target}` at `gzip.rs:95:16`.

        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Pr, &[], None)), @"
        Closed as a duplicate; please continue in #79 (*Exec approvals ignore ask=off*).

        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
    }

    #[test]
    fn an_own_template_keeps_the_target_and_the_objection() {
        let facts = facts();
        let full = "Dup of {target} ({title}), confidence {confidence} {unknown} {\n{evidence}\n{objection}";
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts, Some(full))), @"
        Dup of #79 (Exec approvals ignore ask=off), confidence high {unknown} {
        Both show `approval required by {target}` at `gzip.rs:95:16`.
        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
        insta::assert_snapshot!(closing_comment(&closing(ItemType::Issue, &facts, Some("Thanks all the same!"))), @"
        Closed as a duplicate; please follow #79.

        Thanks all the same!

        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
    }

    #[test]
    fn the_back_link_lists_each_duplicate_once() {
        let comment = back_link_comment(ItemType::Issue, &[number(9), number(3), number(9)]);
        assert_eq!(comment, "Closed as duplicates of this issue:\n\n- #3\n- #9");
        assert_eq!(
            back_link_comment(ItemType::Pr, &[]),
            "No pull request is closed as a duplicate of this one any more."
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
        insta::assert_snapshot!(texts.join("\n---\n"), @"
        This stays open: something changed in the meantime, or GitHub refused the close. #12 may still be the same problem.
        ---
        Reopened: this is not the same change as #12. Canonry will not close it because of #12 again.
        ---
        Reopened: #12 is not the same change. The close named the wrong number.
        ---
        Reopened: the close because of #12 was undone.
        ---
        Closed as a duplicate; please follow #15. It replaces #12, which is closed as a duplicate too.

        **Wrong?** Reopen it, or ask a maintainer to. Canonry will not close it again.
        ");
    }
}
