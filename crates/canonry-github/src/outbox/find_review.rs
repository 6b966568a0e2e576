//! Finds a review of ours: whether it is a draft or submitted, and which comments it has.

use std::collections::HashMap;

use canonry_domain::GithubId;

use super::progress::{Act, Draft, Event, Progress};
use super::receipt::{WrittenInline, WrittenReview};
use super::write::{FINDING, ReviewWrite};
use super::write_job::WriteJob;
use crate::api::{RestReview, RestUser};
use crate::http::error::GitHubError;

impl WriteJob<'_> {
    /// Whether the entry's review is visible to everybody.
    pub(super) async fn find_review(&self, progress: &Progress) -> Result<Event, GitHubError> {
        let Some(draft) = &progress.draft else { return self.find_submitted_review().await };
        let review = self.outbox.github.review(&self.entry.repo.name, self.entry.number, draft.review).await;
        Ok(match review {
            Ok(review) if review.is_pending() => Event::SawAbsent,
            Ok(_) => Event::SawSubmitted(draft.clone()),
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) if progress.act == Act::Correct => {
                Event::SawThere { objected: false }
            }
            // A lagging replica may not know it yet. GitHub's answer to the submission will say whether it exists.
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Event::SawAbsent,
            Err(error) => return Err(error),
        })
    }

    /// Searches for a submitted review of ours with the entry's marker.
    async fn find_submitted_review(&self) -> Result<Event, GitHubError> {
        let reviews = self.outbox.github.reviews(&self.entry.repo.name, self.entry.number).all().await?;
        let ours = |review: &&RestReview| {
            !review.is_pending() && self.is_this(review.user.as_ref(), review.body.as_deref().unwrap_or_default())
        };
        let found = reviews.iter().find(ours);
        Ok(found.map_or(Event::SawAbsent, |review| {
            Event::SawSubmitted(Draft { review: GithubId(review.id), left_out: Vec::new() })
        }))
    }

    /// Maps the comments of the submitted review to their keys.
    pub(super) async fn list_review(&self, draft: &Draft, wanted: &ReviewWrite) -> Result<Event, GitHubError> {
        let (outbox, repo) = (self.outbox, &self.entry.repo.name);
        let listed = outbox.github.comments_of_review(repo, self.entry.number, draft.review).all().await?;
        let mut found: HashMap<String, GithubId> = HashMap::new();
        for comment in &listed {
            let Some(author) = comment.user.as_ref().and_then(RestUser::to_login) else { continue };
            for marker in outbox.signer.find(&comment.body, &author, &outbox.own) {
                if marker.kind() == FINDING {
                    found.insert(marker.key().to_owned(), GithubId(comment.id));
                }
            }
        }
        let (mut comments, mut left_out) = (Vec::new(), Vec::new());
        for key in wanted.comments.iter().map(|comment| &comment.key) {
            match found.get(key) {
                Some(&comment) => comments.push(WrittenInline { key: key.clone(), comment }),
                None => left_out.push(key.clone()),
            }
        }
        let is_whole = left_out.iter().all(|key| draft.left_out.contains(key));
        Ok(Event::SawReview { review: WrittenReview { id: Some(draft.review), comments, left_out }, is_whole })
    }
}
