//! `plan-close`: which items are closed in favour of which, for a person to review.

use canonry_domain::{FlatRow, ItemNumber, ItemType, PlanRules, Probability, RowSnapshot, SkipReason};
use canonry_store::{CloseRunId, NewPlan, NewPlanRow, Repo, Store, StoreError};
use jiff::Timestamp;

use crate::embed::EmbedSource;
use crate::judge::{JudgeError, JudgeOptions, representation_of};
use crate::judge_case::Judge;
use crate::judge_pairs::{PairsReport, judge_pairs};
use crate::known_duplicates::KnownDuplicates;
use crate::row_evidence::{RowEvidence, facts_of};

/// What is planned, and by which rules.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// Only items of this type.
    pub item_type: Option<ItemType>,
    /// Whose edges count.
    pub source: EmbedSource,
    /// When an item may be closed.
    pub rules: PlanRules,
    /// Store nothing.
    pub dry_run: bool,
    /// The settings in force, as they are stored with the plan.
    pub config_hash: String,
    /// The run, as it is stored with the plan.
    pub run_id: String,
}

/// One row for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// Issue or pull request.
    pub item_type: ItemType,
    /// The item.
    pub number: ItemNumber,
    /// Its title.
    pub title: String,
    /// What it is closed in favour of, or would be.
    pub target: ItemNumber,
    /// The title of that.
    pub target_title: String,
    /// Why it is left open; `None` closes it.
    pub skip: Option<SkipReason>,
    /// How sure it is that the two are the same.
    pub confidence: Option<Probability>,
    /// Why; empty for a row that closes nothing.
    pub evidence: RowEvidence,
    /// What a person said of the row; `None` when nobody has.
    pub approved: Option<bool>,
    /// What became of it when it was applied.
    pub result: Option<String>,
}

/// A plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanReport {
    /// Its number; `None` when it was not stored.
    pub plan: Option<CloseRunId>,
    /// Every row, cluster by cluster.
    pub rows: Vec<PlannedRow>,
    /// Clusters that it is made from.
    pub clusters: u64,
    /// Pairs that lack nothing but a judgement.
    pub missing_pairs: u64,
    /// What became of those that were judged for it.
    pub judged: PairsReport,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Nobody knows who the maintainers are, whose items are never closed.
    #[error(
        "nobody knows who maintains {0}, and maintainers' items are never closed; run `canonry maintainers refresh --repo {0}`, \
         or name them with `canonry maintainers set --repo {0} LOGIN…`"
    )]
    NoMaintainers(canonry_domain::RepoName),
    /// The judge could not be asked about missing pairs.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Plans, and stores the plan. With a judge, it is asked about exactly the pairs that are missing first.
pub async fn plan_close(
    store: &Store,
    repo: &Repo,
    judge: Option<(Judge<'_>, &JudgeOptions)>,
    options: &PlanOptions,
    now: Timestamp,
) -> Result<PlanReport, PlanError> {
    if store.maintainers(repo.id).await?.is_none() {
        return Err(PlanError::NoMaintainers(repo.name.clone()));
    }
    let representation = representation_of(options.source);
    let mut report = PlanReport::default();
    let mut rows = Vec::new();
    let mut canonicals = Vec::new();
    for item_type in ItemType::one_or_all(options.item_type) {
        let mut known = KnownDuplicates::load(store, repo, item_type, representation).await?;
        known.read_fixes(store, repo).await?;
        let mut plan = known.plan(&options.rules);
        if let Some((judge, judge_options)) = judge.filter(|_| !options.dry_run) {
            let pairs = plan.missing_pairs();
            let judged = judge_pairs(store, repo, judge, judge_options, &known, &pairs, now).await?;
            let changed = judged.accepted > 0;
            report.judged.add(judged);
            if changed {
                known = KnownDuplicates::load(store, repo, item_type, representation).await?;
                known.read_fixes(store, repo).await?;
                plan = known.plan(&options.rules);
            }
        }
        report.clusters += plan.clusters().len() as u64;
        report.missing_pairs += plan.missing_pairs().len() as u64;
        let reasonings = store.accepted_reasonings(repo.id, item_type, representation).await?;
        for row in plan.rows() {
            // What the judge said is about the pair that it judged, and about no other.
            let judged = known.edge_of(row.number).filter(|edge| edge.target == row.target && !edge.human);
            let reasoning = judged.and_then(|edge| reasonings.get(&edge.source)).cloned();
            if let Some((planned, new)) = planned_row(repo, &known, &row, reasoning) {
                report.rows.push(planned);
                rows.push(new);
            }
        }
        canonicals.push((item_type, plan.canonicals()));
    }
    if options.dry_run {
        return Ok(report);
    }
    for (item_type, canonicals) in canonicals {
        store.set_canonicals(repo.id, item_type, representation, &canonicals, now).await?;
    }
    let new = NewPlan {
        representation,
        target_policy: options.rules.policy,
        min_close: options.rules.min_close,
        config_hash: &options.config_hash,
        run_id: &options.run_id,
    };
    report.plan = Some(store.create_plan(repo.id, &new, &rows, now).await?);
    Ok(report)
}

fn planned_row(
    repo: &Repo,
    known: &KnownDuplicates,
    row: &FlatRow<'_>,
    reasoning: Option<String>,
) -> Option<(PlannedRow, NewPlanRow)> {
    let (source, target) = (known.item(row.number)?, known.item(row.target)?);
    let evidence = match row.skip {
        Some(_) => RowEvidence::default(),
        None => RowEvidence {
            facts: facts_of(&repo.name, source, target),
            reasoning,
            path: row.path,
            repoint: row.repoint.to_vec(),
        },
    };
    let new = NewPlanRow {
        item_type: known.item_type(),
        number: row.number,
        target: Some(row.target),
        skip: row.skip,
        confidence: row.confidence,
        evidence: serde_json::to_value(&evidence).expect("invariant: plain data"),
        snapshot: serde_json::to_value(RowSnapshot::of(source, target)).expect("invariant: plain data"),
    };
    let planned = PlannedRow {
        item_type: known.item_type(),
        number: row.number,
        title: source.title.clone(),
        target: row.target,
        target_title: target.title.clone(),
        skip: row.skip,
        confidence: row.confidence,
        evidence,
        approved: None,
        result: None,
    };
    Some((planned, new))
}
