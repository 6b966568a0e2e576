//! Records objections to closes, one for each close at most; too many of them stop all automatic closing.

use canonry_boxed::boxed;
use std::collections::BTreeSet;

use canonry_domain::{
    BREAKER_DAYS, BREAKER_WINDOW, GithubId, GraceEnd, ItemNumber, ItemState, ItemType, Login, WriteKey, WriteOrigin,
    breaker_comment, trips_breaker,
};
use canonry_github::api::{ReactionSubject, RestTimelineEvent, RestUser};
use canonry_github::outbox::{Outbox, Write};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{AppliedClose, Brake, BrakeKind, NewObjection, ObjectionKind, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::close::close_writes::{RowItem, close_key};
use crate::close::live_item::is_gone;
use crate::grace::begin_grace::{GraceError, begin_announced_graces};
use crate::grace::cancel_grace::cancel_grace;
use crate::grace::grace_recheck::{disagrees, written_comment};

/// For how long after a close we check the reactions to its comment and the state of its item.
const ASKED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// This many people must disagree together; the author alone is enough.
const DISAGREEING: usize = 2;

#[derive(Debug, Clone, Copy)]
pub struct Objections<'a> {
    pub store: &'a Store,
    /// The way to write to GitHub; without it maintainers are not notified.
    pub outbox: Option<&'a Outbox>,
    pub repo: &'a Repo,
    /// The name by which people address Canonry in this repository.
    pub handle: &'a str,
}

/// The result of a search for objections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectionsReport {
    pub new: u64,
    /// When to check the rest, if GitHub's rate limit prevented some checks.
    pub retry_at: Option<Timestamp>,
    pub failed: Option<String>,
}

#[boxed]
impl Objections<'_> {
    /// Records an objection to the last close of an item. `false` if Canonry never closed it, or an objection to that
    /// close is already recorded. Too many objections trip the breaker.
    pub async fn object(
        &self,
        item_type: ItemType,
        number: ItemNumber,
        kind: ObjectionKind,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<bool, GraceError> {
        let closes = self.store.plans().applied_closes(self.repo.id, item_type).await?;
        let last = closes.iter().rfind(|close| close.number == number);
        let is_new = match last {
            Some(close) => self.note(item_type, close, kind, by, now).await?,
            None => return Ok(false),
        };
        self.check_breaker(now).await?;
        Ok(is_new)
    }

    /// Whether Canonry itself undoes, or has undone, the last close of an item. A reopening by its own account is
    /// then no objection.
    pub async fn is_undoing(&self, item_type: ItemType, number: ItemNumber) -> Result<bool, StoreError> {
        let closes = self.store.plans().applied_closes(self.repo.id, item_type).await?;
        let Some(last) = closes.iter().rfind(|close| close.number == number) else { return Ok(false) };
        let entries = self.store.outbox().of_item(self.repo.id, number).await?;
        Ok(last.undone_at.is_some()
            || entries.iter().any(|entry| {
                entry.source.origin == WriteOrigin::Reopen && entry.source.record == Some(last.plan_id.get())
            }))
    }

    async fn note(
        &self,
        item_type: ItemType,
        close: &AppliedClose,
        kind: ObjectionKind,
        by: Option<&Login>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let number = close.number;
        let close_key = close_key(close.plan_id, RowItem { item_type, number }).text;
        let new = NewObjection { item_type, number, close_key: &close_key, kind, by, at };
        let is_new = self.store.close().record_objection(self.repo.id, &new).await?;
        if is_new {
            tracing::info!(repo = %self.repo.name, number = number.get(), kind = kind.as_str(), "somebody objected to a close");
        }
        Ok(is_new)
    }

    /// Trips the breaker if there were too many objections since it was last lifted. Also applies the consequences:
    /// all grace periods end, and maintainers are notified once.
    pub async fn check_breaker(&self, now: Timestamp) -> Result<(), GraceError> {
        let Self { store, repo, .. } = *self;
        let brakes = store.close().brakes(repo.id).await?;
        let lifted = brakes.iter().filter(|brake| brake.kind == BrakeKind::Breaker).filter_map(|brake| brake.lifted_at);
        let since = lifted.max().unwrap_or(Timestamp::MIN).max(now - BREAKER_WINDOW);
        // Objections up to the moment when it was lifted do not count.
        let recent = store.close().objections_since(repo.id, since + SignedDuration::from_micros(1)).await?;
        if trips_breaker(recent) {
            let why = format!("{recent} objections to closes in {BREAKER_DAYS} days");
            if store.close().set_brake(repo.id, BrakeKind::Breaker, None, &why, now).await? {
                tracing::warn!(repo = %repo.name, objections = recent, "too many people objected to closes; nothing is closed here by itself until a maintainer says `resume`");
            }
        }
        let Some(brake) = store.close().brake_in_force(repo.id, BrakeKind::Breaker).await? else { return Ok(()) };
        // Grace periods that were announced only now end too.
        begin_announced_graces(store, None, now).await?;
        for grace in store.close().waiting_graces(Some(repo.id)).await? {
            cancel_grace(store, self.outbox, repo, grace.item_type, grace.number, GraceEnd::Breaker, now).await?;
        }
        self.tell_maintainers(&brake).await
    }

    /// Posts one comment on the item of the objection that tripped the breaker. A breaker that a person set needs
    /// none.
    async fn tell_maintainers(&self, brake: &Brake) -> Result<(), GraceError> {
        let (Some(outbox), None) = (self.outbox, &brake.set_by) else { return Ok(()) };
        let window = brake.set_at - BREAKER_WINDOW;
        let mut behind = self.store.close().objections(self.repo.id).await?;
        behind.retain(|one| one.at <= brake.set_at && one.at > window);
        let Some(last) = behind.last() else { return Ok(()) };
        let repo = self.repo.github_id.unwrap_or(GithubId(self.repo.id.get()));
        let key = WriteKey::on_github(WriteOrigin::BreakerNotice, repo, last.number, brake.id).with_record(brake.id);
        let count = u64::try_from(behind.len()).unwrap_or(u64::MAX);
        let body = breaker_comment(count, BREAKER_DAYS, self.handle);
        outbox.enqueue(self.repo.id, last.number, &key, Write::Comment { body }).await?;
        Ok(())
    }

    /// Finds objections that no webhook reported: closes that were undone, items that are open again, and reactions
    /// to closing comments.
    pub async fn find(&self, github: &GitHub, now: Timestamp) -> Result<ObjectionsReport, GraceError> {
        let mut report = ObjectionsReport::default();
        let known = self.store.close().objections(self.repo.id).await?;
        for &item_type in ItemType::ALL {
            for close in self.store.plans().applied_closes(self.repo.id, item_type).await? {
                let key = close_key(close.plan_id, RowItem { item_type, number: close.number }).text;
                let is_known = known.iter().any(|objection| objection.close_key == key);
                if is_known || now.duration_since(close.applied_at) > ASKED_FOR {
                    continue;
                }
                // A person with access to the database undid it; an undo that is requested on the item is recorded at
                // once.
                if let Some(at) = close.undone_at {
                    report.new += u64::from(self.note(item_type, &close, ObjectionKind::Undone, None, at).await?);
                    continue;
                }
                match self.ask(github, item_type, &close, &key).await {
                    Ok(Some((kind, by))) => {
                        report.new += u64::from(self.note(item_type, &close, kind, by.as_ref(), now).await?);
                    }
                    Ok(None) => {}
                    Err(ObjectionFailure::GitHub(GitHubError::RateLimited { until })) => report.retry_at = Some(until),
                    Err(ObjectionFailure::GitHub(error)) => report.failed = Some(error.to_string()),
                    Err(ObjectionFailure::Store(error)) => return Err(error.into()),
                }
            }
        }
        self.check_breaker(now).await?;
        Ok(report)
    }

    async fn ask(
        &self,
        github: &GitHub,
        item_type: ItemType,
        close: &AppliedClose,
        key: &str,
    ) -> Result<Option<(ObjectionKind, Option<Login>)>, ObjectionFailure> {
        if let Some(by) = self.opened_again(github, item_type, close).await? {
            return Ok(Some((ObjectionKind::Reopened, by)));
        }
        let disliked = self.disliked(github, item_type, close, key).await?;
        Ok(disliked.map(|by| (ObjectionKind::Reaction, by)))
    }

    /// Whether a person reopened the item, and who. The stored state may be open because of a late webhook or a bot,
    /// so GitHub is asked.
    async fn opened_again(
        &self,
        github: &GitHub,
        item_type: ItemType,
        close: &AppliedClose,
    ) -> Result<Option<Option<Login>>, ObjectionFailure> {
        if close.objected {
            return Ok(Some(None));
        }
        let item = self.store.corpus().item(self.repo.id, item_type, close.number).await?;
        if !item.is_some_and(|item| item.state == ItemState::Open && item.gone.is_none()) {
            return Ok(None);
        }
        let timeline = match github.timeline(&self.repo.name, close.number).all().await {
            Ok(timeline) => timeline,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(reopened_by_person(&timeline, close.applied_at))
    }

    /// Whether two people, or the author, disagreed with the closing comment.
    async fn disliked(
        &self,
        github: &GitHub,
        item_type: ItemType,
        close: &AppliedClose,
        key: &str,
    ) -> Result<Option<Option<Login>>, ObjectionFailure> {
        let entry = self.store.outbox().of_key(key).await?;
        let comment = entry.and_then(|entry| written_comment(std::slice::from_ref(&entry), key));
        let Some(comment) = comment else { return Ok(None) };
        let reactions = match github.reactions(&self.repo.name, ReactionSubject::Comment(comment)).all().await {
            Ok(reactions) => reactions,
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let people: BTreeSet<Login> = reactions
            .iter()
            .filter(|reaction| disagrees(reaction))
            .filter_map(|reaction| reaction.user.as_ref().and_then(RestUser::to_login))
            .collect();
        let author =
            self.store.corpus().item(self.repo.id, item_type, close.number).await?.and_then(|item| item.author);
        if let Some(author) = author.filter(|author| people.contains(author)) {
            return Ok(Some(Some(author)));
        }
        Ok((people.len() >= DISAGREEING).then_some(None))
    }
}

/// The last person who reopened an item after it was closed.
fn reopened_by_person(timeline: &[RestTimelineEvent], closed_at: Timestamp) -> Option<Option<Login>> {
    let by_person = |event: &&RestTimelineEvent| {
        let since = event.created_at.is_none_or(|at| at.as_second() >= closed_at.as_second());
        event.event == "reopened" && since && !event.actor.as_ref().is_some_and(RestUser::is_bot)
    };
    let last = timeline.iter().rfind(by_person)?;
    Some(last.actor.as_ref().and_then(RestUser::to_login))
}

/// Why a check for objections failed.
enum ObjectionFailure {
    GitHub(GitHubError),
    Store(StoreError),
}

impl From<GitHubError> for ObjectionFailure {
    fn from(error: GitHubError) -> Self {
        Self::GitHub(error)
    }
}

impl From<StoreError> for ObjectionFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use canonry_github::api::RestTimelineEvent;
    use serde_json::json;

    use super::reopened_by_person;

    #[test]
    fn only_a_person_who_opens_it_after_the_close_objects() {
        let opened = |by: &str, second: u8| -> RestTimelineEvent {
            let at = format!("2026-02-01T00:00:{second:02}Z");
            serde_json::from_value(json!({"event": "reopened", "actor": {"login": by}, "created_at": at}))
                .expect("valid")
        };
        let closed_at = "2026-02-01T00:00:10.5Z".parse().expect("valid");
        let by = |events: &[RestTimelineEvent]| reopened_by_person(events, closed_at);
        assert_eq!(by(&[]), None);
        assert_eq!(by(&[opened("ann", 9), opened("stale[bot]", 20)]), None);
        assert_eq!(by(&[opened("ann", 12)]), Some(Some("ann".parse().expect("valid"))));
    }
}
