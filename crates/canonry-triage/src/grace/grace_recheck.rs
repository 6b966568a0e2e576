//! Checks everything that may end a grace period, right before a write.

use canonry_config::{SettingsSection, parse};
use canonry_domain::{
    GithubId, GraceBasis, GraceEnd, GraceFacts, Item, ItemNumber, ItemType, Maintainers, PLAN_LIFETIME,
    POSSIBLE_DUPLICATE, PairItem, RecordChange, RepoName, Rulings, TriageMode, WriteOrigin, cancelled_close_text,
    content_hash, grace_end, has_protected_label, may_close_towards,
};
use canonry_github::api::{RestComment, RestIssue, RestReaction, RestTimelineEvent, RestUser};
use canonry_github::outbox::{Outbox, Receipt};
use canonry_github::{FactError, GitHub, GitHubError, item_from_issue};
use canonry_store::{BrakeKind, Grace, GraceState, OutboxEntry, OutboxState, Store, StoreError, TriageActionKind};
use jiff::Timestamp;

use crate::close::close_recheck::LookError;
use crate::close::live_item::{is_gone, is_linked, is_own_review, is_pinned, pushed_at, reopenings, reviewed_at};
use crate::online::live_settings::{SettingsError, live_settings, triage_mode};
use crate::online::posted_triage::PostedTriage;

/// Checks one grace period. If something cannot be read, that is an error, and nothing is written until it can be
/// read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GraceWatch<'a> {
    pub(crate) store: &'a Store,
    pub(crate) github: &'a GitHub,
    pub(crate) outbox: &'a Outbox,
    pub(crate) grace: &'a Grace,
}

impl GraceWatch<'_> {
    /// Reads everything again from the store and from GitHub, and returns why the grace period ends now, if it does.
    /// Also updates both items in the store.
    pub(crate) async fn look(&self, repo: &RepoName) -> Result<Option<GraceEnd>, LookError> {
        let Some(present) = self.store.close().grace(self.grace.id).await? else {
            return Err(LookError::Unclear("the grace is no longer stored".to_owned()));
        };
        if present.state != GraceState::Waiting {
            let end = present.reason.as_deref().and_then(|reason| reason.parse().ok());
            return Ok(Some(end.unwrap_or(GraceEnd::Superseded)));
        }
        let mut facts = GraceFacts::default();
        self.read_rules(&mut facts).await?;
        let seen = self.stored(self.grace.number).await?;
        let issue = match self.github.issue_to_close(repo, self.grace.number).await {
            Ok(issue) => issue,
            Err(FactError::GitHub(error)) if is_gone(&error) => {
                // A repository that cannot be seen gives the same answer for each of its items.
                self.github.repo(repo).await?;
                facts.gone = true;
                return Ok(self.end(&facts));
            }
            Err(error) => return Err(error.into()),
        };
        facts.closed = issue.state != "open";
        if !facts.closed {
            self.take_in(seen.as_ref(), &issue).await?;
            let by_bots = self.read_source(repo, &issue, &mut facts).await?;
            self.read_target(repo, &mut facts).await?;
            if self.began() == GraceBasis::Announced {
                self.read_announcement(repo, &issue, &mut facts).await?;
                self.read_rank(by_bots, &mut facts).await?;
            }
        }
        Ok(self.end(&facts))
    }

    fn began(&self) -> GraceBasis {
        if self.grace.approved_by.is_some() { GraceBasis::Ruled } else { GraceBasis::Announced }
    }

    fn end(&self, facts: &GraceFacts) -> Option<GraceEnd> {
        grace_end(self.began(), facts)
    }

    /// Reads the settings, the breaker and the rulings of the repository.
    async fn read_rules(&self, facts: &mut GraceFacts) -> Result<(), LookError> {
        let Grace { repo, item_type, number, target, .. } = self.grace;
        let text = match live_settings(self.store, self.github, repo).await {
            Ok(text) => text,
            Err(SettingsError::GitHub(error)) => return Err(error.into()),
            Err(SettingsError::Store(error)) => return Err(error.into()),
        };
        let settings = parse(&text.unwrap_or_default());
        if settings.fell_back(SettingsSection::Triage) || settings.fell_back(SettingsSection::Close) {
            return Err(LookError::Unclear("the settings of the repository cannot be read".to_owned()));
        }
        facts.mode_changed = triage_mode(&settings) != TriageMode::Grace;
        facts.breaker = self.store.close().brake_in_force(repo.id, BrakeKind::Breaker).await?.is_some();
        let overrides = self.store.duplicates().overrides(repo.id, Some(*item_type)).await?;
        facts.ruled_apart = Rulings::of(*item_type, &overrides).are_apart(*number, *target);
        Ok(())
    }

    /// Reads the item itself. Returns how many comments other bots have written since it was judged.
    async fn read_source(&self, repo: &RepoName, issue: &RestIssue, facts: &mut GraceFacts) -> Result<u32, LookError> {
        let Grace { item_type, number, began_at, content_version, .. } = self.grace;
        let item = self.stored(*number).await?;
        let storable = |text: &str| text.replace('\0', "\u{fffd}");
        let body = issue.body.as_deref().unwrap_or_default();
        let live = content_hash(*item_type, &storable(&issue.title), &storable(body));
        facts.edited = item.is_none_or(|item| item.content_version != *content_version || item.content_hash != live);
        facts.locked = issue.locked;
        facts.assigned = !issue.assignees.is_empty();
        facts.milestoned = issue.milestone.is_some();
        let labels: Vec<String> = issue.labels.iter().map(|label| label.name.clone()).collect();
        let settings = self.store.repos().settings(self.grace.repo.id).await?;
        let settings = parse(&settings.and_then(|kept| kept.text).unwrap_or_default());
        let config = &settings.config;
        facts.protected = has_protected_label(&labels, &config.close.protected_labels)
            || has_protected_label(&labels, &config.triage.exclude_labels);
        let timeline = self.github.timeline_before_close(repo, *number).await?;
        facts.pinned = is_pinned(&timeline);
        facts.linked_pull = *item_type == ItemType::Issue && is_linked(repo, *number, &timeline);
        // A ruling is a maintainer's answer to everything that happened before it.
        let by_ruling = self.began() == GraceBasis::Ruled;
        facts.reopened = reopenings(&timeline).any(|(at, by_person)| at > *began_at || (by_person && !by_ruling));
        let unlabelled = |event: &RestTimelineEvent| {
            event.event == "unlabeled"
                && event.label.as_ref().is_some_and(|label| label.name.eq_ignore_ascii_case(POSSIBLE_DUPLICATE))
                && event.created_at.is_none_or(|at| at.as_second() >= began_at.as_second())
                && !self.is_own(event.actor.as_ref())
        };
        let since = self.since().await?;
        facts.label_removed = timeline.iter().any(unlabelled);
        let counts = |at: Timestamp| at.as_second() >= since.as_second();
        facts.edited |= timeline.iter().any(|event| pushed_at(event).is_some_and(counts));
        let is_review = |event: &&RestTimelineEvent| !is_own_review(self.outbox, event);
        facts.human_commented = timeline.iter().filter(is_review).any(|event| reviewed_at(event).is_some_and(counts));
        let comments = self.github.comments_before_close(repo, *number, since).await?;
        facts.human_commented |= comments.iter().any(|comment| self.is_word_of_a_person(comment, since));
        let by_bot = |comment: &&RestComment| {
            comment.created_at.is_some_and(counts)
                && comment.user.as_ref().is_some_and(RestUser::is_bot)
                && !self.outbox.wrote(comment)
        };
        Ok(u32::try_from(comments.iter().filter(by_bot).count()).unwrap_or(u32::MAX))
    }

    async fn read_target(&self, repo: &RepoName, facts: &mut GraceFacts) -> Result<(), LookError> {
        let seen = self.stored(self.grace.target).await?;
        match self.github.target_of_close(repo, self.grace.target).await {
            Ok(target) => {
                self.take_in(seen.as_ref(), &target).await?;
                facts.target_closed = target.state != "open";
            }
            Err(FactError::GitHub(error)) if is_gone(&error) => facts.target_closed = true,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads the comment that announced the close, its state, and the reactions to it.
    async fn read_announcement(
        &self,
        repo: &RepoName,
        issue: &RestIssue,
        facts: &mut GraceFacts,
    ) -> Result<(), LookError> {
        let Grace { item_type, number, triage_id, comment_key, .. } = self.grace;
        let actions = self.store.duplicates().triage_actions_of(self.grace.repo.id, *item_type, *number).await?;
        let said = actions.iter().find(|stored| stored.action.action != TriageActionKind::Recorded);
        let entries = self.store.outbox().of_item(self.grace.repo.id, *number).await?;
        let so_far = PostedTriage::read(&entries);
        let standing = so_far.standing.filter(|standing| Some(&standing.key) == comment_key.as_ref());
        facts.comment_deleted = standing.is_none();
        let announces = standing.and_then(|standing| cancelled_close_text(&standing.text?, "")).is_some();
        facts.withdrawn = !announces || said.map(|stored| stored.action.triage_id) != *triage_id;
        let set =
            |entry: &&OutboxEntry| entry.source.origin == WriteOrigin::TriageLabel && entry.state == OutboxState::Sent;
        let is_there = issue.labels.iter().any(|label| label.name.eq_ignore_ascii_case(POSSIBLE_DUPLICATE));
        facts.label_removed |= !is_there && !so_far.label_taken_off && entries.iter().any(|entry| set(&entry));
        let Some(comment) = comment_key.as_deref().and_then(|key| written_comment(&entries, key)) else {
            return Err(LookError::Unclear("the comment that announced the close is unknown".to_owned()));
        };
        match self.github.reactions_before_close(repo, comment).await {
            Ok(reactions) => facts.reaction = reactions.iter().any(disagrees),
            Err(FactError::GitHub(GitHubError::NotFound { .. } | GitHubError::Gone { .. })) => {
                self.github.repo(repo).await?;
                facts.comment_deleted = true;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads which of the two would be chosen to stay open now. Both have just been updated in the store.
    async fn read_rank(&self, by_bots: u32, facts: &mut GraceFacts) -> Result<(), LookError> {
        let Grace { repo, item_type, number, target, .. } = self.grace;
        let (Some(source), Some(canonical)) = (self.stored(*number).await?, self.stored(*target).await?) else {
            return Err(LookError::Unclear("one of the two items is not stored".to_owned()));
        };
        let list = self.store.repos().maintainers(repo.id).await?;
        let maintainers: Maintainers = list.into_iter().flat_map(|list| list.logins).collect();
        // A bot's comment is no objection, so it must not change the order either.
        let own_comments = self.own_comments(*number).await? + by_bots;
        let source = PairItem { item: &source, own_comments };
        let canonical = PairItem { item: &canonical, own_comments: self.own_comments(*target).await? };
        let since = self.github.now() - PLAN_LIFETIME;
        facts.outranked = !may_close_towards(source, canonical, &maintainers)
            || self.store.plans().is_closing_towards(repo.id, *item_type, (*target, *number), since).await?;
        Ok(())
    }

    /// The comments that Canonry wrote on an item, including those of closes in progress.
    async fn own_comments(&self, number: ItemNumber) -> Result<u32, LookError> {
        let repo = self.grace.repo.id;
        let sent = self.store.outbox().own_comments(repo, Some(number)).await?.get(&number).copied().unwrap_or(0);
        let is_under_way = |entry: &&OutboxEntry| {
            let comment = entry.step.as_ref().and_then(|step| step.get("comment"));
            entry.state == OutboxState::Pending && comment.is_some_and(|comment| !comment.is_null())
        };
        let entries = self.store.outbox().of_item(repo, number).await?;
        Ok(sent + u32::try_from(entries.iter().filter(is_under_way).count()).unwrap_or(u32::MAX))
    }

    /// When GitHub wrote the comment that announced the close, by its own clock.
    pub(crate) async fn announced_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let Some(key) = &self.grace.comment_key else { return Ok(None) };
        let entry = self.store.outbox().of_key(key).await?;
        Ok(entry.and_then(|entry| Receipt::of_entry(&entry)?.comment?.created_at))
    }

    /// Since when a person's comments count: since the text was judged, which is before the comment was written, or
    /// since the comment by GitHub's clock if ours is ahead.
    async fn since(&self) -> Result<Timestamp, LookError> {
        let Grace { repo, item_type, number, triage_id, began_at, .. } = self.grace;
        let records = self.store.duplicates().triage_records_of(repo.id, *item_type, *number).await?;
        let record = records.iter().find(|record| Some(record.id) == *triage_id);
        let judged = record.map_or(*began_at, |record| record.created_at.min(*began_at));
        let written = self.announced_at().await?;
        Ok(written.map_or(judged, |written| written.min(judged)))
    }

    async fn stored(&self, number: ItemNumber) -> Result<Option<Item>, LookError> {
        Ok(self.store.corpus().item(self.grace.repo.id, self.grace.item_type, number).await?)
    }

    /// Upserts an item that was fetched after `seen` was read. If the item changes in between, its state is unknown.
    async fn take_in(&self, seen: Option<&Item>, issue: &RestIssue) -> Result<(), LookError> {
        let now = self.github.now();
        let record = item_from_issue(issue, now).map_err(|error| LookError::Unclear(error.to_string()))?;
        let number = record.number;
        match self.store.corpus().upsert_fetched_item(&self.grace.repo, seen, record, now).await?.1 {
            RecordChange::Unordered => Err(LookError::Unclear(format!("#{number} changed during the recheck"))),
            _ => Ok(()),
        }
    }

    /// Whether a person wrote or edited the comment since then. GitHub's times have whole seconds: a comment in the
    /// same second counts.
    fn is_word_of_a_person(&self, comment: &RestComment, since: Timestamp) -> bool {
        let last = comment.created_at.max(comment.updated_at);
        let later = last.is_none_or(|at| at.as_second() >= since.as_second());
        later && !self.outbox.wrote(comment) && !comment.user.as_ref().is_some_and(RestUser::is_bot)
    }

    fn is_own(&self, user: Option<&RestUser>) -> bool {
        user.and_then(RestUser::to_login).is_some_and(|login| login == *self.outbox.own_login())
    }
}

/// Whether a reaction disagrees and is not a bot's. Canonry never reacts like this: if the reaction is from our own
/// account, a person made it.
pub(crate) fn disagrees(reaction: &RestReaction) -> bool {
    matches!(reaction.content.as_str(), "-1" | "confused") && !reaction.user.as_ref().is_some_and(RestUser::is_bot)
}

pub(crate) fn written_comment(entries: &[OutboxEntry], key: &str) -> Option<GithubId> {
    Some(Receipt::of_entry(entries.iter().find(|entry| entry.key == key)?)?.comment?.id)
}
