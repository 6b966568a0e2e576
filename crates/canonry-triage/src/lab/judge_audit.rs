//! `judge-audit`: measures how often a cheap judge agrees with a strong one, on the repository's own items.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{
    AuditItem, AuditTally, Boilerplate, GateRules, Item, ItemNumber, ItemState, ItemType, JUDGE_PROMPT_VERSION,
    JudgeProof, LaneResult, Probability, audit_candidates, audit_class, audit_sample, gate_answer, gate_before_judge,
};
use canonry_models::chat::TokenBudget;
use canonry_store::{AuditedItem, CandidateSet, NewAudit, NewLlmCall, Repo, SetFilter, Store, StoreError};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;

use crate::close::common_evidence::common_facts_among;
use crate::judge::judge_case::{Judge, JudgeCase, JudgeFailure};
use crate::judge::judge_items::{JudgeError, cards_of, representation_of};
use crate::judge::proven_judge::PeoplesTruth;
use crate::retrieval::boilerplate::stored_boilerplate;
use crate::retrieval::embed::EmbedSource;

#[derive(Debug, Clone)]
pub struct AuditOptions {
    pub item_type: Option<ItemType>,
    pub source: EmbedSource,
    /// The maximum number of sets.
    pub sample_size: u32,
    /// The same seed chooses the same sample.
    pub seed: i64,
    pub min_edge: Probability,
    /// The number of concurrent questions; at least one.
    pub workers: usize,
    pub budget: TokenBudget,
    pub run_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditReport {
    pub id: i64,
    pub tally: AuditTally,
    /// How many of the cheap judge's accepted answers were right: by people's decision about the pair, otherwise by
    /// the strong judge.
    pub proof: JudgeProof,
    pub items: Vec<AuditedItem>,
    /// Why some questions were not asked, if any.
    pub stopped: Option<String>,
}

const PAGE: u32 = 500;

/// Lets two judges decide about the same sample of sets, through the same gates, and stores the results.
///
/// Edges, overrides and the state of targets are ignored: the audit compares the judges, not the repository.
#[boxed]
pub async fn judge_audit(
    store: &Store,
    repo: &Repo,
    cheap: Judge<'_>,
    strong: Judge<'_>,
    options: &AuditOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<AuditReport, JudgeError> {
    let sets = sampled_sets(store, repo, options).await?;
    let mut cases = Vec::with_capacity(sets.len());
    for set in sets {
        cases.extend(case_of(store, repo, &set, options.source).await?.map(|case| (set.id, case)));
    }
    set_common_facts(store, repo, &mut cases).await?;
    let lanes = cases.into_iter().map(|(set, case)| async move {
        let first = lane(cheap, &case, options).await;
        let second = lane(strong, &case, options).await;
        (set, case, first, second)
    });
    let lanes: Vec<_> = lanes.collect();
    let mut answers = stream::iter(lanes).buffered(options.workers.max(1));
    let truth = PeoplesTruth::read(store, repo).await?;
    let is_other_judge = cheap.stored() != strong.stored();
    let (mut items, mut right) = (Vec::new(), Vec::new());
    let mut stopped = None;
    while let Some((set, case, cheap, strong)) = answers.next().await {
        let calls: Vec<NewLlmCall> = [&cheap, &strong].into_iter().filter_map(|lane| lane.call.clone()).collect();
        if !calls.is_empty() {
            store.models().record_calls(Some(repo.id), &options.run_id, &calls, now).await?;
        }
        stopped = stopped.or(cheap.stopped).or(strong.stopped);
        let candidates = audit_candidates(&case.gate_candidates(), &case.pairs);
        let item = AuditItem { candidates, cheap: cheap.result, strong: strong.result };
        right.extend(truth.is_right(&case.source, &item, is_other_judge));
        items.push(AuditedItem {
            item_type: case.source.item_type,
            number: case.source.number,
            candidate_set: Some(set),
            class: audit_class(&item.cheap, &item.strong),
            item,
        });
        progress(items.len() as u64);
    }
    drop(answers);
    if items.is_empty() {
        return Err(JudgeError::NothingToAudit { repo: repo.name.clone() });
    }
    let proof: JudgeProof = right.into_iter().collect();
    let audit = NewAudit {
        representation: representation_of(options.source),
        seed: options.seed,
        sample_size: options.sample_size,
        cheap_provider: cheap.provider().to_owned(),
        cheap_model: cheap.model_id().to_owned(),
        strong_provider: strong.provider().to_owned(),
        strong_model: strong.model_id().to_owned(),
        min_edge: options.min_edge,
        run_id: options.run_id.clone(),
        prompt_version: Some(JUDGE_PROMPT_VERSION),
        proof: Some(proof),
    };
    let id = store.judge().write_audit(repo.id, &audit, &items, now).await?;
    let tally = items.iter().map(|item| item.class).collect();
    Ok(AuditReport { id, tally, proof, items, stopped })
}

/// The sample: fresh sets with candidates, of open items.
async fn sampled_sets(store: &Store, repo: &Repo, options: &AuditOptions) -> Result<Vec<CandidateSet>, StoreError> {
    let filter = SetFilter {
        item_type: options.item_type,
        representation: representation_of(options.source),
        source_state: Some(ItemState::Open),
        allow_stale: false,
    };
    // Sets are read twice, so that only those of the sample are in memory at once.
    let mut sources = Vec::new();
    let mut after = None;
    loop {
        let page = store.duplicates().latest_candidate_sets(repo.id, filter, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some((last.number, last.item_type));
        sources.extend(page.iter().filter(|set| !set.members.is_empty()).map(|set| (set.item_type, set.number)));
    }
    let chosen = audit_sample(sources, options.seed, options.sample_size as usize);
    let mut sets = Vec::with_capacity(chosen.len());
    for (item_type, number) in chosen {
        let of_item = store.duplicates().candidate_sets(repo.id, item_type, number).await?;
        sets.extend(of_item.into_iter().find(|set| set.representation == filter.representation));
    }
    Ok(sets)
}

async fn case_of(
    store: &Store,
    repo: &Repo,
    set: &CandidateSet,
    source: EmbedSource,
) -> Result<Option<JudgeCase>, StoreError> {
    let numbers: Vec<ItemNumber> =
        std::iter::once(set.number).chain(set.members.iter().map(|member| member.number)).collect();
    let items = store.corpus().items_by_number(repo.id, set.item_type, &numbers).await?;
    let items: BTreeMap<ItemNumber, Item> = items.into_iter().map(|item| (item.number, item)).collect();
    let Some(item) = items.get(&set.number) else { return Ok(None) };
    let boilerplate = stored_boilerplate(store, repo, set.item_type).await?;
    let mut case = JudgeCase::of_set(item, set, &items, &boilerplate);
    case.cards = cards_of(store, repo, source, &case).await?;
    Ok(Some(case))
}

/// Tells each case what many items contain; the texts of a type are read once.
async fn set_common_facts(store: &Store, repo: &Repo, cases: &mut [(i64, JudgeCase)]) -> Result<(), StoreError> {
    for item_type in ItemType::ALL {
        let mut of_type: Vec<&mut JudgeCase> =
            cases.iter_mut().map(|(_, case)| case).filter(|case| case.source.item_type == *item_type).collect();
        let sources = of_type.iter().map(|case| &case.source);
        // A case contains only own text already.
        let common = common_facts_among(store, repo, *item_type, &Boilerplate::default(), sources).await?;
        of_type.iter_mut().for_each(|case| case.set_common_facts(&common));
    }
    Ok(())
}

/// One judge's result for one case.
struct Lane {
    result: LaneResult,
    call: Option<NewLlmCall>,
    stopped: Option<String>,
}

async fn lane(judge: Judge<'_>, case: &JudgeCase, options: &AuditOptions) -> Lane {
    let source = case.gate_source();
    let candidates = case.gate_candidates();
    if let Some(skipped) = gate_before_judge(&source, &candidates) {
        return Lane { result: LaneResult::ruled(&skipped, None), call: None, stopped: None };
    }
    let question = judge.question(case);
    match judge.ask(&question, case, "audit", &options.budget).await {
        Ok(heard) => {
            let rules = GateRules { min_edge: options.min_edge, check_target_state: false };
            let ruled = gate_answer(&source, &candidates, &case.pairs, &heard.answer, &rules);
            let confidence = heard.answer.ok().map(|answer| answer.confidence);
            Lane { result: LaneResult::ruled(&ruled, confidence), call: heard.call, stopped: None }
        }
        Err(JudgeFailure::OverBudget(why)) => Lane { result: LaneResult::failed(&why), call: None, stopped: Some(why) },
        Err(JudgeFailure::NoAnswer { error, call }) => {
            let result = LaneResult::failed(format!("failed to {error}"));
            Lane { result, call: Some(*call), stopped: None }
        }
    }
}
