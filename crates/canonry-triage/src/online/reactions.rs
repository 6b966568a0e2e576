//! Polls the reactions to triage comments, because GitHub sends no webhook for them.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{CommentReactions, ItemType, Login, RepoName};
use canonry_github::api::{ReactionSubject, RestReaction};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{RepoAccess, RepoId, Store, StoreError, TriageComment};
use jiff::{SignedDuration, Timestamp};

/// For how long reactions to a comment are polled.
const ASKED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long polled reactions stay valid. This is shorter than the time between two rounds, so that a round that
/// GitHub's rate limit interrupted continues with the rest when it starts again.
const HOLDS: SignedDuration = SignedDuration::from_hours(3);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReactionsReport {
    pub asked: u64,
    /// Comments that no longer exist; their reactions are gone too.
    pub gone: u64,
    /// Repositories for which a request failed, for all or for one comment, and why.
    pub failed: Vec<(RepoName, String)>,
    /// When to poll the rest, if GitHub's rate limit prevented some requests.
    pub retry_at: Option<Timestamp>,
}

/// Reads the current reactions to every triage comment of the last 30 days on an issue; removed reactions do not
/// count. The comments that were polled longest ago come first, and those that were polled in the last hours are left
/// out. A repository or a comment that cannot be read does not stop the others.
#[boxed]
pub async fn poll_reactions(
    store: &Store,
    github: &GitHub,
    own: &Login,
    now: Timestamp,
) -> Result<ReactionsReport, StoreError> {
    let mut report = ReactionsReport::default();
    let mut left_out: BTreeSet<RepoId> = BTreeSet::new();
    let mut comments = store.learning().triage_comments_since(now - ASKED_FOR).await?;
    // Only issues have outcomes to learn from.
    comments.retain(|comment| comment.item_type == ItemType::Issue && is_due(comment.synced_at, now));
    for comment in comments {
        let TriageComment { repo, number, .. } = &comment;
        if left_out.contains(&repo.id) {
            continue;
        }
        if store.repos().access(repo.id).await? != RepoAccess::Active {
            left_out.insert(repo.id);
            continue;
        }
        match heard(github, &comment, own).await {
            Ok(reactions) => {
                report.asked += 1;
                report.gone += u64::from(reactions.is_none());
                let reactions = reactions.unwrap_or_default();
                store.learning().record_comment_reactions(repo.id, *number, comment.comment, reactions, now).await?;
            }
            // Other repositories may have their own rate limit.
            Err(GitHubError::RateLimited { until }) => {
                left_out.insert(repo.id);
                report.retry_at = Some(report.retry_at.map_or(until, |earlier| earlier.min(until)));
            }
            Err(error) => {
                // An invalid answer concerns only that comment.
                if !matches!(error, GitHubError::BadAnswer { .. } | GitHubError::Refused { .. }) {
                    left_out.insert(repo.id);
                }
                report.failed.push((repo.name.clone(), error.to_string()));
            }
        }
    }
    Ok(report)
}

fn is_due(synced_at: Option<Timestamp>, now: Timestamp) -> bool {
    synced_at.is_none_or(|at| now.duration_since(at) >= HOLDS)
}

/// People's reactions to a comment; `None` if it no longer exists.
async fn heard(github: &GitHub, comment: &TriageComment, own: &Login) -> Result<Option<CommentReactions>, GitHubError> {
    let subject = ReactionSubject::Comment(comment.comment);
    match github.reactions(&comment.repo.name, subject).all().await {
        Ok(reactions) => Ok(Some(count(&reactions, own, comment.worded_at))),
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {
            // A repository that we cannot see gives the same answer for each of its comments.
            github.repo(&comment.repo.name).await?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Each person counts once, with all their thumbs. Bots and our own account do not count. Reactions before the
/// comment got its current text are about another text and do not count; GitHub's times have whole seconds.
fn count(reactions: &[RestReaction], own: &Login, worded_at: Timestamp) -> CommentReactions {
    let mut people: BTreeMap<Login, (bool, bool)> = BTreeMap::new();
    let of_these_words = |at: Option<Timestamp>| at.is_none_or(|at| at.as_second() >= worded_at.as_second());
    for reaction in reactions.iter().filter(|reaction| of_these_words(reaction.created_at)) {
        let person = reaction.user.as_ref().filter(|user| !user.is_bot()).and_then(|user| user.to_login());
        let Some(person) = person.filter(|person| person != own) else { continue };
        let thumbs = match reaction.content.as_str() {
            "+1" => (true, false),
            "-1" => (false, true),
            _ => continue,
        };
        let said = people.entry(person).or_default();
        *said = (said.0 || thumbs.0, said.1 || thumbs.1);
    }
    let mut counted = CommentReactions::default();
    for thumbs in people.values() {
        match thumbs {
            (true, true) => counted.mixed += 1,
            (true, false) => counted.up += 1,
            _ => counted.down += 1,
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use canonry_domain::CommentReactions;
    use canonry_github::api::RestReaction;
    use jiff::Timestamp;
    use serde_json::json;

    use super::count;

    fn reactions(said: &[(&str, &str)]) -> CommentReactions {
        let reaction = |(by, content): &(&str, &str)| -> RestReaction {
            serde_json::from_value(json!({ "id": 1, "content": content, "user": { "login": by } })).expect("a reaction")
        };
        let all: Vec<RestReaction> = said.iter().map(reaction).collect();
        count(&all, &"canonry-bot".parse().expect("a login"), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn each_person_counts_once_and_bots_never() {
        let heard = reactions(&[
            ("ann", "-1"),
            ("Ann", "-1"),
            ("zoe", "-1"),
            ("zoe", "+1"),
            ("bob", "+1"),
            ("eve", "heart"),
            ("stale[bot]", "-1"),
            ("canonry-bot", "+1"),
        ]);
        assert_eq!(heard, CommentReactions { up: 1, down: 1, mixed: 1 });
        assert_eq!(reactions(&[]), CommentReactions::default());
    }

    #[test]
    fn a_deleted_account_is_nobody() {
        let ghost: RestReaction =
            serde_json::from_value(json!({ "id": 1, "content": "-1", "user": null })).expect("a reaction");
        let own = "canonry-bot".parse().expect("a login");
        assert_eq!(count(&[ghost], &own, Timestamp::UNIX_EPOCH), CommentReactions::default());
    }

    #[test]
    fn what_was_said_about_other_words_does_not_count() {
        let at = |second: u8| format!("2026-02-01T00:00:{second:02}Z");
        let reaction = |(by, second): (&str, u8)| -> RestReaction {
            let reaction = json!({ "id": 1, "content": "-1", "user": { "login": by }, "created_at": at(second) });
            serde_json::from_value(reaction).expect("a reaction")
        };
        let all: Vec<RestReaction> = [("ann", 9), ("zoe", 10), ("bob", 11)].map(reaction).into();
        let worded_at = "2026-02-01T00:00:10.7Z".parse().expect("a moment");
        let heard = count(&all, &"canonry-bot".parse().expect("a login"), worded_at);
        assert_eq!(heard, CommentReactions { up: 0, down: 2, mixed: 0 });
    }
}
