//! Models that read changes: whether they are asked, what that costs, and what it means if they are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use canonry_domain::Extractor;
use canonry_models::chat::TokenPrices;
use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use canonry_server::{ReviewModel, ReviewParts};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewPull};
use canonry_testkit::on_both_engines;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::world::As;
use crate::world::review_world::{PLAIN, REPO, ReviewWorld};

/// A model that finds nothing, and answers when the test lets it.
pub(crate) struct Gated {
    asked: AtomicUsize,
    open: watch::Sender<bool>,
}

impl Gated {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { asked: AtomicUsize::new(0), open: watch::channel(false).0 })
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl ChatModel for Gated {
    fn model_id(&self) -> &str {
        "gated"
    }

    fn complete<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mut open = self.open.subscribe();
            open.wait_for(|open| *open).await.expect("the gate lives");
            let text = r#"{"findings":[]}"#.to_owned();
            Ok(ChatAnswer { text, input_tokens: Some(100_000), output_tokens: Some(1_000), latency: Duration::ZERO })
        })
    }
}

pub(crate) fn model(chat: Arc<Gated>, prices: Option<TokenPrices>) -> ReviewModel {
    ReviewModel { provider: Extractor::OpenAi, chat, prices }
}

on_both_engines! {
    async fn a_model_is_asked_within_the_months_money(database: TestDatabase) {
        let gate = Gated::new();
        gate.open();
        // A question costs 40 cents, and its estimate is a few cents.
        let prices = Some(TokenPrices { input: 4.0, output: 1.0 });
        let parts = ReviewParts { llm: Some(model(gate.clone(), prices)), command: None };
        let settings = "review: {reviewers: [builtin, llm]}\nbudget: {monthlyCostUsd: 0.402}";
        let setting = ReviewWorld::with(&database, As::App, settings, parts).await;
        let first = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!((gate.asked(), setting.conclusion(&setting.head(first)).as_deref()), (1, Some("success")));
        let since = setting.clock.now() - jiff::SignedDuration::from_hours(1);
        let spent = setting.store.models().spent_since(setting.repo.id, since).await.expect("reads");
        assert!((spent - 0.401).abs() < 1e-9, "{spent}");

        // The budget is too small for a second question: the rest of the review is made, and does not count as a
        // complete one.
        let second = setting.open("ann", "two", PLAIN, NewPull::new("Deepen the pool"));
        setting.settle().await;
        assert_eq!((gate.asked(), setting.conclusion(&setting.head(second)).as_deref()), (1, Some("action_required")));
        assert_eq!(setting.reviewed(second).await.len(), 1);
    }

    async fn a_model_without_prices_is_not_asked_where_money_is_limited(database: TestDatabase) {
        let gate = Gated::new();
        gate.open();
        let parts = ReviewParts { llm: Some(model(gate.clone(), None)), command: None };
        let settings = "review: {enabled: true, reviewers: [builtin, llm]}\nbudget: {monthlyCostUsd: 5}";
        let setting = ReviewWorld::with(&database, As::App, settings, parts).await;
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        let conclusion = setting.conclusion(&setting.head(number));
        assert_eq!((gate.asked(), conclusion.as_deref()), (0, Some("action_required")));
        assert!(setting.emulator.bodies_sent().iter().any(|body| body.contains("prices are not known")), "people are told why");
    }

    async fn a_model_that_nobody_configured_leaves_a_gap(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "review: {reviewers: [builtin, llm]}").await;
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("action_required"));
    }

    async fn what_is_reviewed_stays_so_when_its_reviewers_are_gone(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("success"));
        let nobody = "triage: {mode: off}\nreview: {enabled: true, reviewers: [sarif]}";
        setting.meanwhile(|world| world.push(REPO, "main", "maint", ".canonry.yml", nobody));
        setting.meanwhile(|world| world.close(REPO, number, "ann", CloseReason::Completed));
        setting.settle().await;
        setting.meanwhile(|world| world.reopen(REPO, number, "ann"));
        setting.settle().await;
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("success"));
    }

    async fn reviewers_that_a_service_cannot_have_are_told_of(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "review: {reviewers: [sarif]}").await;
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("action_required"));
        assert_eq!(setting.reviewed(number).await.len(), 0);
    }
}
