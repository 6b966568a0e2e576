//! What Canonry answers: one or two short sentences. Whatever text of a stranger is put in was quoted by the caller.
//!
//! None of them says "duplicate of" before a number: at the start of a comment GitHub takes that as an order.

use super::commands::{MentionArgument, MentionScope, MentionSpec};
use crate::{ItemNumber, ItemType};

/// To somebody who may not ask for it.
pub fn refused(spec: &MentionSpec) -> String {
    format!("Sorry, only {} can ask for `{}` here.", spec.who.in_words(), spec.verb)
}

/// To somebody who asks where it makes no sense.
pub fn not_here(spec: &MentionSpec, handle: &str) -> String {
    match spec.scope {
        MentionScope::Anywhere | MentionScope::Pulls => {
            format!("`{}` is for pull requests, and this is an issue.", spec.verb)
        }
        MentionScope::Findings => {
            format!("`{0}` is meant for one finding: please say `/{handle} {0}` as a reply to it.", spec.verb)
        }
    }
}

/// When nobody knows what was asked for; with the command that it begins like.
pub fn unknown_mention(near: Option<&MentionSpec>, handle: &str) -> String {
    match near {
        None => format!("I don't know that one. `/{handle} help` lists what I can do."),
        Some(spec) if spec.argument == MentionArgument::Nothing => {
            format!("I am not sure what you mean. `/{handle} {}` works without more words.", spec.verb)
        }
        Some(spec) => format!("I am not sure what you mean. It works like this: `/{handle} {}`.", spec.example),
    }
}

/// To `duplicate of` and `not a duplicate`, with the item's own number.
pub fn needs_another_number() -> String {
    "That is the number of this one. Please name another.".to_owned()
}

/// When an item is named that is not there, or is of the other type.
pub fn unknown_item(item_type: ItemType, number: ItemNumber) -> String {
    format!("I know of no {} with the number {number} here.", item_type.in_words())
}

/// To `duplicate of`, when nothing is closed because of it now.
pub fn duplicate_ruled(target: ItemNumber, is_open: bool) -> String {
    let next = if is_open { " The next plan can close this one." } else { "" };
    format!("Noted: this one and #{target} are the same.{next}")
}

/// To `duplicate of`, when it is closed at once.
pub fn duplicate_ruled_and_closing(target: ItemNumber) -> String {
    format!(
        "Noted: this one and #{target} are the same. I close this one in a moment, unless something speaks against it."
    )
}

/// To `not a duplicate`.
pub fn ruled_apart(target: ItemNumber) -> String {
    format!("Noted: this one and #{target} are different. I won't bring it up again.")
}

/// To an author's `not a duplicate`, when a maintainer ruled otherwise.
pub fn ruled_by_a_maintainer(target: ItemNumber) -> String {
    format!("A maintainer ruled that this one and #{target} are the same, so please ask them.")
}

/// To `not a duplicate`, when nobody said that it is one.
pub fn not_apart(handle: &str) -> String {
    format!(
        "I have not called this a duplicate. To rule about a pair, name the other: `/{handle} not a duplicate of #12`."
    )
}

/// To `undo`, when there is nothing to be undone.
pub fn nothing_to_undo(why: NothingToUndo) -> String {
    match why {
        NothingToUndo::NeverClosed => "I have not closed this one, so there is nothing to undo.",
        NothingToUndo::IsOpen => "This one is open already.",
        NothingToUndo::ClosedByOthers => "Somebody else closed this one after me, so I leave it to them.",
    }
    .to_owned()
}

/// Why nothing is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NothingToUndo {
    /// Canonry never closed it.
    NeverClosed,
    IsOpen,
    /// Another account closed it last.
    ClosedByOthers,
}

/// To words that arrive after others that say the contrary, or after what they are about has changed.
pub fn overtaken() -> String {
    "Things have changed since this was written, so I left them as they are. Please say it again if you still want it."
        .to_owned()
}

/// To `resume`, when nothing holds Canonry back.
pub fn not_paused() -> String {
    "Nothing is paused here.".to_owned()
}

/// To who asks for a write while everything is paused.
pub fn while_paused(handle: &str) -> String {
    format!("I am paused in this repository. A maintainer can say `/{handle} resume`.")
}

/// To `review`, where reviews are off: by a choice, by default, or by a mistake in the file.
pub fn reviews_are_off() -> String {
    "Reviews are off here: a maintainer can write `review: {enabled: true}` into `.canonry.yml` on the default branch."
        .to_owned()
}

/// To who asks for a review of a pull request that is closed.
pub fn review_of_closed() -> String {
    "This pull request is closed. Reopen it and ask again.".to_owned()
}

/// To an author's `not useful` about a serious finding.
pub fn only_a_maintainer_silences() -> String {
    "Noted. This one is serious, so it stays until a maintainer dismisses it too.".to_owned()
}

/// When it was tried and did not work.
pub fn could_not(quoted: &str) -> String {
    format!("That did not work: {quoted}")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{
        NothingToUndo, could_not, duplicate_ruled, duplicate_ruled_and_closing, needs_another_number, not_apart,
        not_here, not_paused, nothing_to_undo, only_a_maintainer_silences, overtaken, refused, review_of_closed,
        reviews_are_off, ruled_apart, ruled_by_a_maintainer, unknown_item, unknown_mention, while_paused,
    };
    use crate::items::named_duplicate::named_duplicate;
    use crate::mention::{MENTIONS, MentionVerb, mention_help, parse_mention};
    use crate::{ItemNumber, ItemType};

    fn every_answer() -> Vec<String> {
        let twelve = ItemNumber::new(12).expect("positive");
        let mut answers: Vec<String> = vec![
            refused(MentionVerb::Pause.spec()),
            refused(MentionVerb::Review.spec()),
            not_here(MentionVerb::FullReview.spec(), "canonry"),
            not_here(MentionVerb::NotUseful.spec(), "canonry"),
            unknown_mention(None, "canonry"),
            unknown_mention(Some(MentionVerb::Pause.spec()), "canonry"),
            unknown_mention(Some(MentionVerb::DuplicateOf.spec()), "canonry"),
            needs_another_number(),
            unknown_item(ItemType::Pr, twelve),
            duplicate_ruled(twelve, true),
            duplicate_ruled(twelve, false),
            duplicate_ruled_and_closing(twelve),
            ruled_apart(twelve),
            ruled_by_a_maintainer(twelve),
            not_apart("canonry"),
        ];
        answers.extend(
            [NothingToUndo::NeverClosed, NothingToUndo::IsOpen, NothingToUndo::ClosedByOthers].map(nothing_to_undo),
        );
        answers.extend([
            overtaken(),
            not_paused(),
            while_paused("canonry"),
            reviews_are_off(),
            review_of_closed(),
            only_a_maintainer_silences(),
            could_not("GitHub says no."),
        ]);
        answers
    }

    #[test]
    fn read_aloud() {
        assert_snapshot!(every_answer().join("\n"), @r"
        Sorry, only maintainers can ask for `pause` here.
        Sorry, only maintainers and the author can ask for `review` here.
        `full review` is for pull requests, and this is an issue.
        `not useful` is meant for one finding: please say `/canonry not useful` as a reply to it.
        I don't know that one. `/canonry help` lists what I can do.
        I am not sure what you mean. `/canonry pause` works without more words.
        I am not sure what you mean. It works like this: `/canonry duplicate of #12`.
        That is the number of this one. Please name another.
        I know of no pull request with the number 12 here.
        Noted: this one and #12 are the same. The next plan can close this one.
        Noted: this one and #12 are the same.
        Noted: this one and #12 are the same. I close this one in a moment, unless something speaks against it.
        Noted: this one and #12 are different. I won't bring it up again.
        A maintainer ruled that this one and #12 are the same, so please ask them.
        I have not called this a duplicate. To rule about a pair, name the other: `/canonry not a duplicate of #12`.
        I have not closed this one, so there is nothing to undo.
        This one is open already.
        Somebody else closed this one after me, so I leave it to them.
        Things have changed since this was written, so I left them as they are. Please say it again if you still want it.
        Nothing is paused here.
        I am paused in this repository. A maintainer can say `/canonry resume`.
        Reviews are off here: a maintainer can write `review: {enabled: true}` into `.canonry.yml` on the default branch.
        This pull request is closed. Reopen it and ask again.
        Noted. This one is serious, so it stays until a maintainer dismisses it too.
        That did not work: GitHub says no.
        ");
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
