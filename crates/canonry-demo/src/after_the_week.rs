//! What maintainers do after the week: clusters and plans, an audit, and answers to some verdicts.

use anyhow::Result;
use canonry_config::{RepoConfig, config_hash, parse};
use canonry_domain::{
    AdjudicatedAnswer, AuditTally, Extractor, ItemState, Login, Probability, Similarity, TargetPolicy,
};
use canonry_models::chat::TokenBudget;
use canonry_retrieval::RetrievalMode;
use canonry_store::AdjudicationKind;
use canonry_triage::{
    AuditOptions, DedupeOptions, Dedupers, DetectorSource as _, EmbedSource, Judge, JudgeOptions, NeighbourQuery,
    PlanOptions, PlanReport, dedupe, judge_audit, plan_rules,
};

use crate::demo::Demo;
use crate::truth::{SampleTruth, TruthJudge};
use crate::week::Week;

/// How many verdicts are sampled for adjudication, and how many of them are answered.
const DRAWN: usize = 12;
const LOOKED_AT: usize = 7;

/// Does what `canonry dedupe` does, with the repository's own settings.
pub(crate) async fn find_duplicates(demo: &Demo, repo: &str, run_id: &str) -> Result<PlanReport> {
    let repo = demo.repo(repo).await?;
    let config = settings(demo, &repo.name.to_string());
    let hash = config_hash(&config).to_string();
    let options = DedupeOptions {
        wanted: NeighbourQuery {
            mode: RetrievalMode::Hybrid,
            k: 4,
            min_score: Similarity::new(0.75)?,
            state: Some(ItemState::Open),
        },
        judge: JudgeOptions {
            item_type: None,
            source: EmbedSource::Raw,
            min_edge: Probability::new(config.close.min_edge)?,
            allow_stale: false,
            rejudge: false,
            joining: None,
            workers: 4,
            budget: TokenBudget::default(),
            config_hash: hash.clone(),
            run_id: run_id.to_owned(),
        },
        plan: PlanOptions {
            item_type: None,
            source: EmbedSource::Raw,
            rules: plan_rules(&config, Some(TargetPolicy::CanonicalOnly))?,
            dry_run: false,
            config_hash: hash,
            run_id: run_id.to_owned(),
        },
        judge_missing: true,
    };
    let with = demo.models.detectors();
    let with = Dedupers { embedder: with.embedder, extractor: None, judge: with.judge, snapshots: with.snapshots };
    Ok(dedupe(&demo.store, &repo, with, &options, demo.now(), &mut |_, _| {}).await?.plan)
}

/// Does what `canonry judge-audit` does: compares the compiled-in judge with one that knows the truth.
pub(crate) async fn audit(demo: &Demo, name: &'static str, truth: SampleTruth, run_id: &str) -> Result<AuditTally> {
    let repo = demo.repo(name).await?;
    let knows = TruthJudge::new(truth, name, &demo.emulator.world());
    let options = AuditOptions {
        item_type: None,
        source: EmbedSource::Raw,
        sample_size: 60,
        seed: 1,
        min_edge: Probability::new(0.85)?,
        workers: 4,
        budget: TokenBudget::default(),
        run_id: run_id.to_owned(),
    };
    let strong = Judge::Model { provider: Extractor::Command, model: &knows };
    Ok(judge_audit(&demo.store, &repo, Judge::Local, strong, &options, demo.now(), &mut |_| {}).await?.tally)
}

/// A maintainer answers some of a sample of verdicts; the others wait for the person who opens the console.
pub(crate) async fn adjudicate(demo: &Demo, name: &'static str, week: &Week, by: &str) -> Result<usize> {
    let (repo, truth, by) = (demo.repo(name).await?, SampleTruth::of(week)?, by.parse::<Login>()?);
    demo.store.judge().draw_adjudications(repo.id, AdjudicationKind::Triage, 1, DRAWN, demo.now()).await?;
    for answered in 0..LOOKED_AT {
        let Some(next) = demo.store.judge().next_adjudication(repo.id, None).await? else { return Ok(answered) };
        let numbers = (u64::try_from(next.case.number.get())?, u64::try_from(next.case.target.get())?);
        let is_same = truth.is_same(name, numbers.0, numbers.1);
        let word = if is_same { AdjudicatedAnswer::Same } else { AdjudicatedAnswer::Different };
        demo.store.judge().adjudicate(repo.id, next.id, word, Some(&by), demo.now()).await?;
    }
    Ok(LOOKED_AT)
}

/// The repository's settings on its default branch.
fn settings(demo: &Demo, repo: &str) -> RepoConfig {
    demo.people(|world| {
        let home = world.get(repo);
        let file = home.files.get(&(home.default_branch.clone(), ".canonry.yml".to_owned()));
        file.map(|bytes| parse(&String::from_utf8_lossy(bytes)).config).unwrap_or_default()
    })
}
