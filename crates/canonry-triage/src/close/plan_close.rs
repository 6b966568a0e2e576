//! `plan-close`: plans which items to close as duplicates of which others, for a person to review.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_config::RepoConfig;
use canonry_domain::{
    FlatRow, GraceEnd, InvalidScore, ItemNumber, ItemType, LiveItem, Login, Override, OverrideKind, PairFact,
    PlanRules, Probability, RowSnapshot, SkipReason, TargetPolicy, drift,
};
use canonry_store::{
    CloseRunId, Grace, GraceState, NewPlan, NewPlanRow, Repo, Representation, RowApproval, StandingApproval, Store,
    StoreError,
};
use jiff::Timestamp;

use crate::close::common_evidence::common_facts_among;
use crate::close::row_evidence::{RowEvidence, facts_of};
use crate::judge::judge_case::Judge;
use crate::judge::judge_items::{JudgeError, JudgeOptions, representation_of};
use crate::judge::judge_pairs::{PairsReport, judge_pairs};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::judge::proven_judge::UnprovenEdges;
use crate::retrieval::boilerplate::refresh_boilerplate;
use crate::retrieval::embed::EmbedSource;

#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    pub item_type: Option<ItemType>,
    pub source: EmbedSource,
    pub rules: PlanRules,
    pub dry_run: bool,
    /// The hash of the settings in force, stored with the plan.
    pub config_hash: String,
    pub run_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub title: String,
    pub target: ItemNumber,
    pub target_title: String,
    /// Why the item stays open; `None` means that it is closed.
    pub skip: Option<SkipReason>,
    pub confidence: Option<Probability>,
    /// Empty for a row that closes nothing.
    pub evidence: RowEvidence,
    /// Whether a person approved or excluded the row; `None` if nobody decided.
    pub approved: Option<bool>,
    /// Who decided, if known: the command line does not know it.
    pub approved_by: Option<Login>,
    pub approved_at: Option<Timestamp>,
    /// The result of applying the row.
    pub result: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanReport {
    /// `None` if the plan was not stored.
    pub plan: Option<CloseRunId>,
    pub rows: Vec<PlannedRow>,
    pub clusters: u64,
    /// Pairs for which only a judgement is missing.
    pub missing_pairs: u64,
    pub judged: PairsReport,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The maintainers are unknown, and their items must never be closed.
    #[error(
        "the maintainers of {0} are unknown, and their items are never closed; run `canonry maintainers refresh --repo {0}`, or \
         name them with `canonry maintainers set --repo {0} LOGIN…`"
    )]
    NoMaintainers(canonry_domain::RepoName),
    /// Asking the judge about missing pairs failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The plan rules from these settings; `policy` overrides the configured one.
pub fn plan_rules(config: &RepoConfig, policy: Option<TargetPolicy>) -> Result<PlanRules, InvalidScore> {
    Ok(PlanRules {
        min_close: Probability::new(config.close.min_close)?,
        policy: policy.unwrap_or(config.close.target_policy),
        protected_labels: config.close.protected_labels.clone(),
    })
}

/// Makes a plan and stores it. Earlier decisions about rows remain valid: exclusions until a person lifts them,
/// approvals as long as nothing about the pair has changed. If there is a judge, it is first asked about exactly the
/// missing pairs.
///
/// While the maintainers are unknown, the plan may contain their items, and canonicals are not stored: maintainers' items
/// are preferred. An apply is refused until the list is known, and leaves their items open.
#[boxed]
pub async fn plan_close(
    store: &Store,
    repo: &Repo,
    judge: Option<(Judge<'_>, &JudgeOptions)>,
    options: &PlanOptions,
    now: Timestamp,
) -> Result<PlanReport, PlanError> {
    let knows_maintainers = store.repos().maintainers(repo.id).await?.is_some();
    let representation = representation_of(options.source);
    let mut report = PlanReport::default();
    let mut rows = Vec::new();
    let mut canonicals = Vec::new();
    let mut words: BTreeMap<(ItemType, ItemNumber), RowApproval> = BTreeMap::new();
    for item_type in ItemType::one_or_all(options.item_type) {
        refresh_boilerplate(store, repo, item_type, None, now).await?;
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
        let reasonings = store.judge().accepted_reasonings(repo.id, item_type, representation).await?;
        let graces = store.close().last_graces(repo.id, item_type).await?;
        let overrides = store.duplicates().overrides(repo.id, Some(item_type)).await?;
        let approvals = store.plans().standing_approvals(repo.id, item_type).await?;
        let unproven = UnprovenEdges::read(store, repo, item_type, representation).await?;
        let mut facts = shared_facts(store, repo, &known, plan.rows()).await?;
        for mut row in plan.rows() {
            let grace = graces.iter().find(|grace| grace.number == row.number);
            let ruled = overrides.iter().filter(|ruled| {
                ruled.kind == OverrideKind::Duplicate && (ruled.item, ruled.other) == (row.number, Some(row.target))
            });
            let ruled_at = ruled.map(|ruled| ruled.created_at).max();
            // A person who lifts an exclusion must not find a row that something else keeps open.
            if row.skip.is_none_or(|skip| skip == SkipReason::Excluded)
                && let Some(skip) = grace.and_then(|grace| kept_by_grace(grace, ruled_at))
            {
                row = FlatRow { skip: Some(skip), path: None, repoint: &[], ..row };
            }
            let word = match row.skip {
                None => kept_approval(&known, &row, approvals.get(&row.number), &options.rules),
                Some(SkipReason::Excluded) => exclusion_of(&known, &row, &overrides),
                Some(_) => None,
            };
            if row.skip.is_none()
                && !word.as_ref().is_some_and(|word| word.approved)
                && let Some(skip) = unproven.skip(&row)
            {
                row = FlatRow { skip: Some(skip), path: None, repoint: &[], ..row };
            }
            // The judge's reasoning is valid only for the pair that it judged.
            let judged = known.edge_of(row.number).filter(|edge| edge.target == row.target && !edge.human);
            let reasoning = judged.and_then(|edge| reasonings.get(&edge.source)).cloned();
            if let Some((planned, new)) = planned_row(&known, &row, facts.remove(&row.number), reasoning, word.as_ref())
            {
                report.rows.push(planned);
                rows.push(new);
                words.extend(word.map(|word| ((item_type, row.number), word)));
            }
        }
        canonicals.push((item_type, plan.canonicals()));
    }
    if options.dry_run {
        return Ok(report);
    }
    for (item_type, canonicals) in canonicals.into_iter().filter(|_| knows_maintainers) {
        store.duplicates().set_canonicals(repo.id, item_type, representation, &canonicals, now).await?;
    }
    let new = NewPlan {
        representation,
        target_policy: options.rules.policy,
        min_close: options.rules.min_close,
        config_hash: &options.config_hash,
        run_id: &options.run_id,
    };
    report.plan = Some(store.plans().create_keeping_approvals(repo.id, &new, &rows, &words, now).await?);
    Ok(report)
}

/// The approval from an earlier plan, if it is for this pair and nothing has changed since that would keep the row
/// open.
fn kept_approval(
    known: &KnownDuplicates,
    row: &FlatRow<'_>,
    approval: Option<&StandingApproval>,
    rules: &PlanRules,
) -> Option<RowApproval> {
    let approval = approval.filter(|approval| approval.target == row.target)?;
    let (source, target) = (known.item(row.number)?, known.item(row.target)?);
    let snapshot: RowSnapshot = serde_json::from_value(approval.snapshot.clone()).ok()?;
    let live = LiveItem::as_stored(target);
    let changed =
        drift(&snapshot, &LiveItem::as_stored(source), Some(&live), known.maintainers(), &rules.protected_labels);
    changed.is_none().then(|| approval.word.clone())
}

/// Who excluded the row, and when.
fn exclusion_of(known: &KnownDuplicates, row: &FlatRow<'_>, overrides: &[Override]) -> Option<RowApproval> {
    let is_of_row = |ruled: &&Override| {
        let in_cluster = |other: ItemNumber| other == row.target || known.canonical_of(other) == Some(row.target);
        ruled.kind == OverrideKind::Excluded && ruled.item == row.number && ruled.other.is_some_and(in_cluster)
    };
    let ruled = overrides.iter().rev().find(is_of_row)?;
    Some(RowApproval { approved: false, by: ruled.created_by.clone(), at: ruled.created_at })
}

/// Why a plan skips an item that has or had a grace period. If a person ruled after the grace period ended, the item
/// may be closed; people objected to earlier rulings.
fn kept_by_grace(grace: &Grace, ruled_at: Option<Timestamp>) -> Option<SkipReason> {
    let objected = || grace.reason.as_deref()?.parse::<GraceEnd>().ok().filter(|end| end.is_objection());
    match grace.state {
        GraceState::Waiting => Some(SkipReason::InGrace),
        GraceState::Cancelled if ruled_at.is_none_or(|at| grace.ended_at.is_some_and(|ended| at <= ended)) => {
            objected().map(|_| SkipReason::Objected)
        }
        GraceState::Cancelled | GraceState::Closed | GraceState::Refused => None,
    }
}

/// The only row that is planned when a grace period is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneRow<'a> {
    pub(crate) grace: i64,
    pub(crate) item_type: ItemType,
    pub(crate) number: ItemNumber,
    /// The item that the announcement named.
    pub(crate) target: ItemNumber,
    pub(crate) representation: Representation,
    pub(crate) rules: &'a PlanRules,
    pub(crate) config_hash: &'a str,
    pub(crate) run_id: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnePlan {
    /// A plan that contains only this row.
    Stored(CloseRunId),
    Skipped(String),
    /// Another process has planned it, or has ended the grace period.
    Taken,
}

/// Plans the close of one item by the same rules as a whole plan, and stores a plan with only this row. The result is
/// a skip unless the row closes the item as a duplicate of exactly the item that was named.
pub(crate) async fn plan_one(
    store: &Store,
    repo: &Repo,
    one: &OneRow<'_>,
    now: Timestamp,
) -> Result<OnePlan, PlanError> {
    if store.repos().maintainers(repo.id).await?.is_none() {
        return Err(PlanError::NoMaintainers(repo.name.clone()));
    }
    let OneRow { item_type, representation, rules, .. } = *one;
    refresh_boilerplate(store, repo, item_type, None, now).await?;
    let mut known = KnownDuplicates::load(store, repo, item_type, representation).await?;
    known.read_fixes(store, repo).await?;
    known.keep_canonical(one.number, one.target);
    let plan = known.plan(rules);
    let Some(row) = plan.rows().find(|row| row.number == one.number) else {
        // The item would be the one that stays open.
        return Ok(OnePlan::Skipped(SkipReason::UnsafeTarget.to_string()));
    };
    let unproven = UnprovenEdges::read(store, repo, item_type, representation).await?;
    if let Some(skip) = row.skip.or_else(|| unproven.skip(&row)) {
        return Ok(OnePlan::Skipped(skip.to_string()));
    }
    if row.target != one.target {
        return Ok(OnePlan::Skipped(SkipReason::UnsafeTarget.to_string()));
    }
    let reasonings = store.judge().accepted_reasonings(repo.id, item_type, representation).await?;
    let judged = known.edge_of(row.number).filter(|edge| edge.target == row.target && !edge.human);
    let reasoning = judged.and_then(|edge| reasonings.get(&edge.source)).cloned();
    let facts = shared_facts(store, repo, &known, std::iter::once(row)).await?.remove(&row.number);
    let Some((_, new_row)) = planned_row(&known, &row, facts, reasoning, None) else {
        return Ok(OnePlan::Skipped(SkipReason::UnsafeTarget.to_string()));
    };
    store.duplicates().set_canonicals(repo.id, item_type, representation, &plan.canonicals(), now).await?;
    let new = NewPlan {
        representation,
        target_policy: rules.policy,
        min_close: rules.min_close,
        config_hash: one.config_hash,
        run_id: one.run_id,
    };
    let plan = store.close().plan_grace(one.grace, repo.id, &new, &new_row, now).await?;
    Ok(plan.map_or(OnePlan::Taken, OnePlan::Stored))
}

/// What the two items of each row that closes share, without what many items contain.
async fn shared_facts(
    store: &Store,
    repo: &Repo,
    known: &KnownDuplicates,
    rows: impl Iterator<Item = FlatRow<'_>>,
) -> Result<BTreeMap<ItemNumber, Vec<PairFact>>, StoreError> {
    let pairs = rows.filter(|row| row.path.is_some());
    let pairs = pairs.filter_map(|row| Some((row.number, known.item(row.number)?, known.item(row.target)?)));
    let pairs: Vec<_> = pairs.collect();
    let (item_type, boilerplate) = (known.item_type(), known.boilerplate());
    let sources = pairs.iter().map(|(_, source, _)| *source);
    let common = common_facts_among(store, repo, item_type, boilerplate, sources).await?;
    let facts = |source, target| facts_of(&repo.name, boilerplate, &common, source, target);
    Ok(pairs.into_iter().map(|(number, source, target)| (number, facts(source, target))).collect())
}

fn planned_row(
    known: &KnownDuplicates,
    row: &FlatRow<'_>,
    facts: Option<Vec<PairFact>>,
    reasoning: Option<String>,
    word: Option<&RowApproval>,
) -> Option<(PlannedRow, NewPlanRow)> {
    let (source, target) = (known.item(row.number)?, known.item(row.target)?);
    let evidence = match row.path {
        None => RowEvidence::default(),
        Some(_) => RowEvidence {
            facts: facts.unwrap_or_default().iter().map(ToString::to_string).collect(),
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
        approved: word.map(|word| word.approved),
        approved_by: word.and_then(|word| word.by.clone()),
        approved_at: word.map(|word| word.at),
        result: None,
    };
    Some((planned, new))
}
