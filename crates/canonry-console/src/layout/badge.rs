//! The states of repositories, items, jobs and deliveries, each a word with a colour.

use canonry_domain::TriageMode;
use canonry_domain::{CurrentThreshold, ItemState, ThresholdSource, Verdict};
use canonry_store::{DeliveryState, ItemLine, JobState, MaintainerSource, RepoAccess};

use crate::layout::formatting::Badge;

pub(crate) fn mode(mode: TriageMode) -> Badge {
    match mode {
        TriageMode::Off => Badge::new("", "off"),
        TriageMode::Shadow => Badge::new("", "shadow"),
        TriageMode::Suggest => Badge::new("info", "suggest"),
        TriageMode::Grace => Badge::new("good", "grace"),
    }
}

/// Whether Canonry may work on a repository; `None` if it may.
pub(crate) fn access(access: RepoAccess) -> Option<Badge> {
    match access {
        RepoAccess::Active => None,
        RepoAccess::Removed => Some(Badge::new("bad", "no access")),
        RepoAccess::Suspended => Some(Badge::new("bad", "suspended")),
        RepoAccess::Archived => Some(Badge::new("", "archived")),
        RepoAccess::Deleted => Some(Badge::new("bad", "deleted")),
    }
}

pub(crate) fn brakes(is_paused: bool, is_breaker_tripped: bool) -> Vec<Badge> {
    let paused = is_paused.then(|| Badge::new("warn", "paused"));
    let breaker = is_breaker_tripped.then(|| Badge::new("bad", "closes stopped"));
    paused.into_iter().chain(breaker).collect()
}

pub(crate) fn job(state: JobState) -> Badge {
    match state {
        JobState::Queued => Badge::new("info", "queued"),
        JobState::Running => Badge::new("info", "running"),
        JobState::Done => Badge::new("good", "done"),
        JobState::Dead => Badge::new("bad", "failed"),
    }
}

pub(crate) fn delivery(state: DeliveryState) -> Badge {
    match state {
        DeliveryState::Queued => Badge::new("info", "queued"),
        DeliveryState::Done => Badge::new("good", "done"),
        DeliveryState::Dead => Badge::new("bad", "failed"),
        DeliveryState::Ignored => Badge::new("", "ignored"),
    }
}

pub(crate) fn item(line: &ItemLine) -> Badge {
    match (line.state, line.merged, line.draft) {
        (ItemState::Open, _, true) => Badge::new("", "draft"),
        (ItemState::Open, _, false) => Badge::new("good", "open"),
        (ItemState::Closed, true, _) => Badge::new("info", "merged"),
        (ItemState::Closed, false, _) => Badge::new("", "closed"),
    }
}

pub(crate) fn verdict(verdict: Verdict) -> Badge {
    match verdict {
        Verdict::Duplicate => Badge::new("warn", "duplicate"),
        Verdict::MaybeDuplicate => Badge::new("info", "maybe"),
        Verdict::NotDuplicate => Badge::new("", "not a duplicate"),
    }
}

/// The score at which Canonry begins to comment: `85 %, learned`.
pub(crate) fn threshold(current: CurrentThreshold, source: ThresholdSource) -> String {
    let source = match source {
        ThresholdSource::Configured => "configured",
        ThresholdSource::Learned => "learned",
    };
    match current.threshold() {
        Some(threshold) => format!("{}\u{a0}%, {source}", threshold.get()),
        None => format!("never, {source}"),
    }
}

pub(crate) fn maintainers(source: MaintainerSource) -> Badge {
    match source {
        MaintainerSource::Set => Badge::new("info", "set by hand"),
        MaintainerSource::Github => Badge::new("", "from GitHub"),
    }
}
