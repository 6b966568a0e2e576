//! One row of a plan: both items compared, who approved or excluded the row, and its result.

use canonry_config::ParsedSettings;
use canonry_domain::{
    ClosePath, Item, ItemNumber, LiveItem, Maintainers, ONLY_EXCLUDE, RowSnapshot, SkipReason, drift,
};
use canonry_server::is_being_applied;
use canonry_store::{CloseOutcome, PlanSummary, ReviewedRow};
use canonry_triage::RowEvidence;

use crate::layout::errors::PageError;
use crate::layout::formatting::{TimeLabel, by, score, when};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::page::repo_path;
use crate::plans::pair_comparison::{ComparedItem, PairComparison, pair_comparison};
use crate::plans::selection::{PlanSelection, write_item};
use crate::sign_in::visit::RepoVisit;

pub(crate) struct PairView {
    pub(crate) plan_path: String,
    /// The list that contains the row.
    pub(crate) list: String,
    /// `issue/12`, as forms name it.
    pub(crate) item: String,
    pub(crate) number: ItemNumber,
    pub(crate) heading: String,
    /// Why the item stays open, for a row that does not close.
    pub(crate) left_open: Option<String>,
    /// Why the row would be skipped now, according to the stored items.
    pub(crate) drifted: Option<String>,
    pub(crate) comparison: PairComparison,
    pub(crate) reasoning: Option<MarkedText>,
    pub(crate) confidence: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) repoint: Option<String>,
    pub(crate) approval: Option<ApprovalView>,
    pub(crate) result: Option<ResultView>,
    pub(crate) undone: Option<TimeLabel>,
    /// Whether the reader may approve or exclude it.
    pub(crate) can_decide: bool,
    /// An exclusion of an earlier plan can only be removed.
    pub(crate) can_exclude: bool,
    /// Why the row can only be excluded now.
    pub(crate) only_exclude: Option<&'static str>,
    pub(crate) can_undo: bool,
    pub(crate) other_view: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

pub(crate) struct ApprovalView {
    pub(crate) class: &'static str,
    pub(crate) words: &'static str,
    pub(crate) by: String,
    pub(crate) when: Option<TimeLabel>,
}

pub(crate) struct ResultView {
    pub(crate) class: &'static str,
    pub(crate) words: String,
    pub(crate) when: TimeLabel,
}

pub(crate) async fn pair_view(
    at: &RepoVisit,
    plan: &PlanSummary,
    settings: &ParsedSettings,
    reviewed: ReviewedRow,
    selection: &PlanSelection,
) -> Result<PairView, PageError> {
    let (repo, now) = (&at.repo, at.console.now());
    let approval = approval_view(&reviewed, now);
    let result = result_view(&reviewed, now);
    let can_undo = at.can_maintain() && can_be_undone(&reviewed);
    let ReviewedRow { row, undone_at } = reviewed;
    let numbers: Vec<ItemNumber> = std::iter::once(row.number).chain(row.target).collect();
    let items = at.items(row.item_type, &numbers).await?;
    let item = |number: ItemNumber| items.iter().find(|item| item.number == number);
    let source = item(row.number).ok_or(PageError::NotFound)?;
    let target = row.target.and_then(item);

    let snapshot: Option<RowSnapshot> = serde_json::from_value(row.snapshot).ok();
    let evidence: RowEvidence = serde_json::from_value(row.evidence).unwrap_or_default();
    let is_open_row = row.skip.is_none() && row.result.is_none();
    let drifted = match snapshot.as_ref().filter(|_| is_open_row) {
        Some(snapshot) => {
            let list = at.console.store.repos().maintainers(repo.id).await?;
            let maintainers: Maintainers = list.iter().flat_map(|list| &list.logins).collect();
            let protected = &settings.config.close.protected_labels;
            let live = target.filter(|target| target.gone.is_none()).map(LiveItem::as_stored);
            drift(snapshot, &LiveItem::as_stored(source), live.as_ref(), &maintainers, protected)
                .map(|refusal| refusal.in_words().to_owned())
        }
        None => None,
    };
    let only_exclude = is_being_applied(&at.console.store, repo, plan.run.id).await?.then_some(ONLY_EXCLUDE);
    let edited = |item: &Item, of: fn(&RowSnapshot) -> &canonry_domain::ItemSnapshot| {
        snapshot.as_ref().is_some_and(|snapshot| of(snapshot).content_hash != item.content_hash)
    };
    let role = match (&row.skip, &row.result) {
        (Some(_), _) => "stays open",
        (None, None) => "would be closed",
        (None, Some(_)) => "was to be closed",
    };
    let compared = ComparedItem { item: source, role, is_edited: edited(source, |snapshot| &snapshot.source) };
    let other = target.map(|item| ComparedItem {
        item,
        role: "stays open",
        is_edited: edited(item, |snapshot| &snapshot.target),
    });
    let plan_path = format!("{}/plans/{}", repo_path(repo), plan.run.id);
    let item_name = write_item(row.item_type, row.number);
    let other_view = PlanSelection { by_line: !selection.by_line, ..selection.clone() };
    let kind = row.item_type.in_words();
    Ok(PairView {
        heading: match (row.skip, row.target) {
            (None, Some(target)) => format!("Close {kind} #{} as a duplicate of #{target}", row.number),
            _ => format!("Leave {kind} #{} open", row.number),
        },
        left_open: row.skip.map(skip_words),
        drifted,
        comparison: pair_comparison(at, compared, other, selection.by_line).await?,
        reasoning: evidence.reasoning.filter(|_| !items.iter().any(|item| at.hides(item))).map(|text| markdown(&text)),
        confidence: row.confidence.map(|confidence| score(confidence.get())),
        path: match evidence.path {
            Some(ClosePath::Through(number)) => Some(format!(
                "The two were not compared directly: #{} is a duplicate of #{number}, which is a duplicate of the item \
                 that stays open. The confidence is the lower of both.",
                row.number
            )),
            Some(ClosePath::Direct) | None => None,
        },
        repoint: (!evidence.repoint.is_empty()).then(|| {
            let numbers: Vec<String> = evidence.repoint.iter().map(|number| format!("#{number}")).collect();
            format!(
                "Closed earlier as duplicates of this item: {}. They will be linked to the item that stays open.",
                numbers.join(", ")
            )
        }),
        can_decide: at.can_maintain() && (is_open_row || row.skip == Some(SkipReason::Excluded)),
        can_exclude: is_open_row,
        only_exclude,
        can_undo,
        approval,
        result,
        undone: undone_at.map(|at| when(at, now)),
        list: selection.link(&plan_path),
        other_view: other_view.link(&format!("{plan_path}/rows/{item_name}")),
        fields: selection.fields(),
        number: row.number,
        item: item_name,
        plan_path,
    })
}

/// Whether the plan closed the row's item and it is not reopened.
pub(crate) fn can_be_undone(reviewed: &ReviewedRow) -> bool {
    let result = reviewed.row.result.as_ref();
    reviewed.undone_at.is_none() && result.is_some_and(|result| matches!(result.outcome, CloseOutcome::Applied { .. }))
}

pub(crate) fn approval_view(reviewed: &ReviewedRow, now: jiff::Timestamp) -> Option<ApprovalView> {
    let row = &reviewed.row;
    let (class, words) = if row.approved? { ("good", "approved") } else { ("bad", "excluded") };
    Some(ApprovalView { class, words, by: by(row.approved_by.as_ref()), when: row.approved_at.map(|at| when(at, now)) })
}

pub(crate) fn result_view(reviewed: &ReviewedRow, now: jiff::Timestamp) -> Option<ResultView> {
    let result = reviewed.row.result.as_ref()?;
    let reason = result.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (class, words) = match result.outcome {
        CloseOutcome::Applied { .. } if reviewed.undone_at.is_some() => ("mute", "reopened".to_owned()),
        CloseOutcome::Applied { objected: true } => ("warn", "closed, then reopened by people".to_owned()),
        CloseOutcome::Applied { objected: false } => ("good", "closed".to_owned()),
        CloseOutcome::Skipped => ("warn", format!("skipped{reason}")),
        CloseOutcome::Failed => ("bad", format!("failed{reason}")),
    };
    Some(ResultView { class, words, when: when(result.at, now) })
}

fn skip_words(reason: SkipReason) -> String {
    format!("Left open: {}.", reason.in_words())
}
