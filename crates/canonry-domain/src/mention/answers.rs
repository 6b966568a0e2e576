//! Writes Canonry's answers to commands: what was done or why not, in one or two short sentences. The caller has
//! quoted any inserted text of strangers.
//!
//! No answer contains "duplicate of" before a number: at the start of a comment GitHub executes that as a command.

use super::commands::{MentionArgument, MentionScope, MentionSpec};
use crate::{ItemNumber, ItemType, Login};

/// The answer to a person who may not use the command.
pub fn refused(spec: &MentionSpec) -> String {
    format!("Only {} can use `{}` here.", spec.who.in_words(), spec.verb)
}

/// The answer to a command that does not work in this place.
pub fn not_here(spec: &MentionSpec, handle: &str) -> String {
    match spec.scope {
        MentionScope::Anywhere | MentionScope::Pulls => {
            format!("`{}` works on pull requests; this is an issue.", spec.verb)
        }
        MentionScope::Findings => {
            format!("`{0}` works under a finding: reply `/{handle} {0}` to its comment.", spec.verb)
        }
    }
}

/// The answer to an unknown command, with the command that it resembles.
pub fn unknown_mention(near: Option<&MentionSpec>, handle: &str) -> String {
    match near {
        None => format!("Unknown command. `/{handle} help` lists the commands."),
        Some(spec) if spec.argument == MentionArgument::Nothing => {
            format!("Unknown command. Did you mean `/{handle} {}`, without more words?", spec.verb)
        }
        Some(spec) => format!("Unknown command. Did you mean `/{handle} {}`?", spec.example),
    }
}

/// The answer to `duplicate of` and `not a duplicate` with the item's own number.
pub fn needs_another_number(item_type: ItemType) -> String {
    format!("That is the number of this {}. Name the other number.", item_type.in_words())
}

/// The answer if the named item does not exist, or is of the other type.
pub fn unknown_item(item_type: ItemType, number: ItemNumber) -> String {
    format!("There is no {} with the number {number} in this repository.", item_type.in_words())
}

/// The answer to `duplicate of` if nothing is closed because of it now.
pub fn duplicate_ruled(by: &Login, item_type: ItemType, target: ItemNumber, is_open: bool) -> String {
    let next = match is_open {
        true => format!(", so the next close plan can close this {}", item_type.in_words()),
        false => String::new(),
    };
    format!("Recorded by `{by}`: the same as #{target}{next}.")
}

/// The answer to `duplicate of` if the item is closed at once.
pub fn duplicate_ruled_and_closing(by: &Login, item_type: ItemType, target: ItemNumber) -> String {
    format!(
        "Recorded by `{by}`: the same as #{target}, so this {} will be closed shortly, unless a safety check stops it.",
        item_type.in_words()
    )
}

/// The answer to `not a duplicate`.
pub fn ruled_apart(by: &Login, target: ItemNumber) -> String {
    format!("Recorded by `{by}`: not the same as #{target}, so Canonry will not suggest #{target} here again.")
}

/// The answer to `not a duplicate` if a close was announced.
pub fn close_cancelled(by: &Login, target: ItemNumber) -> String {
    format!("Close cancelled by `{by}`: not the same as #{target}.")
}

/// The answer to an author's `not a duplicate` if a maintainer ruled otherwise.
pub fn ruled_by_a_maintainer(target: ItemNumber) -> String {
    format!("A maintainer ruled that this is the same as #{target}; only a maintainer can change that.")
}

/// The answer to `not a duplicate` if nobody called the item a duplicate.
pub fn not_apart(handle: &str) -> String {
    format!(
        "Canonry has not called this a duplicate. To rule out a pair, name the other number: `/{handle} not a duplicate of #12`."
    )
}

/// The answer to `undo` if there is nothing to undo.
pub fn nothing_to_undo(why: NothingToUndo) -> String {
    match why {
        NothingToUndo::NeverClosed => "Nothing to undo: Canonry did not close this.",
        NothingToUndo::IsOpen => "Nothing to undo: this is open.",
        NothingToUndo::ClosedByOthers => "Not reopened: somebody else closed this after Canonry did.",
    }
    .to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NothingToUndo {
    NeverClosed,
    IsOpen,
    /// Another account closed the item last.
    ClosedByOthers,
}

/// The answer to a command that arrives after a later, contrary command, or after its subject has changed.
pub fn overtaken() -> String {
    "Not done: something changed after this was written. Repeat the command if you still want it.".to_owned()
}

/// The answer to `pause`.
pub fn paused(by: &Login, handle: &str) -> String {
    format!("Paused in this repository by `{by}`, until a maintainer writes `/{handle} resume`.")
}

/// The answer to `resume`.
pub fn resumed(by: &Login) -> String {
    format!("Resumed in this repository by `{by}`.")
}

/// The answer to `resume` if Canonry is not paused.
pub fn not_paused() -> String {
    "Canonry is not paused here.".to_owned()
}

/// The answer to a command that needs a write while Canonry is paused.
pub fn while_paused(handle: &str) -> String {
    format!("Canonry is paused in this repository. A maintainer can end that with `/{handle} resume`.")
}

/// The answer to `review` if reviews are off: by choice, by default, or because of a mistake in the file.
pub fn reviews_are_off() -> String {
    "Reviews are off here. A maintainer can set `review: {enabled: true}` in `.canonry.yml` on the default branch."
        .to_owned()
}

/// The answer to a review request for a closed pull request.
pub fn review_of_closed() -> String {
    "This pull request is closed. Reopen it and ask again.".to_owned()
}

/// The answer to `not useful`.
pub fn dismissed(by: &Login) -> String {
    format!("Dismissed by `{by}`: Canonry will not post it again while this code stays the same.")
}

/// The answer to an author's `not useful` about a serious finding.
pub fn only_a_maintainer_silences(by: &Login) -> String {
    format!("Recorded by `{by}`: this finding is serious, so it stays open until a maintainer dismisses it too.")
}

/// The answer to a command that failed.
pub fn could_not(quoted: &str) -> String {
    format!("That failed: {quoted}")
}

#[cfg(test)]
mod tests {
    use canonry_testkit::public_text::{assert_readable, words_in_sight};
    use insta::assert_snapshot;

    use super::{
        NothingToUndo, close_cancelled, could_not, dismissed, duplicate_ruled, duplicate_ruled_and_closing,
        needs_another_number, not_apart, not_here, not_paused, nothing_to_undo, only_a_maintainer_silences, overtaken,
        paused, refused, resumed, review_of_closed, reviews_are_off, ruled_apart, ruled_by_a_maintainer, unknown_item,
        unknown_mention, while_paused,
    };
    use crate::items::named_duplicate::named_duplicate;
    use crate::mention::{MENTIONS, MentionVerb, mention_help, parse_mention};
    use crate::{ItemNumber, ItemType};

    fn every_answer() -> Vec<String> {
        let (twelve, mona) = (ItemNumber::new(12).expect("positive"), "mona".parse().expect("a login"));
        let mut answers: Vec<String> = vec![
            refused(MentionVerb::Pause.spec()),
            refused(MentionVerb::Review.spec()),
            not_here(MentionVerb::FullReview.spec(), "canonry"),
            not_here(MentionVerb::NotUseful.spec(), "canonry"),
            unknown_mention(None, "canonry"),
            unknown_mention(Some(MentionVerb::Pause.spec()), "canonry"),
            unknown_mention(Some(MentionVerb::DuplicateOf.spec()), "canonry"),
            needs_another_number(ItemType::Issue),
            unknown_item(ItemType::Pr, twelve),
            duplicate_ruled(&mona, ItemType::Issue, twelve, true),
            duplicate_ruled(&mona, ItemType::Pr, twelve, false),
            duplicate_ruled_and_closing(&mona, ItemType::Pr, twelve),
            ruled_apart(&mona, twelve),
            close_cancelled(&mona, twelve),
            ruled_by_a_maintainer(twelve),
            not_apart("canonry"),
        ];
        answers.extend(
            [NothingToUndo::NeverClosed, NothingToUndo::IsOpen, NothingToUndo::ClosedByOthers].map(nothing_to_undo),
        );
        answers.extend([
            overtaken(),
            paused(&mona, "canonry"),
            resumed(&mona),
            not_paused(),
            while_paused("canonry"),
            reviews_are_off(),
            review_of_closed(),
            dismissed(&mona),
            only_a_maintainer_silences(&mona),
            could_not("GitHub says no."),
        ]);
        answers
    }

    #[test]
    fn read_aloud() {
        assert_snapshot!(every_answer().join("\n"), @"
        Only maintainers can use `pause` here.
        Only maintainers and the author can use `review` here.
        `full review` works on pull requests; this is an issue.
        `not useful` works under a finding: reply `/canonry not useful` to its comment.
        Unknown command. `/canonry help` lists the commands.
        Unknown command. Did you mean `/canonry pause`, without more words?
        Unknown command. Did you mean `/canonry duplicate of #12`?
        That is the number of this issue. Name the other number.
        There is no pull request with the number 12 in this repository.
        Recorded by `mona`: the same as #12, so the next close plan can close this issue.
        Recorded by `mona`: the same as #12.
        Recorded by `mona`: the same as #12, so this pull request will be closed shortly, unless a safety check stops it.
        Recorded by `mona`: not the same as #12, so Canonry will not suggest #12 here again.
        Close cancelled by `mona`: not the same as #12.
        A maintainer ruled that this is the same as #12; only a maintainer can change that.
        Canonry has not called this a duplicate. To rule out a pair, name the other number: `/canonry not a duplicate of #12`.
        Nothing to undo: Canonry did not close this.
        Nothing to undo: this is open.
        Not reopened: somebody else closed this after Canonry did.
        Not done: something changed after this was written. Repeat the command if you still want it.
        Paused in this repository by `mona`, until a maintainer writes `/canonry resume`.
        Resumed in this repository by `mona`.
        Canonry is not paused here.
        Canonry is paused in this repository. A maintainer can end that with `/canonry resume`.
        Reviews are off here. A maintainer can set `review: {enabled: true}` in `.canonry.yml` on the default branch.
        This pull request is closed. Reopen it and ask again.
        Dismissed by `mona`: Canonry will not post it again while this code stays the same.
        Recorded by `mona`: this finding is serious, so it stays open until a maintainer dismisses it too.
        That failed: GitHub says no.
        ");
    }

    #[test]
    fn every_answer_is_short_and_readable() {
        for answer in every_answer() {
            assert_readable(&answer);
            assert!(words_in_sight(&answer) <= 30, "{} words: {answer}", words_in_sight(&answer));
        }
        assert_readable(&mention_help("canonry"));
    }

    #[test]
    fn no_answer_gives_an_order_to_anybody() {
        let repo = "octo/cat".parse().expect("a name");
        let more = MENTIONS.iter().flat_map(|spec| [refused(spec), unknown_mention(Some(spec), "tide")]);
        for answer in every_answer().into_iter().chain(more).chain([mention_help("canonry")]) {
            assert_eq!(named_duplicate(&repo, &answer).filter(|_| !answer.contains('`')), None, "{answer}");
            assert_eq!(parse_mention(&answer, "canonry"), None, "{answer}");
            assert!(!answer.contains('@'), "{answer}");
        }
    }
}
