//! The table of commands. The parser, the help, the documentation and the permissions are derived from it.

use std::collections::HashMap;

use crate::review::Fingerprint;
use crate::{ItemNumber, Login, text_enum};

/// The name that commands begin with, unless a repository chose another one.
pub const DEFAULT_HANDLE: &str = "canonry";

/// The number of mentions by one person on one item within 24 hours that are answered; maintainers have no limit. A
/// conversation needs few.
pub const ANSWERED_A_DAY: usize = 10;

/// The number of mentions by one person in one repository within an hour that are answered; maintainers have no limit.
pub const ANSWERED_AN_HOUR: usize = 10;

/// The number of mentions by all people together in one repository within an hour that are answered: half of what
/// Canonry may write in a minute for everybody else.
pub const ANSWERED_AN_HOUR_IN_ALL: usize = 30;

/// Whether one more mention by a person who is not a maintainer is answered, given the mentions of the last hour in
/// the same repository. Unanswered mentions of one person do not count against other people.
pub fn is_mention_answered(by: &Login, earlier: &[Login]) -> bool {
    let mut times: HashMap<String, usize> = HashMap::new();
    for login in earlier {
        *times.entry(login.key()).or_default() += 1;
    }
    let own = times.get(&by.key()).copied().unwrap_or_default();
    let all: usize = times.into_values().map(|times| times.min(ANSWERED_AN_HOUR)).sum();
    own < ANSWERED_AN_HOUR && all < ANSWERED_AN_HOUR_IN_ALL
}

text_enum! {
    pub enum MentionVerb: "a command" {
        /// Review the new changes of a pull request.
        Review = "review",
        FullReview = "full review",
        Pause = "pause",
        Resume = "resume",
        Why = "why",
        /// Dismiss a finding: it is not posted again for this code.
        NotUseful = "not useful",
        FeedbackStatus = "feedback status",
        FeedbackList = "feedback list",
        FeedbackClear = "feedback clear",
        /// Undo the last clear of reactions.
        FeedbackRestore = "feedback restore",
        DuplicateOf = "duplicate of",
        NotADuplicate = "not a duplicate",
        Undo = "undo",
        Help = "help",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MentionCommand {
    /// Review the new changes of a pull request.
    Review,
    FullReview,
    Pause,
    Resume,
    Why,
    /// Dismiss a finding: it is not posted again for this code.
    NotUseful,
    FeedbackStatus,
    FeedbackList,
    FeedbackClear(Option<Fingerprint>),
    /// Undo the last clear of reactions.
    FeedbackRestore,
    DuplicateOf(ItemNumber),
    /// The item is not a duplicate, or not of this item if a number is given.
    NotADuplicate(Option<ItemNumber>),
    Undo,
    Help,
}

impl MentionCommand {
    pub const fn verb(&self) -> MentionVerb {
        match self {
            Self::Review => MentionVerb::Review,
            Self::FullReview => MentionVerb::FullReview,
            Self::Pause => MentionVerb::Pause,
            Self::Resume => MentionVerb::Resume,
            Self::Why => MentionVerb::Why,
            Self::NotUseful => MentionVerb::NotUseful,
            Self::FeedbackStatus => MentionVerb::FeedbackStatus,
            Self::FeedbackList => MentionVerb::FeedbackList,
            Self::FeedbackClear(_) => MentionVerb::FeedbackClear,
            Self::FeedbackRestore => MentionVerb::FeedbackRestore,
            Self::DuplicateOf(_) => MentionVerb::DuplicateOf,
            Self::NotADuplicate(_) => MentionVerb::NotADuplicate,
            Self::Undo => MentionVerb::Undo,
            Self::Help => MentionVerb::Help,
        }
    }
}

/// The argument that a command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionArgument {
    /// Nothing: a command with more words means something else.
    Nothing,
    Number,
    /// The number of another item, or free text.
    NumberOrWords,
    Pattern,
    /// Free text, which is ignored.
    Words,
}

/// The role of a person on the item that they comment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionRole {
    Maintainer,
    Author,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MayAsk {
    Maintainer,
    MaintainerOrAuthor,
    Anyone,
}

impl MayAsk {
    pub const fn allows(self, role: MentionRole) -> bool {
        match self {
            Self::Maintainer => matches!(role, MentionRole::Maintainer),
            Self::MaintainerOrAuthor => matches!(role, MentionRole::Maintainer | MentionRole::Author),
            Self::Anyone => true,
        }
    }

    /// The people who may use the command, for a sentence.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Maintainer => "maintainers",
            Self::MaintainerOrAuthor => "maintainers and the author",
            Self::Anyone => "anyone",
        }
    }
}

/// Where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionScope {
    Anywhere,
    Pulls,
    Findings,
}

impl MentionScope {
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::Pulls => "on pull requests",
            Self::Findings => "under a finding",
        }
    }
}

/// The complete description of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MentionSpec {
    pub verb: MentionVerb,
    /// Other words for the command, beside the verb.
    pub also: &'static [&'static str],
    pub argument: MentionArgument,
    pub who: MayAsk,
    pub scope: MentionScope,
    pub does: &'static str,
    pub example: &'static str,
}

/// Every command, in the order of the help text.
pub const MENTIONS: &[MentionSpec] = &[
    MentionSpec {
        verb: MentionVerb::Review,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::MaintainerOrAuthor,
        scope: MentionScope::Pulls,
        does: "Reviews what changed since the last review.",
        example: "review",
    },
    MentionSpec {
        verb: MentionVerb::FullReview,
        also: &["review all"],
        argument: MentionArgument::Nothing,
        who: MayAsk::MaintainerOrAuthor,
        scope: MentionScope::Pulls,
        does: "Reviews the whole pull request again.",
        example: "full review",
    },
    MentionSpec {
        verb: MentionVerb::Why,
        also: &[],
        argument: MentionArgument::Words,
        who: MayAsk::Anyone,
        scope: MentionScope::Anywhere,
        does: "Explains what Canonry posted here, or why it posted nothing. Under a finding it explains that finding.",
        example: "why",
    },
    MentionSpec {
        verb: MentionVerb::NotUseful,
        also: &[],
        argument: MentionArgument::Words,
        who: MayAsk::MaintainerOrAuthor,
        scope: MentionScope::Findings,
        does: "Dismisses the finding. It is not posted again while its code stays the same.",
        example: "not useful",
    },
    MentionSpec {
        verb: MentionVerb::DuplicateOf,
        also: &["dup of"],
        argument: MentionArgument::Number,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Marks this as a duplicate of another issue or pull request.",
        example: "duplicate of #12",
    },
    MentionSpec {
        verb: MentionVerb::NotADuplicate,
        also: &["not duplicate", "not a dup"],
        argument: MentionArgument::NumberOrWords,
        who: MayAsk::MaintainerOrAuthor,
        scope: MentionScope::Anywhere,
        does: "Marks this as no duplicate. Removes the suggestion and its label, and reopens this if Canonry closed it.",
        example: "not a duplicate",
    },
    MentionSpec {
        verb: MentionVerb::Undo,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Reopens this if Canonry closed it.",
        example: "undo",
    },
    MentionSpec {
        verb: MentionVerb::FeedbackStatus,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Anyone,
        scope: MentionScope::Anywhere,
        does: "Shows how reactions to findings count in this repository.",
        example: "feedback status",
    },
    MentionSpec {
        verb: MentionVerb::FeedbackList,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Anyone,
        scope: MentionScope::Anywhere,
        does: "Lists the findings that people reacted to.",
        example: "feedback list",
    },
    MentionSpec {
        verb: MentionVerb::FeedbackClear,
        also: &[],
        argument: MentionArgument::Pattern,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Resets the reactions to one kind of finding, or to all.",
        example: "feedback clear fp-79e99c7e",
    },
    MentionSpec {
        verb: MentionVerb::FeedbackRestore,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Undoes the last `feedback clear`.",
        example: "feedback restore",
    },
    MentionSpec {
        verb: MentionVerb::Pause,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Stops reviews, suggestions and closes in this repository. Commands are still answered.",
        example: "pause",
    },
    MentionSpec {
        verb: MentionVerb::Resume,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Maintainer,
        scope: MentionScope::Anywhere,
        does: "Ends a pause, and allows automatic closes again after too many objections.",
        example: "resume",
    },
    MentionSpec {
        verb: MentionVerb::Help,
        also: &[],
        argument: MentionArgument::Nothing,
        who: MayAsk::Anyone,
        scope: MentionScope::Anywhere,
        does: "Lists these commands.",
        example: "help",
    },
];

impl MentionVerb {
    /// Whether the command undoes or stops something that Canonry does. Such a command is always executed, whatever
    /// the limits, and answered first.
    pub const fn corrects(self) -> bool {
        matches!(self, Self::Undo | Self::NotADuplicate | Self::Pause)
    }

    pub fn spec(self) -> &'static MentionSpec {
        let found = MENTIONS.iter().find(|spec| spec.verb == self);
        found.expect("invariant: every command has a line in the table, as a test says")
    }
}

impl MentionSpec {
    /// All forms of the command, the usual one first.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.verb.as_str()).chain(self.also.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{
        ANSWERED_AN_HOUR, ANSWERED_AN_HOUR_IN_ALL, MENTIONS, MayAsk, MentionRole, MentionVerb, is_mention_answered,
    };
    use crate::Login;
    use crate::mention::{MentionRequest, parse_mention};

    fn person(number: usize) -> Login {
        format!("ann{number}").parse().expect("a login")
    }

    #[test]
    fn ten_an_hour_are_answered_and_thirty_of_all() {
        let asked = |times: &[usize]| -> Vec<Login> {
            times.iter().enumerate().flat_map(|(number, times)| vec![person(number); *times]).collect()
        };
        assert!(is_mention_answered(&person(0), &asked(&[9])));
        assert!(!is_mention_answered(&"ANN0".parse().expect("a login"), &asked(&[10])));
        assert!(is_mention_answered(&person(1), &asked(&[1_000])), "one person keeps nobody else out");
        assert!(is_mention_answered(&person(3), &asked(&[10, 10, 9])));
        assert!(!is_mention_answered(&person(3), &asked(&[10, 10, 10])));
    }

    proptest! {
        #[test]
        fn whoever_asks_how_often_few_are_answered(asking in proptest::collection::vec(0usize..8, 0..200)) {
            let (mut earlier, mut answered) = (Vec::new(), Vec::new());
            for by in asking.into_iter().map(person) {
                if is_mention_answered(&by, &earlier) {
                    answered.push(by.clone());
                }
                earlier.push(by);
            }
            prop_assert!(answered.len() <= ANSWERED_AN_HOUR_IN_ALL);
            for number in 0..8 {
                let of_one = answered.iter().filter(|by| **by == person(number)).count();
                let asked = earlier.iter().filter(|by| **by == person(number)).count();
                prop_assert!(of_one <= ANSWERED_AN_HOUR);
                if earlier.len() <= ANSWERED_AN_HOUR_IN_ALL {
                    prop_assert_eq!(of_one, asked.min(ANSWERED_AN_HOUR));
                }
            }
        }
    }

    #[test]
    fn every_command_has_one_line() {
        let listed: Vec<MentionVerb> = MENTIONS.iter().map(|spec| spec.verb).collect();
        let all: BTreeSet<MentionVerb> = MentionVerb::ALL.iter().copied().collect();
        assert_eq!((listed.len(), listed.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
    }

    #[test]
    fn no_two_commands_share_words() {
        let words: Vec<&str> = MENTIONS.iter().flat_map(|spec| spec.words()).collect();
        let distinct: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(words.len(), distinct.len(), "{words:?}");
        for word in words {
            assert!(word == word.to_lowercase() && word.split_whitespace().collect::<Vec<_>>().join(" ") == word);
        }
    }

    #[test]
    fn every_example_means_its_command() {
        for spec in MENTIONS {
            let asked = parse_mention(&format!("/canonry {}", spec.example), "canonry");
            let Some(MentionRequest::Command(command)) = asked else { panic!("{asked:?} for {:?}", spec.example) };
            assert_eq!(command.verb(), spec.verb, "{:?}", spec.example);
        }
    }

    #[test]
    fn who_may_ask_is_who_is_named() {
        let roles = [MentionRole::Maintainer, MentionRole::Author, MentionRole::Other];
        let allowed = |who: MayAsk| roles.map(|role| who.allows(role));
        assert_eq!(allowed(MayAsk::Maintainer), [true, false, false]);
        assert_eq!(allowed(MayAsk::MaintainerOrAuthor), [true, true, false]);
        assert_eq!(allowed(MayAsk::Anyone), [true, true, true]);
    }
}
