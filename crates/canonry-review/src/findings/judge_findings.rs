//! Decides for the findings of a run their status, what hides them, their confidence and their order.

use std::collections::{BTreeMap, BTreeSet};

use canonry_config::RepoConfig;
use canonry_domain::review::{
    AnswerableScope, ConfidenceSigns, FeedbackRule, FileMaps, Finding, FindingStatus, HiddenBy, Hunk, MISPLACED,
    PatternKey, RepoPath, ReviewerName, Severity, ShownAs, Sighting, TrackedFinding, Visibility, arrange, confidence,
    feedback_hides, grounding, is_grounded, sightings, track,
};
use canonry_store::{LedgerFinding, StoredPattern};

use crate::change::file_change::FileChange;
use crate::change::head_texts::HeadTexts;
use crate::findings::base_findings::BaseComparison;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::findings::earlier_outcomes::EarlierOutcomes;
use crate::findings::severity_limits::SeverityLimits;
use crate::run::report::ReportedFinding;

/// Matches present findings with earlier ones. The severity of the present ones is limited already. That of earlier ones
/// is raised here, because whether a dismissal applies depends on it.
///
/// No ceiling lowers an earlier finding by itself: whether it was serious, such as by a security score, is not stored. A
/// ceiling that is newer than the finding lowers it once all its reviewers report it again and the ceiling lowered that.
pub(crate) fn follow(
    mut earlier: Vec<TrackedFinding>,
    now: Vec<Finding>,
    limits: &SeverityLimits,
    files: &FileMaps,
    texts: &HeadTexts,
) -> Vec<Sighting> {
    for finding in earlier.iter_mut().map(|one| &mut one.finding) {
        finding.severity = limits.raise(finding, finding.severity);
    }
    let tracked = track(&earlier, &now, files, &mut texts.index());
    for followed in &tracked.followed {
        let (before, again) = (&mut earlier[followed.earlier].finding, &now[followed.now]);
        let limited = limits.apply(before, false);
        if again.severity <= limited && before.witnesses.iter().all(|one| again.witnesses.contains(one)) {
            before.severity = limited;
        }
    }
    sightings(&earlier, now, &tracked, files)
}

pub(crate) struct FindingJudge<'a> {
    pub(crate) settings: &'a RepoConfig,
    pub(crate) filters: &'a ConfiguredFilters,
    pub(crate) changes: &'a [FileChange],
    /// The ledger, in the same order as the earlier findings given to `follow`.
    pub(crate) ledger: &'a [LedgerFinding],
    pub(crate) patterns: &'a BTreeMap<PatternKey, StoredPattern>,
    pub(crate) outcomes: &'a EarlierOutcomes,
    /// The positions of findings for which people accepted a very similar finding.
    pub(crate) accepted: &'a BTreeSet<usize>,
    /// What the base has too, by position.
    pub(crate) at_base: &'a BaseComparison,
}

impl FindingJudge<'_> {
    /// The findings in the order in which they are shown: first the open ones, then the fixed ones.
    pub(crate) fn judge(&self, sightings: Vec<Sighting>) -> Vec<ReportedFinding> {
        let hunks: BTreeMap<&RepoPath, &[Hunk]> =
            self.changes.iter().map(|change| (&change.path, change.hunks.as_slice())).collect();
        let judged: Vec<ReportedFinding> =
            sightings.into_iter().enumerate().map(|(at, sighting)| self.one(at, sighting, &hunks)).collect();
        let (fixed, standing): (Vec<_>, Vec<_>) = judged.into_iter().partition(ReportedFinding::is_fixed);
        let review = &self.settings.review;
        let visible: Vec<Visibility> = standing.iter().map(|one| visibility(one, review.scope)).collect();
        let order = arrange(&visible, review.min_confidence, usize::from(review.max_comments));
        let mut standing: Vec<Option<ReportedFinding>> = standing.into_iter().map(Some).collect();
        let mut told = Vec::with_capacity(standing.len() + fixed.len());
        for (at, shown) in order {
            let one = standing[at].take().expect("invariant: each finding is arranged once");
            // A reason that may not hide the finding is dropped, so that it is not shown.
            let hidden_by = one.hidden_by.filter(|_| shown == ShownAs::Suppressed);
            told.push(ReportedFinding { shown, hidden_by, ..one });
        }
        told.extend(fixed);
        told
    }

    fn one(&self, at: usize, sighting: Sighting, hunks: &BTreeMap<&RepoPath, &[Hunk]>) -> ReportedFinding {
        let finding = &sighting.finding;
        let before = sighting.earlier.map(|place| &self.ledger[place]);
        let pattern = self.patterns.get(finding.key());
        let signs = ConfidenceSigns {
            severity: finding.severity,
            category: finding.category,
            confirmed: has_two_reviewers(finding) || self.accepted.contains(&at),
            feedback: pattern.map(|pattern| pattern.feedback).unwrap_or_default(),
        };
        let grounded =
            hunks.get(&finding.path).is_some_and(|hunks| is_grounded(finding, grounding(hunks, finding.lines)));
        let moved = sighting.status == FindingStatus::Moved;
        let was_shown = before.is_none_or(|one| one.first_shown || one.said_inline);
        let is_quiet = sighting.status == FindingStatus::Fixed && !was_shown;
        ReportedFinding {
            id: before.map(|one| one.id),
            shown: if is_quiet { ShownAs::Suppressed } else { ShownAs::Details },
            hidden_by: self.hidden_by(at, &sighting, grounded, pattern),
            confidence: confidence(signs),
            grounded,
            // On changed code the finding is judged afresh: what was posted is about the code before.
            said_inline: before.is_some_and(|one| one.said_inline) && sighting.is_known(),
            moved_from: before
                .filter(|_| moved)
                .map(|one| (one.earlier.finding.path.clone(), one.earlier.finding.lines)),
            history: self.outcomes.of(finding.key()),
            excerpt: None,
            sighting,
        }
    }

    /// What hides a finding: first a dismissal, then the scope, then a second reading, then people's feedback, then the
    /// settings.
    fn hidden_by(
        &self,
        at: usize,
        sighting: &Sighting,
        grounded: bool,
        pattern: Option<&StoredPattern>,
    ) -> Option<HiddenBy> {
        match sighting.status {
            FindingStatus::Fixed => return None,
            FindingStatus::Dismissed => return Some(HiddenBy::Dismissal),
            _ if self.is_out_of_scope(at, &sighting.finding, grounded) => return Some(HiddenBy::Scope),
            _ => {}
        }
        let finding = &sighting.finding;
        if finding.unproven {
            return Some(HiddenBy::SecondReading);
        }
        let suppress = &self.settings.feedback.auto_suppress;
        let rule = FeedbackRule {
            thumbs_down: suppress.thresholds.min_thumbs_down,
            reactors: suppress.thresholds.min_distinct_reactors,
            pull_requests: suppress.thresholds.min_distinct_prs,
        };
        let is_rejected =
            |one: &StoredPattern| feedback_hides(rule, one.feedback, one.protected, finding.severity, finding.category);
        if suppress.enabled && pattern.is_some_and(is_rejected) {
            return Some(HiddenBy::Feedback);
        }
        self.filters.hides(finding)
    }

    /// Whether the change is not answerable for a finding: the base has it too, or a tool reports it off the changed
    /// lines. A model was shown the change alone, so what it reports elsewhere is about the change; and what has no place
    /// in the code is not off the changed lines.
    fn is_out_of_scope(&self, at: usize, finding: &Finding, grounded: bool) -> bool {
        if leads_anywhere(finding) {
            return false;
        }
        if self.at_base.old.contains(&at) {
            return !grounded || finding.severity != Severity::Critical;
        }
        let is_by_model = finding.witnesses.iter().any(|one| one.reviewer.is_model());
        let is_new = self.at_base.new.contains(&at);
        self.settings.review.scope == AnswerableScope::Changed && !grounded && !is_by_model && !is_new
    }
}

/// Whether a finding may stand on top of the summary without a line in the diff: a credential that was pushed and
/// removed, or a place that does not exist.
fn leads_anywhere(finding: &Finding) -> bool {
    finding.is_removed_credential() || finding.tags.contains(MISPLACED)
}

pub(crate) fn hidden_patterns(findings: &[ReportedFinding]) -> usize {
    let hidden = findings.iter().filter(|one| one.hidden_by == Some(HiddenBy::Feedback));
    hidden.map(|one| one.sighting.finding.key()).collect::<BTreeSet<_>>().len()
}

fn visibility(one: &ReportedFinding, scope: AnswerableScope) -> Visibility {
    Visibility {
        severity: one.sighting.finding.severity,
        category: one.sighting.finding.category,
        confidence: one.confidence,
        grounded: one.grounded,
        leads_anywhere: scope == AnswerableScope::All || leads_anywhere(&one.sighting.finding),
        said_inline: one.said_inline,
        hidden_by: one.hidden_by.clone(),
    }
}

fn has_two_reviewers(finding: &Finding) -> bool {
    let reviewers: BTreeSet<&ReviewerName> = finding.witnesses.iter().map(|witness| &witness.reviewer).collect();
    reviewers.len() > 1
}
