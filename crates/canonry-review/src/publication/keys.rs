//! The outbox keys of a publication. Each names the pull request, and the run or the commit that it is about.

use std::fmt::Display;

use canonry_domain::{GithubId, ItemNumber, WriteArea, WriteKey, WriteOrigin};
use canonry_store::{FindingId, OutboxEntry, ReviewId};

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

impl WriteSubject {
    /// `None` for what is no write of a review.
    pub(super) fn of(entry: &OutboxEntry) -> Option<Self> {
        let source = &entry.source;
        match (source.origin.area(), source.origin, source.record, &source.commit) {
            (WriteArea::Review, WriteOrigin::ReviewCheckLeft, ..) => Some(Self::Left),
            (WriteArea::Review, _, Some(run), _) => Some(Self::Run(ReviewId::new(run))),
            (WriteArea::Review, _, None, Some(head)) => Some(Self::Head(head.clone())),
            _ => None,
        }
    }
}

impl PublicationKeys {
    pub(super) fn comment(&self, run: ReviewId, finding: FindingId) -> String {
        format!("{}#{}/{run}/{finding}", self.repo.0, self.number)
    }

    /// What the keys of one origin begin with when they are about a review.
    pub(super) fn of_run(&self, origin: WriteOrigin, run: ReviewId) -> WriteKey {
        self.key(origin, format_args!("{run}-")).with_record(run.get())
    }

    /// What they begin with when they are about a commit that was not reviewed in one try.
    pub(super) fn not_reviewed(&self, origin: WriteOrigin, head: &str, attempt: &str) -> WriteKey {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let attempt: String = attempt.chars().map(safe).take(ATTEMPT_BYTES).collect();
        self.key(origin, format_args!("not-{head}-{attempt}-")).with_commit(head)
    }

    /// What those of the check run of a commit begin with whose review begins.
    pub(super) fn begin(&self, head: &str) -> WriteKey {
        self.key(WriteOrigin::ReviewCheck, format_args!("begin-{head}-")).with_commit(head)
    }

    /// The same for a commit that nobody waits for any more.
    pub(super) fn left(&self, head: &str) -> WriteKey {
        self.key(WriteOrigin::ReviewCheckLeft, format_args!("left-{head}-")).with_commit(head)
    }

    fn key(&self, origin: WriteOrigin, rest: impl Display) -> WriteKey {
        WriteKey::on_github(origin, self.repo, self.number, rest)
    }
}

pub(super) fn finding_of(comment_key: &str) -> Option<FindingId> {
    comment_key.rsplit('/').next()?.parse().ok().map(FindingId::new)
}

#[cfg(test)]
mod tests {
    use canonry_domain::{GithubId, ItemNumber, WriteOrigin};
    use canonry_store::{FindingId, ReviewId};

    use super::{PublicationKeys, finding_of};

    /// A write that an earlier version stored is found by its key.
    #[test]
    fn keys_stay_as_they_were() {
        let keys = PublicationKeys { repo: GithubId(9), number: ItemNumber::new(12).expect("positive") };
        let (run, head) = (ReviewId::new(7), "b");
        for (key, expected) in [
            (keys.of_run(WriteOrigin::ReviewPost, run).numbered(0), "review/9#12/post/7-0"),
            (keys.of_run(WriteOrigin::ReviewSummaryEdit, run).numbered(1), "review/9#12/summary-edit/7-1"),
            (keys.of_run(WriteOrigin::ReviewResolve, run).numbered(8000), "review/9#12/resolve/7-8000"),
            (keys.begin(head).numbered(0), "review/9#12/check/begin-b-0"),
            (
                keys.not_reviewed(WriteOrigin::ReviewCheck, head, "job 5/2-x").numbered(0),
                "review/9#12/check/not-b-job_5_2_x-0",
            ),
            (keys.left(head).numbered(0), "review/9#12/check/left-b-0"),
        ] {
            assert_eq!(key.text, expected);
        }
        assert!(keys.not_reviewed(WriteOrigin::ReviewCheck, &"a".repeat(40), &"x".repeat(200)).text.len() <= 190);
        assert_eq!(finding_of(&keys.comment(run, FindingId::new(33))), Some(FindingId::new(33)));
    }
}
