//! Recurring jobs: queued once for all processes together, and at once for those missed while the service was
//! stopped.

use canonry_boxed::boxed;
use std::sync::Arc;

use canonry_github::Clock;
use canonry_store::{JobKind, NewJob, PruneCounts, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, watch};

use crate::intake::recover_deliveries::RecoverJob;
use crate::jobs::grace_job::{GraceJob, ObjectionsJob};
use crate::jobs::outage::Outage;
use crate::jobs::reactions_job::ReactionsJob;
use crate::jobs::service_job::PreparedJob;
use crate::jobs::sync_job::SyncJob;

const LOOK: SignedDuration = SignedDuration::from_mins(1);
/// A service that restarts in a loop must not send GitHub the same requests each time. A job that was queued more
/// recently than this waits for the rest of the time.
const CATCH_UP_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// Nightly, for changes that have no webhook, such as items that no longer exist.
const SYNC_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// Reactions have no webhook.
const REACTIONS_EVERY: SignedDuration = SignedDuration::from_hours(4);
/// GitHub keeps deliveries for three days and repeats none by itself.
const RECOVER_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// Grace periods last hours, so minutes do not matter, and every check of a grace that is due costs a few requests.
const GRACE_EVERY: SignedDuration = SignedDuration::from_mins(10);
/// Reactions to closing comments have no webhook either.
const OBJECTIONS_EVERY: SignedDuration = SignedDuration::from_hours(4);
/// The nightly syncs begin within this time, one after the other. Together they would use up GitHub's rate limit, and
/// webhook jobs would wait for the next hour.
const NIGHT: SignedDuration = SignedDuration::from_hours(1);
/// With few repositories the whole hour is not needed.
const LONGEST_GAP: SignedDuration = SignedDuration::from_mins(1);

/// Half an hour of four: GitHub starts a scheduled workflow minutes to half an hour late, and the next one on time.
const EARLY_PART: i32 = 8;

/// The schedule that deletes old rows.
const PRUNE: &str = "prune";
const PRUNE_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// How long deliveries and jobs are kept after they are done. A run in GitHub Actions deletes the bodies of handled
/// deliveries sooner: in its copy for the state ref, and if their item is gone.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Rows per delete, so that other writers do not wait.
const PRUNED_AT_ONCE: u32 = 500;
/// Many times what one day brings; the rest is deleted the next day.
const MOST_PRUNES: u32 = 10_000;

/// Which schedules run. It depends on the credentials for GitHub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Schedules {
    #[default]
    Off,
    /// Only schedules that do not need GitHub: deleting old rows.
    Alone,
    /// Also syncs repositories, counts reactions and processes graces.
    Token,
    /// Also requests failed deliveries again; only an App has a list of them.
    App,
}

/// Queues recurring jobs. Any number of schedulers may run on one store.
#[derive(Clone)]
pub struct Scheduler {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub schedules: Schedules,
}

/// A job and the earliest time it may run.
type ScheduledJob = (PreparedJob, Timestamp);

#[boxed]
impl Scheduler {
    /// Queues what is due. Returns the schedules that fired in this process.
    pub async fn tick(&self) -> Result<Vec<&'static str>, StoreError> {
        self.tick_after(|every| every).await
    }

    /// Queues also what is due soon, for a scheduler that ticks seldom and not punctually: if its tick comes a little
    /// early, what is due must not wait for the next one.
    pub(crate) async fn tick_early(&self) -> Result<Vec<&'static str>, StoreError> {
        self.tick_after(|every| every - every / EARLY_PART).await
    }

    async fn tick_after(&self, pause: fn(SignedDuration) -> SignedDuration) -> Result<Vec<&'static str>, StoreError> {
        self.store.maintenance().correct_future_times(|| self.clock.now()).await?;
        let now = self.clock.now();
        let mut fired = Vec::new();
        let mut due = Vec::new();
        if self.schedules == Schedules::App {
            due.push((JobKind::Recover.as_str(), RECOVER_EVERY, vec![self.recovery(now).await?]));
        }
        if matches!(self.schedules, Schedules::App | Schedules::Token) {
            let alone = |job: PreparedJob| vec![(job, now)];
            due.push((JobKind::Reactions.as_str(), REACTIONS_EVERY, alone(PreparedJob::new(&ReactionsJob {}, None))));
            due.push((JobKind::Grace.as_str(), GRACE_EVERY, alone(PreparedJob::new(&GraceJob {}, None))));
            due.push((
                JobKind::Objections.as_str(),
                OBJECTIONS_EVERY,
                alone(PreparedJob::new(&ObjectionsJob {}, None)),
            ));
            due.push((JobKind::Sync.as_str(), SYNC_EVERY, self.syncs(now).await?));
        }
        if self.schedules != Schedules::Off {
            due.push((PRUNE, PRUNE_EVERY, Vec::new()));
        }
        for (name, every, scheduled) in due {
            let jobs: Vec<(NewJob<'_>, Timestamp)> =
                scheduled.iter().map(|(job, run_after)| (job.row(), *run_after)).collect();
            if self.store.jobs().fire_schedule(name, pause(every), &jobs, now).await? {
                tracing::info!(schedule = name, jobs = jobs.len(), "a schedule has fired");
                fired.push(name);
            }
        }
        if fired.contains(&PRUNE) {
            self.prune(now).await;
        }
        Ok(fired)
    }

    /// Queues what is due and what was missed while no service ran: failed deliveries are requested again, and every
    /// repository is synced.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        let fired = self.tick().await?;
        let now = self.clock.now();
        let mut missed = match self.schedules {
            Schedules::Off | Schedules::Alone => return Ok(()),
            Schedules::Token => Vec::new(),
            Schedules::App => vec![self.recovery(now).await?],
        };
        missed.extend(self.syncs(now).await?);
        for (job, run_after) in missed.iter().filter(|(job, _)| !fired.contains(&job.kind.as_str())) {
            let last = self.store.jobs().last_of(&job.key, job.kind).await?;
            let earliest = last.map_or(*run_after, |last| (last.created_at + CATCH_UP_PAUSE).max(*run_after));
            self.store.jobs().enqueue_once(&job.row(), earliest, now).await?;
        }
        Ok(())
    }

    /// Catches up, then ticks every minute until `stop`. Wakes a worker after each tick.
    pub(crate) async fn run(self, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) {
        let mut outage = Outage::new("the schedules");
        let mut caught_up = false;
        while !*stop.borrow() {
            let looked = if caught_up { self.tick().await.map(drop) } else { self.catch_up().await };
            match looked {
                Ok(()) => {
                    caught_up = true;
                    outage.over();
                    wake.notify_one();
                }
                Err(error) => outage.failed(&error),
            }
            tokio::select! {
                () = self.clock.beat(LOOK) => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// One sync for each repository that is known from GitHub. A repository that was only imported is not synced.
    async fn syncs(&self, now: Timestamp) -> Result<Vec<ScheduledJob>, StoreError> {
        let mut repos = self.store.repos().active().await?;
        repos.retain(|repo| repo.github_id.is_some());
        let gap = gap(repos.len());
        let moments = std::iter::successors(Some(now), |moment| moment.checked_add(gap).ok());
        let sync = |repo: &Repo| PreparedJob::new(&SyncJob::of(repo), Some(&repo.name));
        Ok(repos.iter().map(sync).zip(moments).collect())
    }

    async fn recovery(&self, now: Timestamp) -> Result<ScheduledJob, StoreError> {
        Ok((PreparedJob::new(&RecoverJob::next(&self.store, now).await?, None), now))
    }

    /// Deletes old rows. A failure is left to the next day.
    async fn prune(&self, now: Timestamp) {
        let (mut deliveries, mut jobs) = (0, 0);
        for _ in 0..MOST_PRUNES {
            match self.store.maintenance().prune(now - KEPT, PRUNED_AT_ONCE).await {
                Ok(pruned) if pruned == PruneCounts::default() => break,
                Ok(pruned) => {
                    deliveries += pruned.deliveries;
                    jobs += pruned.jobs;
                }
                Err(error) => {
                    tracing::warn!(%error, "old data could not be deleted; retrying tomorrow");
                    break;
                }
            }
        }
        tracing::info!(deliveries, jobs, "what is old is deleted");
    }
}

fn gap(repos: usize) -> SignedDuration {
    NIGHT.checked_div(i32::try_from(repos).unwrap_or(i32::MAX)).unwrap_or(LONGEST_GAP).min(LONGEST_GAP)
}

#[cfg(test)]
mod tests {
    use super::gap;

    #[test]
    fn the_syncs_of_a_night_fit_into_an_hour() {
        let gaps: Vec<_> = [0, 1, 60, 600, 7_200].map(|repos| gap(repos).as_millis()).into();
        assert_eq!(gaps, [60_000, 60_000, 60_000, 6_000, 500]);
    }
}
