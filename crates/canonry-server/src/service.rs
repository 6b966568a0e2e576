//! The service object that every job and handler uses: store, GitHub, models, clock.

use canonry_models::chat::TokenPrices;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use canonry_github::outbox::{Outbox, OutboxError};
use canonry_github::{Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_store::{RepoId, Store};
use canonry_triage::{DetectorSource, Detectors};
use jiff::Timestamp;
use tokio::sync::{Notify, OnceCell};

use crate::github_writes::recheck::ServiceRecheck;
use crate::jobs::job_handler::JobError;
use crate::review::review_job::ReviewParts;

pub struct ServiceParts {
    pub store: Store,
    /// The GitHub client. Without it everything is recorded as in the mode `shadow`, and nothing is fetched or
    /// written.
    pub github: Option<GitHub>,
    pub is_app: bool,
    pub detectors: Arc<dyn DetectorSource>,
    /// The models that review pull requests beside Canonry's own rules.
    pub reviewers: ReviewParts,
    pub clock: Arc<dyn Clock>,
    /// The most that hosted models may cost one repository in a calendar month, in US dollars.
    pub monthly_cost: Option<f64>,
    pub prices: Option<TokenPrices>,
    pub retrieval: RetrievalMode,
    /// Notified when there is something to write to GitHub.
    pub wake_publisher: Arc<Notify>,
}

/// Where the database is while no service runs.
#[derive(Debug, Clone, Default)]
pub enum DatabasePlace {
    /// It stays where it is and is nobody else's.
    #[default]
    Own,
    /// It is kept where others can read it, and it may get lost.
    Portable {
        /// Signs comments; it is the same in every run.
        marker_secret: Option<Secret>,
    },
}

/// Carries out every job. Its state is in the store.
pub struct Service {
    parts: ServiceParts,
    database: DatabasePlace,
    outbox: OnceCell<Outbox>,
    /// When this process last checked, without success, whether repositories without access are back.
    looked: Mutex<HashMap<RepoId, Timestamp>>,
}

impl Service {
    pub fn new(parts: ServiceParts) -> Self {
        Self { parts, database: DatabasePlace::default(), outbox: OnceCell::new(), looked: Mutex::default() }
    }

    #[must_use]
    pub fn with_database_in(self, database: DatabasePlace) -> Self {
        Self { database, ..self }
    }

    pub(crate) fn parts(&self) -> &ServiceParts {
        &self.parts
    }

    pub(crate) fn store(&self) -> &Store {
        &self.parts.store
    }

    pub(crate) fn github(&self) -> Option<&GitHub> {
        self.parts.github.as_ref()
    }

    pub(crate) fn is_app(&self) -> bool {
        self.parts.is_app
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn looked_at(&self, repo: RepoId) -> Option<Timestamp> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).get(&repo).copied()
    }

    pub(crate) fn looked(&self, repo: RepoId) {
        let now = self.now();
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(repo, now);
    }

    /// The detectors for new items, with the GitHub client they use.
    pub(crate) fn detectors(&self) -> Detectors<'_> {
        Detectors { github: self.github(), ..self.parts.detectors.detectors() }
    }

    pub(crate) fn recheck(&self, github: &GitHub) -> ServiceRecheck {
        ServiceRecheck::new(self.store().clone(), github.clone())
    }

    pub(crate) fn wake_publisher(&self) {
        self.parts.wake_publisher.notify_one();
    }

    /// The outbox for writes to GitHub, opened on first use: GitHub may be down when the service starts.
    pub(crate) async fn outbox(&self) -> Result<&Outbox, JobError> {
        let Some(github) = self.github() else {
            return Err(JobError::Hopeless("no credentials for GitHub, so nothing is written".to_owned()));
        };
        let open = || async {
            let (store, github) = (self.store().clone(), github.clone());
            let outbox = match &self.database {
                DatabasePlace::Own => Outbox::open(store, github, rand::random()).await?,
                DatabasePlace::Portable { marker_secret } => {
                    Outbox::open_portable(store, github, marker_secret.clone()).await?
                }
            };
            let account = outbox.own_login();
            if !account.is_bot() {
                tracing::warn!(
                    %account,
                    "everything this account does counts as done by Canonry and teaches nothing; use a GitHub App or an account of its own"
                );
            }
            Ok::<Outbox, OutboxError>(outbox)
        };
        // A failure here is retried: the operator can correct a wrong key.
        self.outbox.get_or_try_init(open).await.map_err(|error| match JobError::from(error) {
            JobError::Hopeless(reason) => JobError::Retry(reason),
            other => other,
        })
    }
}
