//! One row of a plan: both texts with their shared evidence marked, what was said of them, and what became of it.

use canonry_config::ParsedSettings;
use canonry_domain::{
    ClosePath, Item, ItemNumber, ItemState, LiveItem, Maintainers, ONLY_EXCLUDE, RowSnapshot, SkipReason, drift, redact,
};
use canonry_retrieval::{SharedFact, marked};
use canonry_server::is_being_applied;
use canonry_store::{CloseOutcome, PlanSummary, ReviewedRow};
use canonry_triage::{RowEvidence, shared_evidence, stored_boilerplate};

use crate::layout::errors::PageError;
use crate::layout::formatting::{TimeLabel, by, counted, item_path, score, when};
use crate::layout::marked_text::{MarkedText, colour, marked_text};
use crate::layout::text_lines::{ComparedLine, LineSide, compared_lines};
use crate::plans::selection::{PlanSelection, write_item};
use crate::reviews::review_page::web;
use crate::sign_in::visit::RepoVisit;

/// Facts that are marked: as many as there are colours.
const FACTS_MARKED: usize = 6;
/// Characters of a body that are shown; the rest is on GitHub.
const BODY_SHOWN: usize = 20_000;

pub(crate) struct PairView {
    pub(crate) plan_path: String,
    /// `issue/12`, as forms name it.
    pub(crate) item: String,
    pub(crate) number: ItemNumber,
    pub(crate) heading: String,
    /// Why it is left open, for a row that does not close.
    pub(crate) left_open: Option<String>,
    /// Why it would be skipped now, as far as the stored items tell.
    pub(crate) drifted: Option<String>,
    pub(crate) source: PairSideView,
    pub(crate) target: Option<PairSideView>,
    pub(crate) facts: Vec<FactView>,
    pub(crate) reasoning: Option<String>,
    pub(crate) confidence: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) repoint: Option<String>,
    pub(crate) word: Option<ApprovalView>,
    pub(crate) result: Option<ResultView>,
    pub(crate) undone: Option<TimeLabel>,
    /// Whether the reader may say something of it.
    pub(crate) can_say: bool,
    /// Whether that may be no: an exclusion of an earlier plan can only be lifted.
    pub(crate) can_exclude: bool,
    /// Why nothing can be said but that it is left out.
    pub(crate) only_exclude: Option<&'static str>,
    pub(crate) can_undo: bool,
    pub(crate) by_line: bool,
    pub(crate) lines: Option<Vec<DiffLineView>>,
    pub(crate) other_view: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

pub(crate) struct PairSideView {
    pub(crate) number: ItemNumber,
    pub(crate) role: &'static str,
    pub(crate) title: MarkedText,
    pub(crate) body: Option<MarkedText>,
    pub(crate) is_cut: bool,
    pub(crate) is_open: bool,
    pub(crate) state: &'static str,
    pub(crate) author: Option<String>,
    pub(crate) opened: Option<TimeLabel>,
    pub(crate) comments: String,
    pub(crate) labels: Vec<String>,
    pub(crate) href: String,
    pub(crate) url: Option<String>,
    /// Whether its text is another one than when the plan was made.
    pub(crate) is_edited: bool,
}

pub(crate) struct FactView {
    pub(crate) class: &'static str,
    pub(crate) words: String,
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

pub(crate) struct DiffLineView {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) text: String,
}

pub(crate) async fn pair_view(
    at: &RepoVisit,
    plan: &PlanSummary,
    settings: &ParsedSettings,
    reviewed: ReviewedRow,
    selection: &PlanSelection,
) -> Result<PairView, PageError> {
    let (repo, now) = (&at.repo, at.console.now());
    let word = word_view(&reviewed, now);
    let result = result_view(&reviewed, now);
    let can_undo = at.can_maintain() && can_be_undone(&reviewed);
    let ReviewedRow { row, undone_at } = reviewed;
    let numbers: Vec<ItemNumber> = std::iter::once(row.number).chain(row.target).collect();
    let items = at.items(row.item_type, &numbers).await?;
    let item = |number: ItemNumber| items.iter().find(|item| item.number == number);
    let source = item(row.number).ok_or(PageError::NotFound)?;
    let target = row.target.and_then(item);

    let texts = |item: &Item| (item.title.replace("\r\n", "\n"), cut(&item.body.replace("\r\n", "\n")));
    let (own, others) = (texts(source), target.map(texts));
    let facts: Vec<SharedFact> = match &others {
        Some(others) => {
            let boilerplate = stored_boilerplate(&at.console.store, repo, row.item_type).await?;
            let own_text =
                |texts: &(String, String)| joined(&(boilerplate.own_title(&texts.0), boilerplate.own_body(&texts.1)));
            let mut facts = shared_evidence(&repo.name, &own_text(&own), &own_text(others));
            facts.truncate(FACTS_MARKED);
            facts
        }
        None => Vec::new(),
    };
    let words: Vec<String> = facts.iter().map(|fact| redact(&fact.to_string())).collect();

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
    let base = crate::layout::page::repo_path(repo);
    let leads_somewhere = web(&at.console).is_some();
    let text_view = |item: &Item, text: &(String, String), role, is_edited| {
        let joined = joined(text);
        let spans = marked(&joined, &facts);
        let body = text.0.len() + 1..joined.len();
        PairSideView {
            number: item.number,
            role,
            title: marked_text(&joined, 0..text.0.len(), &spans, &words),
            body: (!text.1.trim().is_empty()).then(|| marked_text(&joined, body, &spans, &words)),
            is_cut: text.1.chars().count() >= BODY_SHOWN,
            is_open: item.state == ItemState::Open,
            state: if item.gone.is_some() { "gone" } else { item.state.as_str() },
            author: item.author.as_ref().map(|author| format!("@{author}")),
            opened: item.created_at.map(|at| when(at, now)),
            comments: counted(u64::from(item.comments), "comment"),
            labels: item.labels.clone(),
            href: item_path(&base, item.item_type, item.number),
            url: item.url.clone().filter(|url| url.starts_with("https://") && leads_somewhere),
            is_edited,
        }
    };
    let plan_path = format!("{base}/plans/{}", plan.run.id);
    let item_name = write_item(row.item_type, row.number);
    let other_look = PlanSelection { by_line: !selection.by_line, ..selection.clone() };
    let lines = match &others {
        Some(others) if selection.by_line => compared_lines(&own.1, &others.1),
        _ => None,
    };
    let kind = row.item_type.in_words();
    let role = match (&row.skip, &row.result) {
        (Some(_), _) => "is left as it is",
        (None, None) => "would be closed",
        (None, Some(_)) => "was to be closed",
    };
    Ok(PairView {
        heading: match (row.skip, row.target) {
            (None, Some(target)) => format!("Close {kind} #{} in favour of #{target}", row.number),
            _ => format!("Leave {kind} #{} as it is", row.number),
        },
        left_open: row.skip.map(skip_words),
        drifted,
        source: text_view(source, &own, role, edited(source, |snapshot| &snapshot.source)),
        target: target.zip(others.as_ref()).map(|(target, others)| {
            text_view(target, others, "stays open", edited(target, |snapshot| &snapshot.target))
        }),
        facts: words
            .iter()
            .enumerate()
            .map(|(at, words)| FactView { class: colour(at), words: words.clone() })
            .collect(),
        reasoning: evidence.reasoning.filter(|_| !items.iter().any(|item| at.hides(item))),
        confidence: row.confidence.map(|confidence| score(confidence.get())),
        path: match evidence.path {
            Some(ClosePath::Through(number)) => Some(format!(
                "The two were not judged against each other: #{} was found to be the same as #{number}, and that the same \
                 as the one that stays open. The confidence is the lesser of both.",
                row.number
            )),
            Some(ClosePath::Direct) | None => None,
        },
        repoint: (!evidence.repoint.is_empty()).then(|| {
            let numbers: Vec<String> = evidence.repoint.iter().map(|number| format!("#{number}")).collect();
            format!(
                "{} were closed in favour of this one before, and will point at the one that stays open.",
                numbers.join(", ")
            )
        }),
        can_say: at.can_maintain() && (is_open_row || row.skip == Some(SkipReason::Excluded)),
        can_exclude: is_open_row,
        only_exclude,
        can_undo,
        word,
        result,
        undone: undone_at.map(|at| when(at, now)),
        by_line: selection.by_line,
        lines: lines.map(|lines| lines.into_iter().map(line_view).collect()),
        other_view: other_look.link(&format!("{plan_path}/rows/{item_name}")),
        fields: selection.fields(),
        number: row.number,
        item: item_name,
        plan_path,
    })
}

/// Whether a row's item was closed for the plan and is not opened again.
pub(crate) fn can_be_undone(reviewed: &ReviewedRow) -> bool {
    let result = reviewed.row.result.as_ref();
    reviewed.undone_at.is_none() && result.is_some_and(|result| matches!(result.outcome, CloseOutcome::Applied { .. }))
}

pub(crate) fn word_view(reviewed: &ReviewedRow, now: jiff::Timestamp) -> Option<ApprovalView> {
    let row = &reviewed.row;
    let (class, words) = if row.approved? { ("good", "approved") } else { ("bad", "excluded") };
    Some(ApprovalView { class, words, by: by(row.approved_by.as_ref()), when: row.approved_at.map(|at| when(at, now)) })
}

pub(crate) fn result_view(reviewed: &ReviewedRow, now: jiff::Timestamp) -> Option<ResultView> {
    let result = reviewed.row.result.as_ref()?;
    let reason = result.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (class, words) = match result.outcome {
        CloseOutcome::Applied { .. } if reviewed.undone_at.is_some() => ("mute", "opened again".to_owned()),
        CloseOutcome::Applied { objected: true } => ("warn", "closed, and people opened it again".to_owned()),
        CloseOutcome::Applied { objected: false } => ("good", "closed".to_owned()),
        CloseOutcome::Skipped => ("warn", format!("skipped{reason}")),
        CloseOutcome::Failed => ("bad", format!("failed{reason}")),
    };
    Some(ResultView { class, words, when: when(result.at, now) })
}

fn line_view(line: ComparedLine) -> DiffLineView {
    let (class, sign) = match line.side {
        LineSide::Both => ("both", " "),
        LineSide::First => ("first", "−"),
        LineSide::Second => ("second", "+"),
    };
    DiffLineView { class, sign, text: line.text }
}

fn joined((title, body): &(String, String)) -> String {
    format!("{title}\n{body}")
}

fn cut(body: &str) -> String {
    body.chars().take(BODY_SHOWN).collect()
}

fn skip_words(reason: SkipReason) -> String {
    format!("Left open: {}.", reason.in_words())
}
