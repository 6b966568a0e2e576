//! Wishes for reviews, and the one job of a pull request that fulfils them.

use canonry_domain::{GithubId, ItemNumber, Login};
use canonry_store::{JobState, Repo};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jobs::job_handler::JobError;
use crate::jobs::kinds::REVIEW;
use crate::jobs::planned_job::PlannedJob;
use crate::service::Service;

/// Wishes whose names are kept with a job. More than that come only while a job waits for very long, and are not lost:
/// they may be taken for new ones when they come again.
const NAMED: usize = 50;

/// Somebody's or something's wish that a pull request be reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewAsk {
    /// Whether it is to be reviewed even if the same head was reviewed before.
    pub(crate) requested: bool,
    pub(crate) full: bool,
    /// Who wishes it, if anybody does.
    pub(crate) by: Option<Login>,
    pub(crate) because: &'static str,
    /// What tells this wish from all others, and is the same when it comes again: the delivery's id.
    pub(crate) wish: String,
}

/// Wishes as they stand in a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReviewWish {
    github_id: i64,
    pub(crate) number: ItemNumber,
    /// How many of the wishes want a review whatever was reviewed before.
    pub(crate) requests: u32,
    pub(crate) full: bool,
    /// Who asked last.
    by: Option<Login>,
    /// The last occasion.
    pub(crate) because: String,
    wishes: Vec<String>,
}

impl ReviewWish {
    /// The wishes of a job; `None` when it is no such job.
    pub(crate) fn of(payload: &Value) -> Option<Self> {
        Self::deserialize(payload).ok()
    }

    pub(crate) fn repo(&self) -> GithubId {
        GithubId(self.github_id)
    }

    /// Both in one: nothing that anybody asked for is lost.
    fn joined(self, later: Self) -> Self {
        if later.wishes.iter().all(|wish| self.wishes.contains(wish)) {
            return self;
        }
        let mut wishes: Vec<String> = self.wishes.into_iter().chain(later.wishes).collect();
        wishes.drain(..wishes.len().saturating_sub(NAMED));
        Self {
            requests: self.requests.saturating_add(later.requests),
            full: self.full || later.full,
            by: later.by.or(self.by),
            wishes,
            ..later
        }
    }
}

/// Has a pull request reviewed. A wish that comes while a job waits joins it; while one runs, it waits for the next one.
/// The same wish again changes nothing, unless its job was given up.
pub(crate) async fn queue_review(
    service: &Service,
    repo: &Repo,
    number: ItemNumber,
    ask: ReviewAsk,
) -> Result<(), JobError> {
    let Some(github_id) = repo.github_id else {
        return Err(JobError::Hopeless(format!("{} has no id of GitHub's, so that nothing is reviewed", repo.name)));
    };
    let (store, now) = (service.store(), service.now());
    let key = format!("review/{}#{number}", github_id.0);
    if let Some(last) = store.jobs().last_of(&key, REVIEW).await?
        && last.state != JobState::Dead
        && ReviewWish::of(&last.payload).is_some_and(|owed| owed.wishes.contains(&ask.wish))
    {
        return Ok(());
    }
    tracing::info!(repo = %repo.name, number = number.get(), because = ask.because, requested = ask.requested, "a review is queued");
    let wish = ReviewWish {
        github_id: github_id.0,
        number,
        requests: u32::from(ask.requested),
        full: ask.full,
        by: ask.by,
        because: ask.because.to_owned(),
        wishes: vec![ask.wish],
    };
    let planned = PlannedJob { key, repo: Some(repo.name.clone()), kind: REVIEW, payload: json!(wish) };
    store.jobs().enqueue_joined(&planned.job(), joined, now, now).await?;
    Ok(())
}

fn joined(waiting: &Value, new: &Value) -> Value {
    match (ReviewWish::of(waiting), ReviewWish::of(new)) {
        (Some(waiting), Some(new)) => json!(waiting.joined(new)),
        _ => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    use super::{ReviewWish, joined};

    fn wish(name: &str, requested: bool, full: bool) -> ReviewWish {
        ReviewWish {
            github_id: 9,
            number: canonry_domain::ItemNumber::new(7).expect("positive"),
            requests: u32::from(requested),
            full,
            by: requested.then(|| "ann".parse().expect("a login")),
            because: "pushed".to_owned(),
            wishes: vec![name.to_owned()],
        }
    }

    #[test]
    fn the_same_wish_again_is_no_second_request() {
        let waiting = json!(wish("d1", true, false));
        assert_eq!(joined(&waiting, &json!(wish("d1", true, true))), waiting);
        let both = ReviewWish::of(&joined(&waiting, &json!(wish("d2", true, false)))).expect("wishes");
        assert_eq!((both.requests, both.wishes), (2, vec!["d1".to_owned(), "d2".to_owned()]));
        let healed = joined(&json!({"number": "seven"}), &waiting);
        assert_eq!(healed, waiting);
    }

    proptest! {
        #[test]
        fn what_anybody_asked_for_stays_asked_for(asked in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..80)) {
            let wishes = asked.iter().enumerate().map(|(at, (requested, full))| json!(wish(&format!("d{at}"), *requested, *full)));
            let all = wishes.reduce(|waiting, new| joined(&waiting, &new)).expect("at least one");
            let all = ReviewWish::of(&all).expect("wishes");
            prop_assert_eq!(all.requests as usize, asked.iter().filter(|(requested, _)| *requested).count());
            prop_assert_eq!(all.full, asked.iter().any(|(_, full)| *full));
            prop_assert_eq!(all.by.is_some(), all.requests > 0);
            prop_assert!(all.wishes.len() <= 50);
            prop_assert_eq!(all.wishes.last(), Some(&format!("d{}", asked.len() - 1)));
        }
    }
}
