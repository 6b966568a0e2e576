//! What a second reading refused stays refused when a batch command judges the same pair later.

use canonry_domain::{DecisionStatus, Extractor, ItemState, ItemType, Probability, Similarity};
use canonry_models::Embedder as _;
use canonry_models::chat::TokenBudget;
use canonry_retrieval::RetrievalMode;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{
    CandidateOptions, EmbedSource, GraceOutcome, Judge, JudgeOptions, NeighbourQuery, Neighbourhood, candidates, judge,
};

use crate::grace::cases::{announced, in_grace, sweep};
use crate::triage::setting::{ONCE, yes_because};

on_both_engines! {
    async fn what_a_second_reading_refused_is_no_edge_of_a_later_run(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.judge_says(yes_because(1, 0.96, ONCE));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Refused("second_reading".to_owned()))]);

        let (store, repo, now) = (&setting.store, &setting.repo, setting.now());
        let (embedder, chat) = (setting.embedder(), setting.chat());
        let (key, calibration) = (EmbedSource::Raw.key(embedder.model_id()), embedder.calibration().clone());
        let near = Neighbourhood::load(store, repo, ItemType::Issue, key, calibration, None).await.expect("loads");
        let min_score = Similarity::new(0.75).expect("a score");
        let options = CandidateOptions {
            wanted: NeighbourQuery { mode: RetrievalMode::Dense, k: 4, min_score, state: Some(ItemState::Open) },
            source_state: Some(ItemState::Open),
            joining: None,
        };
        candidates(store, repo, &near, None, &options, now, &mut |_, _| {}).await.expect("compared");
        drop(near);
        let options = JudgeOptions {
            item_type: Some(ItemType::Issue),
            source: EmbedSource::Raw,
            min_edge: Probability::new(0.85).expect("a probability"),
            allow_stale: false,
            rejudge: false,
            joining: None,
            workers: 1,
            budget: TokenBudget::default(),
            config_hash: String::new(),
            run_id: "batch".to_owned(),
        };
        let again = JudgeOptions { rejudge: true, ..options.clone() };
        for (options, expected) in [
            (&options, (DecisionStatus::Rejected, Some("second_reading"))),
            (&options, (DecisionStatus::Rejected, Some("second_reading"))),
            // A person asks for another answer.
            (&again, (DecisionStatus::Accepted, None)),
        ] {
            let asked = Judge::Model { provider: Extractor::Local, model: &chat };
            let judged = judge(store, repo, asked, options, now, &mut |_| {}).await.expect("judged");
            let line = judged.decisions.iter().find(|line| line.number == item).expect("a decision");
            assert_eq!((line.status, line.reason.as_deref()), expected, "{line:?}");
        }
    }
}
