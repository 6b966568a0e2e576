//! The outbox keys of a publication. Each names the pull request, and the run or the commit that it is about.

use canonry_domain::{GithubId, ItemNumber};
use canonry_store::{FindingId, ReviewId};

/// Bytes of an attempt's name that go into a key: a marker holds 200 in all.
const ATTEMPT_BYTES: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PublicationKeys {
    pub(super) repo: GithubId,
    pub(super) number: ItemNumber,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteSubject {
    Run(ReviewId),
    /// A commit of which no review is completed.
    Head(String),
    /// A commit that nobody waits for any more.
    Left,
}

impl PublicationKeys {
    pub(super) fn comment(&self, run: ReviewId, finding: FindingId) -> String {
        format!("{}#{}/{run}/{finding}", self.repo.0, self.number)
    }

    /// What all keys of one kind begin with.
    pub(super) fn all(&self, kind: &str) -> String {
        self.key(kind, "")
    }

    /// What the keys of one kind begin with when they are about a review.
    pub(super) fn of_run(&self, kind: &str, run: ReviewId) -> String {
        self.key(kind, &format!("{run}-"))
    }

    /// What they begin with when they are about a commit that was not reviewed in one try.
    pub(super) fn not_reviewed(&self, kind: &str, head: &str, attempt: &str) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let attempt: String = attempt.chars().map(safe).take(ATTEMPT_BYTES).collect();
        self.key(kind, &format!("not-{head}-{attempt}-"))
    }

    /// What those of the check run of a commit begin with whose review begins.
    pub(super) fn begin(&self, head: &str) -> String {
        self.key("check", &format!("begin-{head}-"))
    }

    /// The same for a commit that nobody waits for any more.
    pub(super) fn left(&self, head: &str) -> String {
        self.key("check", &format!("left-{head}-"))
    }

    fn key(&self, kind: &str, rest: &str) -> String {
        format!("review/{}#{}/{kind}/{rest}", self.repo.0, self.number)
    }
}

/// What a key is about; `None` when it is no key of a publication.
pub(super) fn subject_of(key: &str) -> Option<WriteSubject> {
    let mut parts = key.strip_prefix("review/")?.splitn(3, '/');
    let (_, _, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let mut words = rest.split('-');
    match words.next()? {
        "begin" | "not" => words.next().map(|head| WriteSubject::Head(head.to_owned())),
        "left" => Some(WriteSubject::Left),
        run => run.parse().ok().map(|run| WriteSubject::Run(ReviewId::new(run))),
    }
}

pub(super) fn finding_of(comment_key: &str) -> Option<FindingId> {
    comment_key.rsplit('/').next()?.parse().ok().map(FindingId::new)
}

#[cfg(test)]
mod tests {
    use canonry_domain::{GithubId, ItemNumber};
    use canonry_store::{FindingId, ReviewId};

    use super::{PublicationKeys, WriteSubject, finding_of, subject_of};

    #[test]
    fn a_key_says_what_it_is_about() {
        let keys = PublicationKeys { repo: GithubId(9), number: ItemNumber::new(12).expect("positive") };
        let (run, head) = (ReviewId::new(7), "a".repeat(40));
        for (key, expected) in [
            (keys.of_run("post", run) + "0", WriteSubject::Run(run)),
            (keys.of_run("summary", run) + "0", WriteSubject::Run(run)),
            (keys.of_run("resolve", run) + "8000", WriteSubject::Run(run)),
            (keys.begin(&head) + "0", WriteSubject::Head(head.clone())),
            (keys.not_reviewed("check", &head, "job 5/2-x") + "0", WriteSubject::Head(head.clone())),
            (keys.left(&head) + "0", WriteSubject::Left),
        ] {
            assert_eq!(subject_of(&key), Some(expected), "{key}");
            assert!(key.starts_with("review/9#12/") && key.len() <= 200, "{key}");
        }
        assert_eq!(keys.not_reviewed("check", "b", "job 5/2-x"), "review/9#12/check/not-b-job_5_2_x-");
        for other in ["triage:1:issue:2:1", "review/9#12", "review/9#12/post/x", "close/1"] {
            assert_eq!(subject_of(other), None, "{other}");
        }
        assert_eq!(finding_of(&keys.comment(run, FindingId::new(33))), Some(FindingId::new(33)));
    }
}
