//! Carries out each command. The caller has checked that the person may use it.

use canonry_domain::mention::{
    MentionCommand, MentionRole, MentionVerb, NothingToUndo, close_cancelled, could_not, dismissed, duplicate_ruled,
    duplicate_ruled_and_closing, mention_help, needs_another_number, not_apart, not_here, not_paused, nothing_to_undo,
    only_a_maintainer_silences, overtaken, paused, resumed, review_of_closed, reviews_are_off, ruled_apart,
    ruled_by_a_maintainer, unknown_item, while_paused,
};
use canonry_domain::review::{Dismisser, Fingerprint};
use canonry_domain::{GraceEnd, ItemNumber, ItemState, ItemType, Login, OverrideKind, TriageMode, UndoReason, Verdict};
use canonry_github::outbox::ReactionContent;
use canonry_github::{GitHub, quote_line};
use canonry_review::{
    FindingThread, cleared_markdown, dismiss_by_mention, explain_finding, feedback_report, restored_markdown,
};
use canonry_store::{Brake, BrakeKind, MentionOutcome, MentionPlace, Repo, StoreError, StoredTriageRecord};
use canonry_triage::{
    GraceStart, RulingError, Statement, UndoneLast, begin_grace_by_ruling, cancel_grace, rule_pair, ruled_since,
    undo_last_close, why_item, withdraw_suggestion,
};

use jiff::{SignedDuration, Timestamp};

use super::mentions::{MentionReply, PostedComment};
use super::review_threads::await_record;
use super::webhook::Webhook;
use crate::handlers::repo_settings::RepoSettings;
use crate::jobs::grace_job::queue_grace_sweep;
use crate::jobs::job_handler::JobError;
use crate::review::review_requests::{ReviewJob, queue_review};

/// The most characters of another person's text in an answer.
const QUOTED: usize = 200;

/// How often an unfinished undo is retried.
const GOES_ON: SignedDuration = SignedDuration::from_mins(1);

#[derive(Clone, Copy)]
pub(super) struct MentionActions<'a> {
    pub(super) hook: Webhook<'a>,
    pub(super) github: &'a GitHub,
    pub(super) repo: &'a Repo,
    pub(super) said: PostedComment<'a>,
    pub(super) by: &'a Login,
    pub(super) role: MentionRole,
    pub(super) settings: &'a RepoSettings,
    /// When the comment was written. Rulings and pauses count from then on, so that a comment that arrives late loses
    /// against later ones.
    pub(super) said_at: Timestamp,
    /// Whether that is so long ago that the comment was fetched again.
    pub(super) is_old: bool,
}

/// The outcome of a command, and its answer.
type ActionResult = Result<(MentionOutcome, MentionReply), JobError>;

impl MentionActions<'_> {
    /// Carries out a command. Everything may be done twice, after a kill.
    pub(super) async fn carry_out(self, command: MentionCommand) -> ActionResult {
        match command {
            MentionCommand::Review => self.review(&command, false).await,
            MentionCommand::FullReview => self.review(&command, true).await,
            MentionCommand::Pause => self.pause().await,
            MentionCommand::Resume => self.resume().await,
            MentionCommand::Why => self.why().await,
            MentionCommand::NotUseful => self.not_useful(&command).await,
            MentionCommand::FeedbackStatus => {
                let auto_suppress = &self.settings.config().feedback.auto_suppress;
                let report = feedback_report(self.hook.service.store(), self.repo.id, auto_suppress).await?;
                done(report.status_markdown())
            }
            MentionCommand::FeedbackList => {
                let auto_suppress = &self.settings.config().feedback.auto_suppress;
                let report = feedback_report(self.hook.service.store(), self.repo.id, auto_suppress).await?;
                done(report.list_markdown())
            }
            MentionCommand::FeedbackClear(pattern) => self.clear(pattern.as_ref()).await,
            MentionCommand::FeedbackRestore => self.restore_feedback().await,
            MentionCommand::DuplicateOf(target) => self.duplicate_of(target).await,
            MentionCommand::NotADuplicate(named) => self.not_a_duplicate(named).await,
            MentionCommand::Undo => self.undo().await,
            MentionCommand::Help => done(mention_help(self.handle())),
        }
    }

    fn handle(&self) -> &str {
        self.settings.handle()
    }

    async fn is_paused(&self) -> Result<bool, StoreError> {
        let brake = self.hook.service.store().close().brake_in_force(self.repo.id, BrakeKind::Pause).await?;
        Ok(brake.is_some())
    }

    async fn review(self, command: &MentionCommand, full: bool) -> ActionResult {
        if self.said.item_type != ItemType::Pr {
            return no(not_here(command.verb().spec(), self.handle()));
        }
        if !self.settings.config().review.enabled {
            return no(reviews_are_off());
        }
        if self.is_paused().await? {
            return no(while_paused(self.handle()));
        }
        if !self.is_open().await? {
            return no(review_of_closed());
        }
        let (by, delivery) = (Some(self.by.clone()), &self.hook.delivery.id);
        let job = ReviewJob::new(self.repo, self.said.number, by, "mention", delivery)?;
        queue_review(self.hook.service, self.repo, ReviewJob { requests: 1, full, ..job }).await?;
        Ok((MentionOutcome::Done, MentionReply::React(ReactionContent::Eyes)))
    }

    /// As far as is known; an item that is not stored yet counts as open.
    async fn is_open(&self) -> Result<bool, StoreError> {
        let item = self.hook.service.store().corpus().item(self.repo.id, self.said.item_type, self.said.number).await?;
        Ok(item.is_none_or(|item| item.state == ItemState::Open))
    }

    async fn pause(self) -> ActionResult {
        let why = format!("asked for in #{}", self.said.number);
        let store = self.hook.service.store();
        let brakes = store.close().brakes(self.repo.id).await?;
        let mut lifted =
            brakes.iter().filter(|brake| brake.kind == BrakeKind::Pause).filter_map(|brake| brake.lifted_at);
        if lifted.any(|at| self.is_after(at)) || self.said_later(MentionVerb::Resume).await? {
            return no(overtaken());
        }
        store.close().set_brake(self.repo.id, BrakeKind::Pause, Some(self.by), &why, self.said_at).await?;
        done(paused(self.by, self.handle()))
    }

    async fn resume(self) -> ActionResult {
        let store = self.hook.service.store();
        let brakes = store.close().brakes(self.repo.id).await?;
        let in_force = brakes.into_iter().filter(|brake| brake.lifted_at.is_none());
        let (later, meant): (Vec<Brake>, Vec<Brake>) = in_force.partition(|brake| self.is_after(brake.set_at));
        if self.said_later(MentionVerb::Pause).await? {
            return no(overtaken());
        }
        let mut lifted = false;
        for brake in meant {
            lifted |= store.close().lift_brake(self.repo.id, brake.kind, Some(self.by), self.said_at).await?;
        }
        match (later.is_empty(), lifted) {
            (false, _) => no(overtaken()),
            (true, true) => done(resumed(self.by)),
            (true, false) => done(not_paused()),
        }
    }

    /// Whether something happened after the comment was written. GitHub's times are whole seconds.
    fn is_after(&self, at: Timestamp) -> bool {
        at.as_second() > self.said_at.as_second()
    }

    /// Whether a later comment gave this command and it was carried out.
    async fn said_later(&self, verb: MentionVerb) -> Result<bool, StoreError> {
        let (store, PostedComment { place, comment, .. }) = (self.hook.service.store(), self.said);
        store.deliveries().has_later_mention(self.repo.id, place, comment, verb.as_str()).await
    }

    /// The review thread of the comment.
    fn thread(&self) -> Option<FindingThread> {
        let thread = self.said.in_reply_to.filter(|_| self.said.place == MentionPlace::Review)?;
        Some(FindingThread { repo: self.repo.id, number: self.said.number, thread })
    }

    async fn why(self) -> ActionResult {
        let store = self.hook.service.store();
        let page = self.github.clone_url(&self.repo.name);
        if let Some(thread) = self.thread()
            && let Some(life) = explain_finding(store, thread, page.strip_suffix(".git")).await?
        {
            return done(life.markdown());
        }
        let with = Some(self.hook.service.detectors());
        done(why_item(store, self.repo, self.said.item_type, self.said.number, with).await?)
    }

    async fn not_useful(self, command: &MentionCommand) -> ActionResult {
        let (store, now) = (self.hook.service.store(), self.hook.service.now());
        let dismisser = match self.role {
            MentionRole::Maintainer => Dismisser::Maintainer,
            MentionRole::Author | MentionRole::Other => Dismisser::Author,
        };
        let dismissal = match self.thread() {
            Some(thread) => {
                await_record(self.hook, self.repo, thread).await?;
                dismiss_by_mention(store, thread, self.by, dismisser, now).await?
            }
            None => None,
        };
        match dismissal {
            Some(dismissal) if dismissal.silences => done(dismissed(self.by)),
            Some(_) => done(only_a_maintainer_silences(self.by)),
            None => no(not_here(command.verb().spec(), self.handle())),
        }
    }

    async fn clear(self, pattern: Option<&Fingerprint>) -> ActionResult {
        let (store, now) = (self.hook.service.store(), self.hook.service.now());
        let cleared = store.findings().clear_feedback(self.repo.id, pattern, self.by, now).await?;
        let words = cleared_markdown(self.by, pattern, cleared);
        done(match (pattern, cleared) {
            // A reset of everything is easily sent by mistake.
            (None, 1..) => format!("{words} `/{} feedback restore` undoes it.", self.handle()),
            (Some(_), _) | (None, 0) => words,
        })
    }

    async fn restore_feedback(self) -> ActionResult {
        let (store, now) = (self.hook.service.store(), self.hook.service.now());
        let undone = store.findings().undo_feedback_clear(self.repo.id, None, self.by, self.said_at, now).await?;
        done(restored_markdown(self.by, undone.as_ref()))
    }

    async fn duplicate_of(self, target: ItemNumber) -> ActionResult {
        let PostedComment { item_type, number, .. } = self.said;
        let (service, store, now) = (self.hook.service, self.hook.service.store(), self.hook.service.now());
        let note = self.note();
        let stated = Statement { note: Some(&note), by: Some(self.by) };
        let pair = (number, target);
        if ruled_since(store, self.repo, item_type, OverrideKind::Duplicate, pair, self.said_at).await? {
            return no(overtaken());
        }
        let at = self.said_at;
        if let Err(error) =
            rule_pair(store, self.repo, item_type, OverrideKind::Duplicate, (number, target), stated, at).await
        {
            return self.not_ruled(error);
        }
        let is_open = self.is_open().await?;
        let closes = is_open && !self.is_paused().await?;
        if closes && self.settings.triage_rules(service, self.repo).await?.mode == TriageMode::Grace {
            let outbox = Some(service.outbox().await?);
            let begun =
                begin_grace_by_ruling(store, outbox, self.repo, item_type, number, target, self.by, now).await?;
            if begun == GraceStart::Yes {
                queue_grace_sweep(service).await?;
                return done(duplicate_ruled_and_closing(self.by, item_type, target));
            }
        }
        done(duplicate_ruled(self.by, item_type, target, is_open))
    }

    async fn not_a_duplicate(self, named: Option<ItemNumber>) -> ActionResult {
        let PostedComment { item_type, number, .. } = self.said;
        let (store, now) = (self.hook.service.store(), self.hook.service.now());
        let PresumedTarget { target, closed, ruled } = self.taken_for(named).await?;
        if let Some(ruled) = ruled.filter(|_| self.role != MentionRole::Maintainer) {
            return no(ruled_by_a_maintainer(ruled));
        }
        let Some(target) = target else { return no(not_apart(self.handle())) };
        let note = self.note();
        let stated = Statement { note: Some(&note), by: Some(self.by) };
        let pair = (number, target);
        if ruled_since(store, self.repo, item_type, OverrideKind::NotDuplicate, pair, self.said_at).await? {
            return no(overtaken());
        }
        let at = self.said_at;
        let ruled = match rule_pair(
            store,
            self.repo,
            item_type,
            OverrideKind::NotDuplicate,
            (number, target),
            stated,
            at,
        )
        .await
        {
            Ok(ruled) => ruled,
            Err(error) => return self.not_ruled(error),
        };
        let outbox = self.hook.service.outbox().await?;
        // Before the grace ends, which would edit the same comment with a shorter text.
        withdraw_suggestion(store, outbox, self.repo, item_type, number, target, self.by, ruled.id).await?;
        self.hook.service.wake_publisher();
        let cancelled =
            cancel_grace(store, Some(outbox), self.repo, item_type, number, GraceEnd::NotDuplicate, now).await?;
        if closed == Some(target) || (!cancelled && self.is_being_closed_for(target).await?) {
            return match self.reopen().await? {
                UndoneLast::Reopened => thumb(),
                UndoneLast::Pending(why) => Err(self.goes_on(why)),
                UndoneLast::Failed(why) => failed(&why),
                UndoneLast::AlreadyOpen | UndoneLast::NotOurs | UndoneLast::Nothing => {
                    done(ruled_apart(self.by, target))
                }
            };
        }
        done(if cancelled { close_cancelled(self.by, target) } else { ruled_apart(self.by, target) })
    }

    /// Whether the item is now closed as a duplicate of `target`, or a close that can no longer be cancelled is under
    /// way.
    async fn is_being_closed_for(&self, target: ItemNumber) -> Result<bool, StoreError> {
        let PostedComment { item_type, number, .. } = self.said;
        let store = self.hook.service.store();
        // The order matters: a grace that ends between the two reads has left a close behind.
        let waiting = store.close().waiting_grace(self.repo.id, item_type, number).await?;
        if waiting.is_some_and(|grace| grace.target == target && grace.plan.is_some()) {
            return Ok(true);
        }
        let closes = store.plans().applied_closes(self.repo.id, item_type).await?;
        let last = closes.iter().rfind(|close| close.number == number);
        Ok(last.is_some_and(|close| close.undone_at.is_none() && close.target == target))
    }

    /// The item that Canonry or a person considers the original, and who decided it.
    async fn taken_for(&self, named: Option<ItemNumber>) -> Result<PresumedTarget, StoreError> {
        let PostedComment { item_type, number, .. } = self.said;
        let store = self.hook.service.store();
        let overrides = store.duplicates().overrides(self.repo.id, Some(item_type)).await?;
        let duplicates = overrides.iter().rev().filter(|ruled| ruled.kind == OverrideKind::Duplicate);
        let duplicates: Vec<(ItemNumber, ItemNumber)> =
            duplicates.filter_map(|ruled| Some((ruled.item, ruled.other?))).collect();
        let ruled = duplicates.iter().find(|(item, _)| *item == number).map(|(_, of)| *of);
        let closes = store.plans().applied_closes(self.repo.id, item_type).await?;
        let last = closes.iter().rfind(|close| close.number == number);
        let closed = last.filter(|close| close.undone_at.is_none()).map(|close| close.target);
        let waiting = store.close().waiting_grace(self.repo.id, item_type, number).await?.map(|grace| grace.target);
        let records = store.duplicates().triage_records_of(self.repo.id, item_type, number).await?;
        let is_named = |stored: &&StoredTriageRecord| {
            stored.record.verdict != Verdict::NotDuplicate || stored.record.fix.is_some()
        };
        let predicted = records.iter().filter(is_named).find_map(|stored| stored.record.named_item());
        let predicted = predicted.map(|(number, _)| number);
        let target = named.or(closed).or(waiting).or(ruled).or(predicted);
        // The close was undone before the answer was stored, and the same comment is handled again.
        let target = target.or(last.map(|close| close.target));
        // A not-duplicate ruling ends a duplicate ruling of the two items in either direction.
        let is_ruled = |target: &ItemNumber| {
            duplicates.iter().any(|pair| *pair == (number, *target) || *pair == (*target, number))
        };
        // An approved row of a plan is a maintainer's ruling too.
        let approved = last.filter(|close| close.undone_at.is_none() && close.approved == Some(true));
        let is_approved = |target: &ItemNumber| approved.is_some_and(|close| close.target == *target);
        Ok(PresumedTarget { target, closed, ruled: target.filter(|target| is_ruled(target) || is_approved(target)) })
    }

    async fn undo(self) -> ActionResult {
        // An old comment is about an earlier close. A new one may be written while the close is still being recorded.
        if self.is_old {
            let PostedComment { item_type, number, .. } = self.said;
            let closes = self.hook.service.store().plans().applied_closes(self.repo.id, item_type).await?;
            let last = closes.iter().rfind(|close| close.number == number);
            if last.is_some_and(|close| close.undone_at.is_none() && self.is_after(close.applied_at)) {
                return no(overtaken());
            }
        }
        match self.reopen().await? {
            UndoneLast::Reopened => thumb(),
            UndoneLast::AlreadyOpen => done(nothing_to_undo(NothingToUndo::IsOpen)),
            UndoneLast::NotOurs => done(nothing_to_undo(NothingToUndo::ClosedByOthers)),
            UndoneLast::Nothing => done(nothing_to_undo(NothingToUndo::NeverClosed)),
            UndoneLast::Pending(why) => Err(self.goes_on(why)),
            UndoneLast::Failed(why) => failed(&why),
        }
    }

    /// The close is partly undone. Only this job continues it, and nothing is answered before it is done.
    fn goes_on(&self, reason: String) -> JobError {
        JobError::Postpone { reason, until: self.hook.service.now() + GOES_ON }
    }

    async fn reopen(&self) -> Result<UndoneLast, JobError> {
        let PostedComment { item_type, number, .. } = self.said;
        let service = self.hook.service;
        let (store, outbox) = (service.store(), service.outbox().await?);
        let reason = UndoReason::NotDuplicate;
        let undone =
            undo_last_close(store, self.github, outbox, self.repo, item_type, number, self.by, reason, self.handle());
        Ok(undone.await?)
    }

    /// Names the person who ruled, for later readers of the ruling.
    fn note(&self) -> String {
        format!("{} in a comment on #{}", self.by, self.said.number)
    }

    fn not_ruled(&self, error: RulingError) -> ActionResult {
        match error {
            RulingError::Itself => no(needs_another_number(self.said.item_type)),
            RulingError::Store(StoreError::UnknownItem { item_type, number }) => no(unknown_item(item_type, number)),
            RulingError::Store(error) => Err(error.into()),
        }
    }
}

struct PresumedTarget {
    target: Option<ItemNumber>,
    /// The item that Canonry last closed this one as a duplicate of.
    closed: Option<ItemNumber>,
    /// The same item, if a person ruled that one of the two is a duplicate of the other, or approved the close.
    ruled: Option<ItemNumber>,
}

fn done(words: String) -> ActionResult {
    Ok((MentionOutcome::Done, MentionReply::Reply(words)))
}

/// Only a reaction: the comment that reopens the item already describes it.
fn thumb() -> ActionResult {
    Ok((MentionOutcome::Done, MentionReply::React(ReactionContent::PlusOne)))
}

fn no(words: String) -> ActionResult {
    Ok((MentionOutcome::Refused, MentionReply::Reply(words)))
}

fn failed(why: &str) -> ActionResult {
    Ok((MentionOutcome::Failed, MentionReply::Reply(could_not(&quote_line(why, QUOTED)))))
}
