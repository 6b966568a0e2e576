//! A comment of another reviewer on a line of a change, and what people made of it.

use jiff::Timestamp;

use crate::review::{LineRange, RepoPath};
use crate::text_enum;
use crate::{GithubId, Login};

/// The first comment of a thread on a diff, by somebody else than Canonry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRemark {
    pub id: GithubId,
    pub author: RemarkAuthor,
    pub path: RepoPath,
    /// The lines at the head; `None` once their code changed, and for removed lines.
    pub lines: Option<LineRange>,
    /// What it says, without markup, secrets and control characters, and not longer than a few sentences.
    pub text: String,
    /// The thread on GitHub.
    pub link: Option<String>,
    pub said_at: Option<Timestamp>,
    pub thread: RemarkThread,
    /// The numbers of people who reacted with 👍 and with 👎.
    pub thumbs: (u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemarkAuthor {
    pub login: Login,
    /// Whether `review.referee.bots` names the account.
    pub is_bot: bool,
}

/// The state of the thread that a remark begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemarkThread {
    pub is_resolved: bool,
    /// Whether the commented code changed since.
    pub is_outdated: bool,
}

impl RemarkThread {
    /// Whether people still see it at its line and have not answered it.
    pub fn is_open(self) -> bool {
        !self.is_resolved && !self.is_outdated
    }
}

text_enum! {
    /// What people made of a remark.
    pub enum RemarkOutcome: "an outcome of a remark" {
        /// People accepted it, or resolved its thread after the code changed.
        Right = "right",
        /// People rejected it, or resolved its thread without changing the code.
        Wrong = "wrong",
    }
}

/// What people made of a remark; `None` as long as its thread is open and nobody reacted. Reactions count first: a
/// person who resolves a thread may only have tidied up.
pub fn remark_outcome(thread: RemarkThread, (up, down): (u32, u32)) -> Option<RemarkOutcome> {
    match (up.cmp(&down), thread.is_resolved, thread.is_outdated) {
        (std::cmp::Ordering::Greater, _, _) | (std::cmp::Ordering::Equal, true, true) => Some(RemarkOutcome::Right),
        (std::cmp::Ordering::Less, _, _) | (std::cmp::Ordering::Equal, true, false) => Some(RemarkOutcome::Wrong),
        (std::cmp::Ordering::Equal, false, _) => None,
    }
}

/// Whether the settings name an account: the ending `[bot]` and the case do not matter.
pub fn is_named_bot(login: &str, bots: &[String]) -> bool {
    let bare = |name: &str| {
        let name = name.trim().to_lowercase();
        name.strip_suffix("[bot]").map_or(name.clone(), str::to_owned)
    };
    let login = bare(login);
    !login.is_empty() && bots.iter().any(|bot| bare(bot) == login)
}

#[cfg(test)]
mod tests {
    use super::{RemarkOutcome, RemarkThread, is_named_bot, remark_outcome};

    #[test]
    fn people_decide_what_a_remark_was_worth() {
        let thread = |is_resolved, is_outdated| RemarkThread { is_resolved, is_outdated };
        for (state, thumbs, outcome) in [
            (thread(false, false), (0, 0), None),
            // Changed code alone says nothing: it may have changed for another reason.
            (thread(false, true), (0, 0), None),
            (thread(true, true), (0, 0), Some(RemarkOutcome::Right)),
            (thread(true, false), (0, 0), Some(RemarkOutcome::Wrong)),
            (thread(true, false), (1, 0), Some(RemarkOutcome::Right)),
            (thread(false, false), (0, 1), Some(RemarkOutcome::Wrong)),
            (thread(true, true), (1, 2), Some(RemarkOutcome::Wrong)),
            (thread(false, false), (1, 1), None),
        ] {
            assert_eq!(remark_outcome(state, thumbs), outcome, "{state:?} {thumbs:?}");
        }
    }

    #[test]
    fn bots_are_named_with_and_without_their_ending() {
        let bots = ["CodeRabbitAI".to_owned(), "gemini-code-assist[bot]".to_owned()];
        assert!(is_named_bot("coderabbitai[bot]", &bots) && is_named_bot("gemini-code-assist", &bots));
        assert!(!is_named_bot("coderabbit", &bots) && !is_named_bot("mona", &bots) && !is_named_bot("[bot]", &bots));
        assert!(!is_named_bot("[bot]", &["".to_owned()]));
    }
}
