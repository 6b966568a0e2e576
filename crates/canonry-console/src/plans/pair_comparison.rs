//! Two items side by side: both texts with their shared evidence marked, or compared line by line.

use canonry_domain::{Boilerplate, Item, ItemNumber, ItemState, redact};
use canonry_retrieval::{CommonFacts, FactKind, SharedFact, marked};
use canonry_triage::{common_evidence, stored_boilerplate, telling_facts};

use crate::layout::errors::PageError;
use crate::layout::formatting::{TimeLabel, counted, item_path, when};
use crate::layout::markdown::marked_markdown;
use crate::layout::marked_text::{MarkedText, colour, marked_text};
use crate::layout::page::repo_path;
use crate::layout::text_lines::{ComparedLine, LineSide, compared_lines};
use crate::reviews::review_page::web;
use crate::sign_in::visit::RepoVisit;

/// The most facts that are marked: one per colour.
const FACTS_MARKED: usize = 6;
/// The most characters of a body that are shown; the rest is on GitHub.
const BODY_SHOWN: usize = 20_000;

/// The data of `plans/pair_comparison.html`, under the name `comparison`.
pub(crate) struct PairComparison {
    pub(crate) source: PairSideView,
    pub(crate) target: Option<PairSideView>,
    pub(crate) facts: Vec<FactView>,
    /// Whether the texts are compared line by line instead of side by side.
    pub(crate) by_line: bool,
    /// `None` if a text is too long for it.
    pub(crate) lines: Option<Vec<DiffLineView>>,
}

pub(crate) struct PairSideView {
    pub(crate) number: ItemNumber,
    /// What the plan does with the item: `would be closed`, `stays open`.
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
    /// Whether its text was edited since the plan was made.
    pub(crate) is_edited: bool,
}

pub(crate) struct FactView {
    pub(crate) class: &'static str,
    pub(crate) text: String,
    /// `error message`, `stack frame`.
    pub(crate) kind: &'static str,
}

pub(crate) struct DiffLineView {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) text: String,
}

#[derive(Clone, Copy)]
pub(crate) struct ComparedItem<'a> {
    pub(crate) item: &'a Item,
    pub(crate) role: &'static str,
    pub(crate) is_edited: bool,
}

/// Compares two items of the same type. Both must come from [`RepoVisit::items`], which hides what the reader may not
/// see.
pub(crate) async fn pair_comparison(
    at: &RepoVisit,
    source: ComparedItem<'_>,
    target: Option<ComparedItem<'_>>,
    by_line: bool,
) -> Result<PairComparison, PageError> {
    let own = SideText::of(source.item);
    let other = target.map(|target| SideText::of(target.item));
    let facts: Vec<SharedFact> = match &other {
        Some(other) => {
            let boilerplate = stored_boilerplate(&at.console.store, &at.repo, source.item.item_type).await?;
            let common = common_facts(at, &boilerplate, source.item).await?;
            let without_template = |text: &SideText| {
                SideText { title: boilerplate.own_title(&text.title), body: boilerplate.own_body(&text.body) }.joined()
            };
            let mut facts = telling_facts(&at.repo.name, &common, &without_template(&own), &without_template(other));
            facts.truncate(FACTS_MARKED);
            facts
        }
        None => Vec::new(),
    };
    let words: Vec<String> = facts.iter().map(|fact| redact(&fact.to_string())).collect();
    let lines = match &other {
        Some(other) if by_line => compared_lines(&own.body, &other.body),
        _ => None,
    };
    Ok(PairComparison {
        source: side(at, source, &own, &facts, &words),
        target: target.zip(other.as_ref()).map(|(target, text)| side(at, target, text, &facts, &words)),
        facts: facts.iter().enumerate().map(|(at, fact)| fact_view(at, fact)).collect(),
        by_line,
        lines: lines.map(|lines| lines.into_iter().map(line_view).collect()),
    })
}

/// Facts that prove nothing, as comments leave them out; none without an index to find them in.
async fn common_facts(at: &RepoVisit, boilerplate: &Boilerplate, item: &Item) -> Result<CommonFacts, PageError> {
    let Some(lookup) = &at.console.lookup else { return Ok(CommonFacts::default()) };
    let with = Some(lookup.detectors.detectors());
    Ok(common_evidence(&at.console.store, &at.repo, boilerplate, item, with).await?)
}

struct SideText {
    title: String,
    body: String,
}

impl SideText {
    fn of(item: &Item) -> Self {
        let body = item.body.replace("\r\n", "\n");
        Self { title: item.title.replace("\r\n", "\n"), body: body.chars().take(BODY_SHOWN).collect() }
    }

    fn joined(&self) -> String {
        format!("{}\n{}", self.title, self.body)
    }
}

fn side(
    at: &RepoVisit,
    ComparedItem { item, role, is_edited }: ComparedItem<'_>,
    text: &SideText,
    facts: &[SharedFact],
    words: &[String],
) -> PairSideView {
    let joined = text.joined();
    let spans = marked(&joined, facts);
    let body = text.title.len() + 1..joined.len();
    let leads_somewhere = web(&at.console).is_some();
    PairSideView {
        number: item.number,
        role,
        title: marked_text(&joined, 0..text.title.len(), &spans, words),
        body: (!text.body.trim().is_empty()).then(|| marked_markdown(&joined, body, &spans, words)),
        is_cut: text.body.chars().count() >= BODY_SHOWN,
        is_open: item.state == ItemState::Open,
        state: if item.gone.is_some() { "gone" } else { item.state.as_str() },
        author: item.author.as_ref().map(|author| format!("@{author}")),
        opened: item.created_at.map(|opened| when(opened, at.console.now())),
        comments: counted(u64::from(item.comments), "comment"),
        labels: item.labels.clone(),
        href: item_path(&repo_path(&at.repo), item.item_type, item.number),
        url: item.url.clone().filter(|url| url.starts_with("https://") && leads_somewhere),
        is_edited,
    }
}

fn fact_view(at: usize, fact: &SharedFact) -> FactView {
    let kind = match fact.kind {
        FactKind::Error => "error message",
        FactKind::Frame => "stack frame",
        FactKind::Quote => "quoted text",
        FactKind::Code => "identifier",
        FactKind::Version => "version",
    };
    FactView { class: colour(at), text: redact(&fact.text), kind }
}

fn line_view(line: ComparedLine) -> DiffLineView {
    let (class, sign) = match line.side {
        LineSide::Both => ("both", " "),
        LineSide::First => ("first", "−"),
        LineSide::Second => ("second", "+"),
    };
    DiffLineView { class, sign, text: line.text }
}
