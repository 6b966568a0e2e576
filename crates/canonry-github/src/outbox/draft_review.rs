//! Creates the draft of a review, and finds the comments that GitHub refuses.
//!
//! GitHub refuses a whole review for one comment that is off the diff, and does not say which. Nobody else sees drafts,
//! so halves of the comments are tried as drafts until the offending ones are known.

use canonry_domain::GithubId;
use jiff::{SignedDuration, Timestamp};

use super::progress::{Act, Draft, Event, Hold, Verdict};
use super::write::{FINDING, InlineComment, ReviewWrite};
use super::write_job::{WriteJob, marked};
use crate::api::{NewReviewComment, RestReview, RestUser};
use crate::http::error::GitHubError;
use crate::http::write::WriteError;
use crate::text::marker::Marker;

/// Two offending comments of thirty are found with twenty tries at most. More would come near the pace that GitHub
/// allows; comments that are not known to be accepted by then are left out.
const MOST_TRIES: usize = 20;

/// How long the search may take: large drafts take seconds each, and the last one must still be created in time.
const SIFT_LIMIT: SignedDuration = SignedDuration::from_secs(60);

/// Why a draft is neither submitted nor deleted.
pub(super) const OTHER_WORDS: &str =
    "somebody has written in the draft with our account; submit or delete those comments, then it goes on";

/// GitHub's answer to a draft.
enum DraftAnswer {
    Made(GithubId),
    /// GitHub refuses it in this form (422).
    Refused(String),
}

/// What became of a draft that had to be deleted.
pub(super) enum Withdrawn {
    Gone,
    /// It is no longer a draft: it was submitted after all, whatever earlier reads showed.
    Submitted,
    Kept,
}

impl WriteJob<'_> {
    /// Creates the draft, without the comments that GitHub refuses.
    pub(super) async fn draft_review(&self, review: &ReviewWrite) -> Event {
        match self.try_draft(review).await {
            Ok(event) | Err(event) => event,
        }
    }

    async fn try_draft(&self, review: &ReviewWrite) -> Result<Event, Event> {
        let sift_until = self.outbox.now() + SIFT_LIMIT;
        self.clear_drafts().await?;
        let all: Vec<usize> = (0..review.comments.len()).collect();
        let reason = match self.ask_for_draft(review, &all).await? {
            DraftAnswer::Made(id) => return Ok(Event::Drafted(draft(id, review, &all))),
            DraftAnswer::Refused(reason) => reason,
        };
        // Tests whether the comments or the review itself caused the refusal.
        let bare = match self.ask_again(review, &[]).await? {
            DraftAnswer::Made(id) => id,
            DraftAnswer::Refused(_) => return Err(self.refused_draft(reason).await),
        };
        if all.is_empty() {
            return Ok(Event::Drafted(draft(bare, review, &[])));
        }
        self.drop_draft(bare).await?;
        let mut taken = self.sift(review, all, sift_until).await?;
        let mut answer = self.ask_again(review, &taken).await?;
        if !taken.is_empty() && matches!(answer, DraftAnswer::Refused(_)) {
            taken.clear();
            answer = self.ask_again(review, &taken).await?;
        }
        if taken.is_empty() {
            let (repo, number) = (&self.entry.repo.name, self.entry.number);
            tracing::warn!(%repo, %number, reason, "GitHub rejected the inline comments; the review is posted without them");
        }
        match answer {
            DraftAnswer::Made(id) => Ok(Event::Drafted(draft(id, review, &taken))),
            DraftAnswer::Refused(reason) => Err(self.refused_draft(reason).await),
        }
    }

    /// The comments that are known to be accepted, given that not all are.
    async fn sift(&self, review: &ReviewWrite, all: Vec<usize>, until: Timestamp) -> Result<Vec<usize>, Event> {
        let (mut taken, mut tries) = (Vec::new(), 0);
        let mut refused = vec![all];
        // The largest group first, so that as much as possible is known when the search stops.
        while let Some(largest) = (0..refused.len()).max_by_key(|index| refused[*index].len()) {
            let mut left = refused.swap_remove(largest);
            if left.len() == 1 || tries >= MOST_TRIES || self.outbox.now() >= until {
                break;
            }
            let right = left.split_off(left.len() / 2);
            let left_fits = self.fits(review, &left).await?;
            // If one half is accepted, the other half contains the reason for the refusal of the whole.
            let right_fits = !left_fits && self.fits(review, &right).await?;
            tries += if left_fits { 1 } else { 2 };
            for (half, fits) in [(right, right_fits), (left, left_fits)] {
                if fits { taken.extend(half) } else { refused.push(half) }
            }
        }
        taken.sort_unstable();
        Ok(taken)
    }

    async fn fits(&self, review: &ReviewWrite, comments: &[usize]) -> Result<bool, Event> {
        match self.ask_again(review, comments).await? {
            DraftAnswer::Made(id) => self.drop_draft(id).await.map(|()| true),
            DraftAnswer::Refused(_) => Ok(false),
        }
    }

    /// Sends one more draft than the send was counted for. It is counted as well, so that later writes keep the pace;
    /// it does not wait, because the search would start again.
    async fn ask_again(&self, review: &ReviewWrite, comments: &[usize]) -> Result<DraftAnswer, Event> {
        if let Err(error) = self.outbox.store.outbox().count_content_write(self.outbox.now()).await {
            return Err(Event::NotSent { hold: Hold::Try, reason: error.to_string() });
        }
        self.ask_for_draft(review, comments).await
    }

    async fn ask_for_draft(&self, review: &ReviewWrite, comments: &[usize]) -> Result<DraftAnswer, Event> {
        let chosen: Vec<(&InlineComment, String)> = comments
            .iter()
            .map(|index| &review.comments[*index])
            .map(|comment| (comment, self.inline_text(comment)))
            .collect();
        let comments: Vec<NewReviewComment<'_>> = chosen
            .iter()
            .map(|(comment, body)| NewReviewComment {
                path: &comment.path,
                line: comment.line,
                start_line: comment.start_line,
                body,
            })
            .collect();
        let (github, repo, body) = (&self.outbox.github, &self.entry.repo.name, self.comment_text(Act::Draft));
        match github.create_draft_review(repo, self.entry.number, &review.commit, &body, &comments).await {
            Ok(made) => Ok(DraftAnswer::Made(GithubId(made.id))),
            Err(error @ WriteError::Refused { status: 422, .. }) => Ok(DraftAnswer::Refused(error.to_string())),
            Err(error) => Err(self.undrafted(&error).await),
        }
    }

    /// A review that GitHub refuses even without comments, unless the reason is another draft, which an earlier request
    /// may have created late.
    async fn refused_draft(&self, reason: String) -> Event {
        match self.drafts().await {
            Ok(drafts) if drafts.is_empty() => Event::Refused(reason),
            Ok(_) => Event::NotSent { hold: Hold::Try, reason },
            Err(event) => event,
        }
    }

    /// Deletes drafts of earlier tries. A draft that the outbox did not create is a person's work: the token may be a
    /// person's.
    async fn clear_drafts(&self) -> Result<(), Event> {
        for draft in self.drafts().await? {
            if !self.made(&draft) {
                let reason = "our account has a draft of another review there, and GitHub allows one at a time";
                return Err(Event::NotSent { hold: Hold::Try, reason: reason.to_owned() });
            }
            self.drop_draft(GithubId(draft.id)).await?;
        }
        Ok(())
    }

    /// Leaves no draft of the entry behind if the entry ends without being sent.
    pub(super) async fn clean_up(&self, draft: Option<&Draft>) -> Event {
        if let Some(draft) = draft {
            return match self.withdraw(draft.review).await {
                Ok(Withdrawn::Submitted) => Event::SawSubmitted(draft.clone()),
                Ok(Withdrawn::Gone | Withdrawn::Kept) => Event::Done(None),
                Err(event) => event,
            };
        }
        let drafts = match self.drafts().await {
            Ok(drafts) => drafts,
            Err(event) => return event,
        };
        for draft in drafts.iter().filter(|draft| self.made(draft)) {
            if let Err(event) = self.withdraw(GithubId(draft.id)).await {
                return event;
            }
        }
        Event::Done(None)
    }

    fn made(&self, draft: &RestReview) -> bool {
        let body = draft.body.as_deref().unwrap_or_default();
        let (signer, own) = (&self.outbox.signer, &self.outbox.own);
        signer.find(body, own, own).iter().any(|marker| marker.kind() == self.write.kind().as_str())
    }

    /// Our account's drafts; GitHub allows one.
    async fn drafts(&self) -> Result<Vec<RestReview>, Event> {
        let reviews = self.outbox.github.reviews(&self.entry.repo.name, self.entry.number).all().await;
        let mut drafts = match reviews {
            Ok(reviews) => reviews,
            Err(error) => return Err(self.unasked(&error).await),
        };
        let own = |user: &RestUser| user.to_login().is_some_and(|login| login == self.outbox.own);
        drafts.retain(|review| review.is_pending() && review.user.as_ref().is_some_and(own));
        Ok(drafts)
    }

    async fn drop_draft(&self, id: GithubId) -> Result<(), Event> {
        let reason = match self.withdraw(id).await? {
            Withdrawn::Gone => return Ok(()),
            Withdrawn::Submitted => "the draft was submitted; the next check finds it",
            Withdrawn::Kept => OTHER_WORDS,
        };
        Err(Event::NotSent { hold: Hold::Try, reason: reason.to_owned() })
    }

    /// Deletes a draft, unless it contains a person's own comments.
    pub(super) async fn withdraw(&self, id: GithubId) -> Result<Withdrawn, Event> {
        if self.holds_other_words(id).await? {
            let (repo, number) = (&self.entry.repo.name, self.entry.number);
            tracing::warn!(%repo, %number, "a draft of ours stays, since somebody has written in it");
            return Ok(Withdrawn::Kept);
        }
        match self.outbox.github.delete_draft_review(&self.entry.repo.name, self.entry.number, id).await {
            Ok(()) | Err(WriteError::Refused { status: 404 | 410, .. }) => Ok(Withdrawn::Gone),
            Err(WriteError::Refused { status: 422, .. }) => Ok(Withdrawn::Submitted),
            Err(error) => Err(self.undrafted(&error).await),
        }
    }

    /// Whether a draft has a comment that the outbox did not write. GitHub adds whatever its account writes on the pull
    /// request, and the token may be a person's.
    pub(super) async fn holds_other_words(&self, id: GithubId) -> Result<bool, Event> {
        let (github, repo) = (&self.outbox.github, &self.entry.repo.name);
        match github.comments_of_review(repo, self.entry.number, id).all().await {
            Ok(comments) => Ok(comments.iter().any(|comment| !self.outbox.wrote_review_comment(comment))),
            // A lagging replica does not know a draft that is seconds old, and nobody has written in it yet.
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Ok(false),
            Err(error) => Err(self.unasked(&error).await),
        }
    }

    /// A draft may be created again whatever became of the request: nobody sees it, and the next try deletes it.
    async fn undrafted(&self, error: &WriteError) -> Event {
        match self.unsent(error).await {
            Event::NoAnswer(reason) => Event::NotSent { hold: Hold::Try, reason },
            event => event,
        }
    }

    /// The event for a read that failed in the middle of a send.
    pub(super) async fn unasked(&self, error: &GitHubError) -> Event {
        match self.unreadable(error).await {
            Event::LookFailed { hold, reason } => Event::NotSent { hold, reason },
            Event::ItemGone(Verdict::Refuse(reason) | Verdict::Fail(reason)) => Event::Refused(reason),
            event => event,
        }
    }

    fn inline_text(&self, comment: &InlineComment) -> String {
        let marker = Marker::new(FINDING, &comment.key).expect("invariant: checked before the work began");
        marked(&comment.body, &self.outbox.signer.sign(&marker))
    }
}

fn draft(review: GithubId, of: &ReviewWrite, taken: &[usize]) -> Draft {
    Draft { review, left_out: left_out(of, taken) }
}

/// The keys of the comments that are left out.
fn left_out(of: &ReviewWrite, taken: &[usize]) -> Vec<String> {
    let left_out = of.comments.iter().enumerate().filter(|(index, _)| !taken.contains(index));
    left_out.map(|(_, comment)| comment.key.clone()).collect()
}
