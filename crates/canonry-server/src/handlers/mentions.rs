//! A comment with a command for Canonry: its author, the author's permission, and the one answer.

use canonry_domain::mention::{
    ANSWERED_A_DAY, MentionCommand, MentionRequest, MentionRole, MentionVerb, is_mention_answered, may_contain_mention,
    parse_mention, refused, unknown_mention,
};
use canonry_domain::{GithubId, ItemNumber, ItemType, Login, WriteKey, WriteOrigin};
use canonry_github::api::RestUser;
use canonry_github::outbox::{ReactTo, ReactionContent, Write};
use canonry_github::{GitHub, GitHubError};
use canonry_review::is_maintainer;
use canonry_store::{Mention, MentionOutcome, MentionPlace, Repo};
use jiff::{SignedDuration, Timestamp};

use super::mention_actions::MentionActions;
use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;

/// How long a refusal on an item is not repeated in words to the same person.
const TOLD_ONCE: SignedDuration = SignedDuration::from_hours(24);

/// The reason that the delivery of an unanswered mention shows.
const TOO_MANY: &str = "too many commands from people who are not maintainers within an hour; this one is not answered";

/// A comment that is handled later than this is fetched again first: failed deliveries are repeated for days, and an
/// author who saw no effect may have withdrawn the command.
const FRESH: SignedDuration = SignedDuration::from_mins(10);

#[derive(Clone, Copy)]
pub(super) struct PostedComment<'a> {
    pub(super) place: MentionPlace,
    pub(super) comment: GithubId,
    pub(super) text: &'a str,
    pub(super) by: &'a RestUser,
    /// By GitHub's clock.
    pub(super) written_at: Option<Timestamp>,
    pub(super) number: ItemNumber,
    pub(super) item_type: ItemType,
    pub(super) author: Option<&'a RestUser>,
    /// The comment that began the review thread.
    pub(super) in_reply_to: Option<GithubId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MentionReply {
    /// A reaction to the comment, if another comment describes what was done or an answer in words would be noise.
    React(ReactionContent),
    Reply(String),
}

pub(super) struct HandledMention {
    pub(super) ignored: Option<&'static str>,
    /// Whether the comment ruled that the item is a duplicate: such a comment is not an objection.
    pub(super) rules_duplicate: bool,
}

/// Carries out the command of a new comment and answers once; `None` if the comment does not mention Canonry.
pub(super) async fn handle_mention(
    hook: Webhook<'_>,
    repo: &Repo,
    said: PostedComment<'_>,
) -> Result<Option<HandledMention>, JobError> {
    // An edited comment may already be answered, and its text may no longer be what its author sent to Canonry.
    if hook.action() != "created" || !may_contain_mention(said.text) {
        return Ok(None);
    }
    let own = hook.own_login().await?;
    let Some(by) = said.by.to_login().filter(|_| hook.not_a_person(own, Some(said.by)).is_none()) else {
        return Ok(None);
    };
    let settings = hook.settings(repo).await?;
    let Some(asked) = parse_mention(said.text, settings.handle()) else { return Ok(None) };
    let verb = match &asked {
        MentionRequest::Command(command) => Some(command.verb()),
        MentionRequest::Unknown(_) => None,
    };
    let rules_duplicate = matches!(asked, MentionRequest::Command(MentionCommand::DuplicateOf(_)));
    let (store, now) = (hook.service.store(), hook.service.now());
    if let Some(known) = store.deliveries().mention_in(repo.id, said.place, said.comment).await? {
        let rules_duplicate = rules_duplicate && known.outcome == MentionOutcome::Done;
        return Ok(Some(HandledMention { ignored: Some("it was answered before"), rules_duplicate }));
    }
    let (Some(github_id), Some(github)) = (repo.github_id, hook.service.github()) else {
        let ignored = Some("no credentials for GitHub, so nobody can be answered");
        return Ok(Some(HandledMention { ignored, rules_duplicate: false }));
    };
    let is_old = said.written_at.is_none_or(|at| now.duration_since(at) > FRESH);
    if is_old && let Some(why) = taken_back(github, repo, said, &asked, settings.handle()).await? {
        return Ok(Some(HandledMention { ignored: Some(why), rules_duplicate: false }));
    }
    let earlier = store.deliveries().mentions_by(repo.id, said.number, &by, now - TOLD_ONCE).await?;
    let role = role(hook, repo, &by, said.author).await?;
    let told = |outcome: MentionOutcome| earlier.iter().any(|mention| mention.outcome == outcome);
    let said_at = said.written_at.map_or(now, |at| at.min(now));
    let actions = MentionActions { hook, github, repo, said, by: &by, role, settings, said_at, is_old };
    let may_ask = verb.is_some_and(|verb| verb.spec().who.allows(role));
    let corrects = may_ask && verb.is_some_and(MentionVerb::corrects);
    let is_answered = role == MentionRole::Maintainer
        || is_mention_answered(
            &by,
            &store.deliveries().mentioners_since(repo.id, now - SignedDuration::from_hours(1)).await?,
        );
    let (outcome, answer) = match asked {
        _ if !is_answered && !corrects => (MentionOutcome::Refused, MentionReply::React(ReactionContent::Confused)),
        _ if role != MentionRole::Maintainer && !corrects && earlier.len() >= ANSWERED_A_DAY => {
            (MentionOutcome::Refused, MentionReply::React(ReactionContent::Confused))
        }
        MentionRequest::Unknown(near) => {
            let words = unknown_mention(near, settings.handle());
            (MentionOutcome::NotUnderstood, once(told(MentionOutcome::NotUnderstood), words))
        }
        MentionRequest::Command(command) if !may_ask => {
            let words = refused(command.verb().spec());
            (MentionOutcome::Refused, once(told(MentionOutcome::Refused), words))
        }
        MentionRequest::Command(command) => actions.carry_out(command).await?,
    };
    let rest = format!("{}/{}", said.place.as_str(), said.comment.0);
    let key = WriteKey::on_github(WriteOrigin::MentionAnswer, github_id, said.number, rest).with_record(said.comment.0);
    if is_answered {
        let (outbox, write) = (hook.service.outbox().await?, write(said, answer));
        if corrects {
            outbox.enqueue_correction(repo.id, said.number, &key, write).await?;
        } else {
            outbox.enqueue(repo.id, said.number, &key, write).await?;
        }
    }
    let mention = Mention {
        place: said.place,
        comment: said.comment,
        number: said.number,
        by,
        command: verb.map(|verb| verb.as_str().to_owned()),
        outcome,
        at: now,
    };
    store.deliveries().record_mention(repo.id, &mention).await?;
    hook.service.wake_publisher();
    tracing::info!(
        repo = %repo.name,
        number = said.number.get(),
        actor = mention.by.as_str(),
        command = mention.command,
        outcome = outcome.as_str(),
        is_answered,
        "a mention is handled"
    );
    let rules_duplicate = rules_duplicate && outcome == MentionOutcome::Done;
    let ignored = (!is_answered && !corrects).then_some(TOO_MANY);
    Ok(Some(HandledMention { ignored, rules_duplicate }))
}

/// Why a comment no longer gives the command it gave when it was written; `None` if it still does.
async fn taken_back(
    github: &GitHub,
    repo: &Repo,
    said: PostedComment<'_>,
    asked: &MentionRequest,
    handle: &str,
) -> Result<Option<&'static str>, JobError> {
    let read = match said.place {
        MentionPlace::Issue => github.comments(&repo.name, said.number, said.written_at).all().await.map(|comments| {
            let found = comments.into_iter().find(|comment| comment.id == said.comment.0);
            found.map(|comment| comment.body)
        }),
        MentionPlace::Review => github.review_comment(&repo.name, said.comment).await.map(|comment| Some(comment.body)),
    };
    let text = match read {
        Ok(text) => text,
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(match text {
        None => Some("the comment was deleted before it was handled"),
        Some(text) if parse_mention(&text, handle).as_ref() != Some(asked) => {
            Some("the comment was changed before it was handled")
        }
        Some(_) => None,
    })
}

/// Words the first time, a reaction after that.
fn once(told: bool, words: String) -> MentionReply {
    if told { MentionReply::React(ReactionContent::Confused) } else { MentionReply::Reply(words) }
}

/// The role of a person for the item. A maintainer is a maintainer on their own items too.
async fn role(hook: Webhook<'_>, repo: &Repo, by: &Login, author: Option<&RestUser>) -> Result<MentionRole, JobError> {
    let (store, github) = (hook.service.store(), hook.service.github());
    if is_maintainer(store, github, repo, by).await? {
        return Ok(MentionRole::Maintainer);
    }
    let is_author = author.and_then(RestUser::to_login).is_some_and(|author| author == *by);
    Ok(if is_author { MentionRole::Author } else { MentionRole::Other })
}

fn write(said: PostedComment<'_>, answer: MentionReply) -> Write {
    match (answer, said.place) {
        (MentionReply::React(content), MentionPlace::Issue) => {
            Write::React { on: ReactTo::IssueComment(said.comment), content }
        }
        (MentionReply::React(content), MentionPlace::Review) => {
            Write::React { on: ReactTo::ReviewComment(said.comment), content }
        }
        (MentionReply::Reply(body), MentionPlace::Issue) => Write::Comment { body },
        (MentionReply::Reply(body), MentionPlace::Review) => Write::Reply { to: said.comment, body },
    }
}
