//! Builds the outbox keys of a publication. Each contains the pull request, and the run or the commit.

use std::fmt::Display;

use canonry_domain::{GithubId, ItemNumber, WriteArea, WriteKey, WriteOrigin};
use canonry_store::{FindingId, OutboxEntry, ReviewId};

/// The bytes of an attempt's name in a key: a marker contains at most 200 in all.
const ATTEMPT_BYTES: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PublicationKeys {
    pub(super) repo: GithubId,
    pub(super) number: ItemNumber,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteSubject {
    Run(ReviewId),
    /// A commit without a completed review.
    Head(String),
    /// A commit whose review was abandoned.
    Left,
}

impl WriteSubject {
    /// `None` for a write that does not belong to a review.
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

    /// The start of the keys of one origin for a review.
    pub(super) fn of_run(&self, origin: WriteOrigin, run: ReviewId) -> WriteKey {
        self.key(origin, format_args!("{run}-")).with_record(run.get())
    }

    /// The start of the keys for the posted review of a commit. If the database is lost or replaced by an older copy, the
    /// number of a run is given again, to the review of another commit.
    pub(super) fn post(&self, run: ReviewId, head: &str) -> WriteKey {
        self.key(WriteOrigin::ReviewPost, format_args!("{run}-{head}-")).with_record(run.get())
    }

    /// The start of the keys for a commit that one attempt did not review.
    pub(super) fn not_reviewed(&self, origin: WriteOrigin, head: &str, attempt: &str) -> WriteKey {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let attempt: String = attempt.chars().map(safe).take(ATTEMPT_BYTES).collect();
        self.key(origin, format_args!("not-{head}-{attempt}-")).with_commit(head)
    }

    /// The start of the keys for the check run of a commit whose review begins.
    pub(super) fn begin(&self, head: &str) -> WriteKey {
        self.key(WriteOrigin::ReviewCheck, format_args!("begin-{head}-")).with_commit(head)
    }

    /// The start of the keys for a commit whose review was abandoned.
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

    /// Writes that an earlier version stored are found by their keys.
    #[test]
    fn keys_stay_as_they_were() {
        let keys = PublicationKeys { repo: GithubId(9), number: ItemNumber::new(12).expect("positive") };
        let (run, head) = (ReviewId::new(7), "b");
        for (key, expected) in [
            (keys.post(run, head).numbered(0), "review/9#12/post/7-b-0"),
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
