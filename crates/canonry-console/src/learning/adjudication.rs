//! Sampled verdicts that people confirm or reject, one case at a time. Canonry's verdict is hidden until they answer.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use canonry_domain::{AdjudicatedAnswer, AdjudicationSummary, Item, ItemNumber, ItemState, Verdict, VerdictShare};
use canonry_store::{Adjudication, AdjudicationFilter, AdjudicationId, AdjudicationKind, SampleProgress};
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{Form, PathFields, QueryFields};
use crate::layout::formatting::{TimeLabel, by, counted, item_path, score, share, when};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{Pager, cut_page, link, number, number_in};
use crate::sign_in::visit::{MaintainerOf, RepoVisit};

/// The default number of cases of a sample.
const USUAL_SIZE: usize = 40;
/// The most cases of one draw: a day's work.
const MOST: usize = 200;
/// Samples that are listed at once.
const SAMPLES: u32 = 10;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/adjudicate", get(show))
        .route("/r/{owner}/{name}/adjudicate/draw", post(draw))
        .route("/r/{owner}/{name}/adjudicate/{id}", get(show_one).post(answer))
}

/// Which cases are shown, and how: links and forms keep it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AdjudicationQueue {
    filter: AdjudicationFilter,
    shows_verdict: bool,
}

impl AdjudicationQueue {
    /// From the fields of a link or a form. Values that cannot be parsed are ignored.
    fn of<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Self {
        let kind = match field("from") {
            Some("verdicts") => Some(AdjudicationKind::Triage),
            Some("edges") => Some(AdjudicationKind::Edge),
            Some("backtest") => Some(AdjudicationKind::Backtest),
            _ => None,
        };
        let seed = field("seed").and_then(|seed| seed.parse().ok());
        Self { filter: AdjudicationFilter { seed, kind }, shows_verdict: field("blind") == Some("0") }
    }

    fn from_query(query: &HashMap<String, String>) -> Self {
        Self::of(|name| query.get(name).map(|text| text.trim()))
    }

    fn fields(&self) -> [(&'static str, String); 3] {
        [
            ("seed", self.filter.seed.map(|seed| seed.to_string()).unwrap_or_default()),
            ("from", self.filter.kind.map_or("", from_word).to_owned()),
            ("blind", if self.shows_verdict { "0".to_owned() } else { String::new() }),
        ]
    }

    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let fields = self.fields();
        let mut pairs: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        pairs.extend(more);
        link(path, &pairs)
    }
}

const fn from_word(kind: AdjudicationKind) -> &'static str {
    match kind {
        AdjudicationKind::Triage => "verdicts",
        AdjudicationKind::Edge => "edges",
        AdjudicationKind::Backtest => "backtest",
    }
}

#[derive(Template)]
#[template(path = "learning/adjudication.html")]
struct AdjudicationPage {
    page: PageFrame,
    path: String,
    here: String,
    case: Option<AdjudicationCaseView>,
    answered: Option<AdjudicationAnswer>,
    is_blind: bool,
    shows_verdict: bool,
    other_mode: String,
    fields: Vec<(&'static str, String)>,
    seed: String,
    from: &'static str,
    is_filtered: bool,
    begin_again: String,
    after: Option<i64>,
    samples: Vec<SampleRow>,
    pager: Pager,
    waiting: u64,
    all: u64,
    done: u64,
    precision: Option<String>,
    next_seed: i64,
    usual_size: usize,
    most: usize,
}

/// A case that waits for an answer, or whose answer may be changed.
struct AdjudicationCaseView {
    id: i64,
    kind: &'static str,
    sides: [AdjudicationSide; 2],
    verdict: Option<AdjudicationAnswer>,
    skip: String,
    action: String,
    seed: i64,
}

struct AdjudicationSide {
    href: String,
    number: ItemNumber,
    title: String,
    /// `None` if the item is no longer stored.
    text: Option<MarkedText>,
    facts: String,
}

struct AdjudicationAnswer {
    href: String,
    number: ItemNumber,
    target: ItemNumber,
    canonry: String,
    person: Option<&'static str>,
    agrees: Option<bool>,
    by: Option<String>,
}

struct SampleRow {
    seed: i64,
    href: String,
    drawn: TimeLabel,
    cases: u64,
    answered: u64,
}

async fn show(MaintainerOf(at): MaintainerOf, Query(query): QueryFields) -> PageResult {
    let (store, queue) = (&at.console.store, AdjudicationQueue::from_query(&query));
    let after = number(&query, "after");
    let case = store.judge().next_adjudication_of(at.repo.id, queue.filter, after.map(AdjudicationId::new)).await?;
    let answered = match number(&query, "answered") {
        Some(id) => {
            store.judge().adjudication(at.repo.id, AdjudicationId::new(id)).await?.filter(|one| one.answer.is_some())
        }
        None => None,
    };
    let samples = number(&query, "samples").map(AdjudicationId::new);
    page(&at, AdjudicationSelection { case, answered, is_blind: !queue.shows_verdict, after, queue, samples }).await
}

async fn show_one(MaintainerOf(at): MaintainerOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    let queue = AdjudicationQueue::from_query(&query);
    let case = at.console.store.judge().adjudication(at.repo.id, id_of(&path)?).await?.ok_or(PageError::NotFound)?;
    // An answered case is shown with its verdict: the person has already seen it.
    let is_blind = !queue.shows_verdict && case.answer.is_none();
    let shown = AdjudicationSelection { case: Some(case), answered: None, is_blind, after: None, queue, samples: None };
    page(&at, shown).await
}

struct AdjudicationSelection {
    case: Option<Adjudication>,
    answered: Option<Adjudication>,
    is_blind: bool,
    after: Option<i64>,
    queue: AdjudicationQueue,
    /// The last sample of the page before.
    samples: Option<AdjudicationId>,
}

async fn page(at: &RepoVisit, shown: AdjudicationSelection) -> PageResult {
    let AdjudicationSelection { case, answered, is_blind, after, queue, samples: before } = shown;
    let (path, now) = (repo_path(&at.repo), at.console.now());
    let here = format!("{path}/adjudicate");
    let totals = AdjudicationSummary::of(&at.console.store.judge().adjudication_totals(at.repo.id).await?);
    let newest = at.console.store.judge().adjudication_samples(at.repo.id, None, SAMPLES + 1).await?;
    let next_seed = newest.iter().map(|sample| sample.seed).max().unwrap_or(0).saturating_add(1);
    let mut samples = match before {
        None => newest,
        Some(_) => at.console.store.judge().adjudication_samples(at.repo.id, before, SAMPLES + 1).await?,
    };
    let next = cut_page(&mut samples, SAMPLES, |last| ("samples", last.newest.get().to_string()));
    let kept = queue.fields();
    let kept = kept.each_ref().map(|(name, value)| (*name, value.as_str()));
    let pager = Pager::new("Pages of samples", &here, &kept, before.is_none(), next).of_section("samples");
    let case = match case {
        Some(case) => Some(side_by_side(at, case, is_blind, queue).await?),
        None => None,
    };
    let other = AdjudicationQueue { shows_verdict: is_blind, ..queue };
    let fields = queue.fields().into_iter().filter(|(_, value)| !value.is_empty());
    let precision = totals.precision();
    html(&AdjudicationPage {
        page: at
            .page("Adjudicate", NavSection::Adjudicate)
            .cli(format!("canonry report-audit --repo {}", at.repo.name)),
        shows_verdict: queue.shows_verdict,
        other_mode: other.link(&here, &[]),
        fields: fields.collect(),
        seed: queue.filter.seed.map(|seed| seed.to_string()).unwrap_or_default(),
        from: queue.filter.kind.map_or("", from_word),
        is_filtered: queue.filter != AdjudicationFilter::default(),
        begin_again: queue.link(&here, &[]),
        answered: answered.as_ref().map(|one| said(one, &path)),
        is_blind,
        after,
        next_seed,
        samples: samples.iter().map(|sample| sample_row(sample, &here, now)).collect(),
        pager,
        waiting: totals.waiting,
        all: totals.answered + totals.waiting,
        done: totals.answered,
        precision: (precision.all() > 0).then(|| share(precision, "confirmed")),
        usual_size: USUAL_SIZE,
        most: MOST,
        case,
        path,
        here,
    })
}

async fn side_by_side(
    at: &RepoVisit,
    one: Adjudication,
    is_blind: bool,
    queue: AdjudicationQueue,
) -> Result<AdjudicationCaseView, PageError> {
    let path = repo_path(&at.repo);
    let numbers = [one.case.number, one.case.target];
    let items = at.console.store.corpus().items_by_number(at.repo.id, one.case.item_type, &numbers).await?;
    let side = |number: ItemNumber| {
        let item = items.iter().find(|item| item.number == number);
        side(item, number, item_path(&path, one.case.item_type, number), is_blind, at.console.now())
    };
    let id = one.id.get();
    Ok(AdjudicationCaseView {
        id,
        kind: match one.kind {
            AdjudicationKind::Triage => "verdict on a new item",
            AdjudicationKind::Edge => "decision behind a cluster",
            AdjudicationKind::Backtest => "verdict of a backtest",
        },
        sides: numbers.map(side),
        verdict: (!is_blind).then(|| said(&one, &path)),
        skip: queue.link(&format!("{path}/adjudicate"), &[("after", &id.to_string())]),
        action: format!("{path}/adjudicate/{id}"),
        seed: one.seed,
    })
}

fn side(item: Option<&Item>, number: ItemNumber, href: String, is_blind: bool, now: Timestamp) -> AdjudicationSide {
    let Some(item) = item else {
        return AdjudicationSide { href, number, title: String::new(), text: None, facts: String::new() };
    };
    let mut facts: Vec<String> = item.author.iter().map(|author| format!("by @{author}")).collect();
    // A closed state shows what happened to the item, which would reveal the answer.
    if !is_blind {
        facts.push(if item.state == ItemState::Open { "open" } else { "closed" }.to_owned());
    }
    facts.extend(item.created_at.map(|at| format!("opened {}", when(at, now).in_words())));
    AdjudicationSide {
        href,
        number,
        title: item.title.clone(),
        text: Some(markdown(if item.body.trim().is_empty() { "No description." } else { &item.body })),
        facts: facts.join(", "),
    }
}

fn said(one: &Adjudication, path: &str) -> AdjudicationAnswer {
    let verdict = match one.case.verdict {
        Verdict::Duplicate => "a duplicate",
        Verdict::MaybeDuplicate => "maybe a duplicate",
        Verdict::NotDuplicate => "not a duplicate",
    };
    let at = one.case.score.map_or_else(String::new, |value| format!(", score {}", score(value.get())));
    let answer = one.answer.as_ref();
    AdjudicationAnswer {
        href: format!("{path}/adjudicate/{}", one.id.get()),
        number: one.case.number,
        target: one.case.target,
        canonry: format!("{verdict}{at}"),
        person: answer.map(|answer| word_words(answer.word)),
        agrees: answer.and_then(|answer| answer.word.confirms(one.case.verdict)),
        by: answer.map(|answer| by(answer.by.as_ref())),
    }
}

const fn word_words(word: AdjudicatedAnswer) -> &'static str {
    match word {
        AdjudicatedAnswer::Same => "same problem",
        AdjudicatedAnswer::Different => "different",
        AdjudicatedAnswer::Unsure => "cannot tell",
    }
}

fn sample_row(sample: &SampleProgress, here: &str, now: Timestamp) -> SampleRow {
    let SampleProgress { seed, drawn_at, cases, answered, .. } = *sample;
    SampleRow { seed, href: link(here, &[("seed", &seed.to_string())]), drawn: when(drawn_at, now), cases, answered }
}

async fn draw(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let number = |name: &str, what: &str| {
        form.needed(name)?.parse::<i64>().map_err(|_| PageError::BadForm(format!("{what} must be a whole number")))
    };
    let (seed, size) = (number("seed", "the seed")?, number("size", "the size")?);
    let size = usize::try_from(size).ok().filter(|size| (1..=MOST).contains(size));
    let size = size.ok_or_else(|| PageError::BadForm(format!("a sample has 1 to {MOST} cases")))?;
    let (kind, from) = match form.one("from") {
        Some("edges") => (AdjudicationKind::Edge, "edges"),
        _ => (AdjudicationKind::Triage, "verdicts"),
    };
    let subject = format!("{size} {from}, seed {seed}");
    at.record("draw-sample", &subject).await?;
    let drawn = at.console.store.judge().draw_adjudications(at.repo.id, kind, seed, size, at.console.now()).await?;
    let flash = match (drawn, kind) {
        (0, AdjudicationKind::Triage) => "No new cases: this sample exists, or no new item was triaged yet.".to_owned(),
        (0, AdjudicationKind::Edge | AdjudicationKind::Backtest) => {
            "No new cases: this sample exists, or there are no duplicates yet.".to_owned()
        }
        (drawn, _) => format!("{} drawn with seed {seed}.", counted(drawn, "case")),
    };
    Ok(back_to(&format!("{}/adjudicate", repo_path(&at.repo)), &flash))
}

async fn answer(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let id = id_of(&path)?;
    let word: AdjudicatedAnswer = form
        .needed("word")?
        .parse()
        .map_err(|_| PageError::BadForm("the answer must be same, different or unsure".to_owned()))?;
    let here = format!("{}/adjudicate", repo_path(&at.repo));
    let queue = AdjudicationQueue::of(|name| form.one(name));
    at.console.store.judge().adjudication(at.repo.id, id).await?.ok_or(PageError::NotFound)?;
    at.record("adjudicate", &format!("case {}: {word}", id.get())).await?;
    if !at.console.store.judge().adjudicate(at.repo.id, id, word, at.visit.login(), at.console.now()).await? {
        return Ok(back_to(
            &queue.link(&here, &[]),
            "Somebody else answered this case, and their answer stays. Here is the next case.",
        ));
    }
    let answered = id.get().to_string();
    // Cases that were skipped before this case stay skipped.
    let after = form.one("after").unwrap_or_default();
    let next = queue.link(&here, &[("answered", &answered), ("after", after)]);
    Ok(Redirect::to(&next).into_response())
}

fn id_of(path: &HashMap<String, String>) -> Result<AdjudicationId, PageError> {
    number_in(path, "id").map(AdjudicationId::new)
}

/// People's answers beside the judges', for the pages of audits.
pub(crate) struct PeoplesLane {
    pub(crate) answered: u64,
    pub(crate) waiting: u64,
    pub(crate) unsure: u64,
    pub(crate) rows: Vec<PeoplesRow>,
}

pub(crate) struct PeoplesRow {
    pub(crate) words: String,
    pub(crate) is_level: bool,
    /// `7 of 9 (95 % CI 44–93 %)`.
    pub(crate) confirmed: String,
    pub(crate) unsure: Option<u64>,
}

impl PeoplesLane {
    /// From the summary of the answers.
    pub(crate) fn of(people: &AdjudicationSummary) -> Self {
        Self {
            answered: people.answered,
            waiting: people.waiting,
            unsure: people.unsure,
            rows: people.verdicts.iter().flat_map(rows_of).collect(),
        }
    }
}

fn rows_of(one: &VerdictShare) -> Vec<PeoplesRow> {
    let words = match one.verdict {
        Verdict::Duplicate => "duplicate",
        Verdict::MaybeDuplicate => "maybe a duplicate",
        Verdict::NotDuplicate => "not a duplicate",
    };
    let row = |words: String, of: canonry_domain::Share, unsure: Option<u64>| PeoplesRow {
        words,
        is_level: unsure.is_none(),
        confirmed: share(of, ""),
        unsure,
    };
    let mut rows = vec![row(words.to_owned(), one.share, Some(one.unsure))];
    rows.extend(
        one.levels.iter().map(|level| row(format!("score {} to {}\u{a0}%", level.from, level.to), level.share, None)),
    );
    rows
}
