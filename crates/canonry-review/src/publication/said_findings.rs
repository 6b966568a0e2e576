//! Decides which findings are already posted on a pull request, and where.

use std::collections::BTreeSet;

use canonry_domain::WriteOrigin;
use canonry_domain::review::FindingStatus;
use canonry_github::outbox::{Receipt, Write};
use canonry_store::{FindingId, OutboxId, OutboxState, PostedFinding, ReviewId};

use super::keys::finding_of;
use super::pull_writes::PullWrites;
use crate::referee::referee_report::may_point;
use crate::run::report::{ReportedFinding, ReviewReport};

pub(super) struct SaidFindings {
    run: ReviewId,
    /// The inline comments.
    pub(super) posted: Vec<PostedFinding>,
    /// Findings without an inline comment in the bodies of other reviews, by [`said_key`].
    in_bodies: BTreeSet<String>,
}

impl SaidFindings {
    /// `given_up` are the posts that are on GitHub although their sending failed.
    pub(super) fn new(
        writes: &PullWrites,
        posted: Vec<PostedFinding>,
        run: ReviewId,
        given_up: &BTreeSet<OutboxId>,
    ) -> Self {
        let mut in_bodies = BTreeSet::new();
        for one in writes.of_origin(WriteOrigin::ReviewPost) {
            let stands = one.entry.state == OutboxState::Sent || given_up.contains(&one.entry.id);
            let is_other = one.entry.source.record != Some(run.get());
            let Some(Write::Review(review)) = one.write.as_ref().filter(|_| stands && is_other) else { continue };
            let written = Receipt::of_entry(&one.entry).and_then(|receipt| receipt.review);
            let at_lines: BTreeSet<FindingId> =
                written.iter().flat_map(|written| &written.comments).filter_map(|one| finding_of(&one.key)).collect();
            let is_at_a_line = |key: &str| finding_of_said(key).is_some_and(|finding| at_lines.contains(&finding));
            in_bodies.extend(review.said.iter().filter(|key| !is_at_a_line(key)).cloned());
        }
        Self { run, posted, in_bodies }
    }

    /// Whether an inline comment is about the present code.
    pub(super) fn stands_at_its_line(&self, one: &ReportedFinding) -> bool {
        self.at_its_line(one).next().is_some()
    }

    /// Whether a finding belongs at a line and is posted neither there nor in a body. A credential that was removed
    /// from the code and still has to be revoked is posted in a body only.
    pub(super) fn is_unsaid(&self, one: &ReportedFinding) -> bool {
        let is_removed = one.sighting.finding.is_removed_credential();
        !self.is_in_a_body(one) && (is_removed || !self.stands_at_its_line(one))
    }

    /// Whether another review posted it about the same code: inline or in its body.
    pub(super) fn is_said_before(&self, one: &ReportedFinding) -> bool {
        let is_removed = one.sighting.finding.is_removed_credential();
        self.is_in_a_body(one) || (!is_removed && self.at_its_line(one).any(|row| row.run != self.run))
    }

    /// Whether the body of another review contains it about the same code, and it was not fixed in between.
    pub(super) fn is_in_a_body(&self, one: &ReportedFinding) -> bool {
        self.has(one, said_key(one))
    }

    /// Whether a body contains it, also in the list of further findings, or links another bot's thread that is still
    /// open.
    pub(super) fn is_in_a_list(&self, one: &ReportedFinding, report: &ReviewReport) -> bool {
        let is_open = || match &report.referee {
            Some(referee) => referee.open_thread(one).is_some(),
            None => report.names_bots,
        };
        self.is_in_a_body(one) || self.has(one, further_key(one)) || (self.is_pointed_to(one) && is_open())
    }

    /// Whether the body of another review links another bot's thread for it.
    pub(super) fn is_pointed_to(&self, one: &ReportedFinding) -> bool {
        self.has(one, pointed_key(one))
    }

    /// Whether another bot's open thread is enough: the body points to it. As long as the comments of the bots are
    /// unknown, a thread to which another body pointed counts as open.
    pub(super) fn is_named_by_others(&self, one: &ReportedFinding, report: &ReviewReport) -> bool {
        match &report.referee {
            Some(referee) => referee.thread_of(one).is_some(),
            None => report.names_bots && may_point(one) && self.is_pointed_to(one),
        }
    }

    fn has(&self, one: &ReportedFinding, key: Option<String>) -> bool {
        let is_back = one.sighting.status == FindingStatus::Reopened;
        !is_back && key.is_some_and(|key| self.in_bodies.contains(&key))
    }

    fn at_its_line<'s>(&'s self, one: &'s ReportedFinding) -> impl Iterator<Item = &'s PostedFinding> {
        let code = &one.sighting.finding.code;
        let is_it = move |row: &&PostedFinding| Some(row.finding) == one.id && row.settled.is_none();
        self.posted.iter().filter(is_it).filter(move |row| row.said.code == *code)
    }
}

/// The key of a finding in the body of a review: the finding and its code. A credential that was removed from the code
/// has another key, because it needs another text.
pub(super) fn said_key(one: &ReportedFinding) -> Option<String> {
    let finding = &one.sighting.finding;
    let code = finding.code.as_ref().map_or("", |code| code.as_str());
    let removed = if finding.is_removed_credential() { "/removed" } else { "" };
    one.id.map(|id| format!("{id}/{code}{removed}"))
}

/// The key of a finding that is only in the list of further findings: it still gets an inline comment once there is
/// room for it.
pub(super) fn further_key(one: &ReportedFinding) -> Option<String> {
    said_key(one).map(|key| format!("{key}/further"))
}

/// The key of a finding for which a body links another bot's thread: it gets an inline comment once that thread is closed
/// without a fix.
pub(super) fn pointed_key(one: &ReportedFinding) -> Option<String> {
    said_key(one).map(|key| format!("{key}/pointed"))
}

fn finding_of_said(key: &str) -> Option<FindingId> {
    key.split('/').next()?.parse().ok().map(FindingId::new)
}
