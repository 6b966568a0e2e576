//! The learned threshold: its evidence, its reasons, the outcomes behind it, and what would change it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::{
    Component, CountedLessons, CurrentThreshold, LessonKind, LessonPeriod, ThresholdRule, ThresholdSettings,
    ThresholdSource, Thresholds, learn_from_counts, posterior_band, reliability, threshold_curve,
};
use canonry_store::{LearnedOutcome, LessonFilter, LessonLog, LogStep, StoredAdjustment};
use jiff::Timestamp;

use crate::charts::Svg;
use crate::charts::bars::{Bar, Bars, bars};
use crate::charts::reliability::{ReliabilityPlot, reliability_plot};
use crate::charts::step_line::{StepLine, StepPoint, step_line};
use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{TimeLabel, counted, interval, percent, share, thousands, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{Pager, cut_page, link, number, place, place_in, word};
use crate::learning::sentences::{
    LatestRow, current_sentence, evidence_sentence, latest_row, reason_sentence, step_words, what_would_move,
};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// Adjustments per page; `canonry thresholds` shows as many.
const ADJUSTMENTS: u32 = 20;
/// Outcomes per page.
const LATEST: u32 = 15;
/// The width of a level in the reliability plot, in percentage points: narrower ones contain too few predictions.
const LEVEL_WIDTH: u8 = 5;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/learning", get(show))
}

#[derive(Template)]
#[template(path = "learning/thresholds.html")]
struct LearningPage {
    page: PageFrame,
    path: String,
    here: String,
    chosen: Option<String>,
    components: Vec<ComponentChoice>,
    own_bucket: bool,
    holds: String,
    is_silent: bool,
    source: &'static str,
    reason: String,
    rests_on: String,
    wanted: Option<String>,
    configured: u8,
    line: Svg,
    line_rows: Vec<LineRow>,
    plot: Svg,
    levels: Vec<LevelRow>,
    outcomes: Svg,
    step: &'static str,
    periods: Vec<PeriodRow>,
    moves: Vec<String>,
    adjustments: Vec<ThresholdMoveRow>,
    move_pager: Pager,
    tabs: Vec<OutcomeTab>,
    latest: Vec<LatestRow>,
    /// The kind of the listed outcomes, if not all are listed.
    kind: String,
    lesson_pager: Pager,
    counts_agree: bool,
    check: String,
    all: u64,
    checked: Option<ThresholdCheck>,
    can_maintain: bool,
}

struct ComponentChoice {
    name: String,
    words: String,
    is_chosen: bool,
}

struct LineRow {
    until: String,
    threshold: String,
    right: String,
}

struct OutcomeTab {
    words: &'static str,
    count: String,
    href: String,
    is_here: bool,
}

struct LevelRow {
    scores: String,
    words: String,
    is_spoken: bool,
}

struct PeriodRow {
    when: String,
    counts: [u64; 4],
}

struct ThresholdMoveRow {
    at: TimeLabel,
    about: String,
    before: String,
    after: String,
    outcomes: u64,
}

struct ThresholdCheck {
    same: bool,
    older_rules: bool,
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    // The check reads every event of every issue.
    let checks = query.contains_key("check");
    if checks && !at.can_maintain() {
        return Err(PageError::Forbidden("maintainers of this repository"));
    }
    let store = &at.console.store;
    let settings = store.learning().threshold_settings(at.repo.id).await?;
    let thresholds = store.learning().thresholds(at.repo.id).await?;
    let adjustments = store.learning().threshold_adjustments(at.repo.id, ADJUSTMENTS).await?;
    // Only a component that the store knows is one; any other value means the repository.
    let asked_for = query.get("component").map(String::as_str).filter(|name| !name.is_empty());
    let known =
        thresholds.components.keys().chain(adjustments.iter().filter_map(|one| one.adjusted.component.as_ref()));
    let component = known.into_iter().find(|component| Some(component.as_str()) == asked_for).cloned();
    let log = store.learning().lesson_log(at.repo.id, component.as_ref()).await?;
    let checked = match checks {
        true => {
            let checked = store.learning().checked_thresholds(at.repo.id).await?;
            Some(ThresholdCheck { same: checked.stored == checked.recomputed, older_rules: checked.older_rules })
        }
        false => None,
    };
    let lessons = LessonsPage::read(&at, component.as_ref(), &query).await?;
    // A component without its own threshold follows the repository's, so those changes are shown.
    let own = component.as_ref().filter(|component| thresholds.components.contains_key(component));
    let moves = ThresholdMoves::read(&at, own, component.as_ref(), &query).await?;
    let known = ThresholdPageData { settings, thresholds, component, log, adjustments, moves, lessons, checked };
    html(&known.page(&at))
}

struct LessonsPage {
    rows: Vec<LearnedOutcome>,
    kind: Option<LessonKind>,
    pager: Pager,
}

impl LessonsPage {
    async fn read(
        at: &RepoVisit,
        component: Option<&Component>,
        query: &HashMap<String, String>,
    ) -> Result<Self, PageError> {
        let kind: Option<LessonKind> = word(query, "taught").parse().ok();
        let before: Option<(Timestamp, i64)> = place_in(word(query, "lessons"));
        let filter = LessonFilter { component, kind };
        let mut rows = at.console.store.learning().latest_lessons(at.repo.id, filter, before, LATEST + 1).await?;
        let next = cut_page(&mut rows, LATEST, |last| ("lessons", place(last.at, last.id)));
        at.hide_titles(rows.iter_mut().map(|one| (one.number, &mut one.title))).await?;
        let here = format!("{}/learning", repo_path(&at.repo));
        let component = component.map_or("", Component::as_str);
        let taught = kind.map(LessonKind::as_str).unwrap_or_default();
        let kept = [("component", component), ("taught", taught), ("moves", word(query, "moves"))];
        let pager = Pager::new("Pages of outcomes", &here, &kept, before.is_none(), next).in_section("outcomes");
        Ok(Self { rows, kind, pager })
    }
}

struct ThresholdMoves {
    rows: Vec<StoredAdjustment>,
    pager: Pager,
}

impl ThresholdMoves {
    async fn read(
        at: &RepoVisit,
        of: Option<&Component>,
        chosen: Option<&Component>,
        query: &HashMap<String, String>,
    ) -> Result<Self, PageError> {
        let before = number(query, "moves");
        let mut rows =
            at.console.store.learning().threshold_adjustment_pages(at.repo.id, of, before, ADJUSTMENTS + 1).await?;
        let next = cut_page(&mut rows, ADJUSTMENTS, |last| ("moves", last.id.to_string()));
        let here = format!("{}/learning", repo_path(&at.repo));
        let component = chosen.map_or("", Component::as_str);
        let kept = [("component", component), ("taught", word(query, "taught")), ("lessons", word(query, "lessons"))];
        let pager = Pager::new("Pages of moves", &here, &kept, before.is_none(), next).of_section("moves");
        Ok(Self { rows, pager })
    }
}

struct ThresholdPageData {
    settings: ThresholdSettings,
    thresholds: Thresholds,
    component: Option<Component>,
    log: LessonLog,
    /// The latest adjustments of all thresholds, for the chart.
    adjustments: Vec<StoredAdjustment>,
    moves: ThresholdMoves,
    lessons: LessonsPage,
    checked: Option<ThresholdCheck>,
}

impl ThresholdPageData {
    fn page(self, at: &RepoVisit) -> LearningPage {
        let (component, now) = (self.component.as_ref(), at.console.now());
        let state = self.thresholds.governing(component);
        let own_bucket = component.is_none_or(|component| self.thresholds.components.contains_key(component));
        let path = repo_path(&at.repo);
        let here = format!("{path}/learning");
        // A component without its own threshold uses the repository's, and so do its charts.
        let bucket = component.filter(|_| own_bucket);
        let lessons = summed(&self.log.periods, component);
        let inside: Vec<CountedLessons> =
            lessons.iter().filter(|one| bucket.is_none() || one.component.as_ref() == bucket).cloned().collect();
        let wanted = (self.settings.rule == ThresholdRule::PrecisionTarget).then(|| self.settings.wanted.get());
        let curve = self.curve(bucket);
        let levels = reliability(&inside, LEVEL_WIDTH);
        let counts = state.counts;
        let tab = |words, count, kind: Option<LessonKind>| {
            let taught = kind.map(LessonKind::as_str).unwrap_or_default();
            let component = component.map_or("", Component::as_str);
            OutcomeTab {
                words,
                count: thousands(count),
                href: format!("{}#outcomes", link(&here, &[("component", component), ("taught", taught)])),
                is_here: self.lessons.kind == kind,
            }
        };
        let tabs = vec![
            tab("All", counts.total, None),
            tab("Right", counts.confirmed, Some(LessonKind::Confirmed)),
            tab("Wrong", counts.false_positives, Some(LessonKind::FalsePositive)),
            tab("Missed", counts.missed, Some(LessonKind::Missed)),
            tab("Not flagged", counts.true_negatives, Some(LessonKind::TrueNegative)),
        ];
        let check = if self.checked.is_some() { " --check" } else { "" };
        let command = format!("canonry thresholds --repo {}{check}", at.repo.name);
        LearningPage {
            page: at.page("Learning", NavSection::Learning).cli(command),
            chosen: component.map(|component| component.as_str().to_owned()),
            components: self.choices(component),
            own_bucket,
            holds: current_sentence(state.current),
            is_silent: state.current == CurrentThreshold::Silent,
            source: match state.source {
                ThresholdSource::Configured => "The configured threshold applies.",
                ThresholdSource::Learned => "The threshold was learned from outcomes.",
            },
            reason: reason_sentence(&state.reason),
            rests_on: evidence_sentence(state),
            tabs,
            wanted: wanted.map(percent),
            configured: self.settings.configured.get(),
            line: step_line(&StepLine {
                from: self.log.periods.first().map_or(now, |period| period.from),
                points: &curve,
                configured: self.settings.configured.get(),
                wanted,
                moves: &self.moves_of(bucket),
            }),
            line_rows: line_rows(&curve),
            plot: reliability_plot(&ReliabilityPlot {
                levels: &levels,
                configured: self.settings.configured.get(),
                current: state.current.threshold().map(|threshold| threshold.get()),
                wanted,
            }),
            levels: levels
                .iter()
                .map(|level| LevelRow {
                    scores: format!("{} to {}\u{a0}%", level.from, level.to),
                    words: share(level.share, "right"),
                    is_spoken: state.current.threshold().is_some_and(|threshold| level.from >= threshold.get()),
                })
                .collect(),
            outcomes: self.bars(bucket),
            step: step_words(self.log.step),
            periods: self.periods(bucket),
            moves: what_would_move(&self.settings, &lessons, bucket, state),
            adjustments: self.moves.rows.iter().map(|one| adjustment_row(one, now)).collect(),
            move_pager: self.moves.pager.clone(),
            latest: self.lessons.rows.iter().map(|one| latest_row(one, &path, now)).collect(),
            kind: self.lessons.kind.map(LessonKind::as_str).unwrap_or_default().to_owned(),
            lesson_pager: self.lessons.pager.clone(),
            counts_agree: learn_from_counts(&self.settings, lessons.iter().cloned()).governing(bucket) == state,
            check: link(&here, &[("check", "1"), ("component", component.map_or("", Component::as_str))]),
            all: counts.total,
            checked: self.checked,
            can_maintain: at.can_maintain(),
            path,
            here,
        }
    }

    fn choices(&self, chosen: Option<&Component>) -> Vec<ComponentChoice> {
        let mut names: Vec<(&Component, String)> = self
            .thresholds
            .components
            .iter()
            .map(|(name, state)| {
                let threshold = percent_of(state.current.threshold().map(|threshold| threshold.get()));
                (name, format!("{name} ({threshold}, {})", counted(state.counts.total, "outcome")))
            })
            .collect();
        // A component that lost its own threshold is still listed while its changes are shown.
        if let Some(chosen) = chosen.filter(|chosen| !self.thresholds.components.contains_key(chosen)) {
            names.push((chosen, chosen.to_string()));
        }
        names
            .into_iter()
            .map(|(name, words)| ComponentChoice {
                name: name.as_str().to_owned(),
                words,
                is_chosen: Some(name) == chosen,
            })
            .collect()
    }

    fn curve(&self, bucket: Option<&Component>) -> Vec<StepPoint> {
        threshold_curve(&self.settings, &self.log.periods, bucket)
            .into_iter()
            .map(|point| {
                let band = posterior_band(&point.state);
                StepPoint {
                    at: point.at,
                    threshold: point.state.current.threshold().map(|threshold| threshold.get()),
                    share: point.state.alpha / (point.state.alpha + point.state.beta),
                    low: band.low,
                    high: band.high,
                }
            })
            .collect()
    }

    fn moves_of(&self, bucket: Option<&Component>) -> Vec<Timestamp> {
        let of_bucket = |one: &&StoredAdjustment| one.adjusted.component.as_ref() == bucket;
        self.adjustments.iter().filter(of_bucket).map(|one| one.at).collect()
    }

    fn bars(&self, bucket: Option<&Component>) -> Svg {
        let rows: Vec<Bar> = self
            .periods(bucket)
            .into_iter()
            .map(|period| Bar { label: period.when, counts: period.counts.to_vec() })
            .collect();
        bars(&Bars {
            heading: "Outcomes",
            kinds: &["good", "bad", "warn", "mute"],
            bars: &rows,
            empty: "No outcome yet. Bars appear here as people close issues.",
        })
    }

    fn periods(&self, bucket: Option<&Component>) -> Vec<PeriodRow> {
        let format = match self.log.step {
            LogStep::Hour | LogStep::SixHours => "%b %-d, %H:00",
            LogStep::Day | LogStep::Week => "%b %-d",
            LogStep::FourWeeks | LogStep::Quarter | LogStep::Year => "%b %Y",
        };
        self.log
            .periods
            .iter()
            .map(|period| {
                let count = |kind: LessonKind| {
                    let of_kind = |one: &&CountedLessons| {
                        one.kind == kind && (bucket.is_none() || one.component.as_ref() == bucket)
                    };
                    period.lessons.iter().filter(of_kind).map(|one| one.times).sum()
                };
                let kinds =
                    [LessonKind::Confirmed, LessonKind::FalsePositive, LessonKind::Missed, LessonKind::TrueNegative];
                PeriodRow { when: period.from.strftime(format).to_string(), counts: kinds.map(count) }
            })
            .collect()
    }
}

fn adjustment_row(one: &StoredAdjustment, now: Timestamp) -> ThresholdMoveRow {
    ThresholdMoveRow {
        at: when(one.at, now),
        about: one.adjusted.component.as_ref().map_or_else(|| "all issues".to_owned(), ToString::to_string),
        before: percent_of(one.adjusted.previous_threshold.threshold().map(|threshold| threshold.get())),
        after: percent_of(one.adjusted.new_threshold.threshold().map(|threshold| threshold.get())),
        outcomes: one.adjusted.sample_count,
    }
}

/// The lessons of all periods together, each kind and level once.
fn summed(periods: &[LessonPeriod], component: Option<&Component>) -> Vec<CountedLessons> {
    let mut counts: BTreeMap<(LessonKind, Option<u8>, bool), u64> = BTreeMap::new();
    for one in periods.iter().flat_map(|period| &period.lessons) {
        *counts.entry((one.kind, one.level, one.component.is_some())).or_default() += one.times;
    }
    let lessons = counts.into_iter().map(|((kind, level, inside), times)| CountedLessons {
        kind,
        level,
        component: component.filter(|_| inside).cloned(),
        times,
    });
    lessons.collect()
}

fn line_rows(curve: &[StepPoint]) -> Vec<LineRow> {
    let row = |point: &StepPoint| LineRow {
        until: point.at.strftime("%Y-%m-%d %H:%M").to_string(),
        threshold: percent_of(point.threshold),
        right: format!("{} (95\u{a0}% CI {})", percent(point.share), interval(point.low, point.high)),
    };
    curve.iter().rev().map(row).collect()
}

/// `85 %`, or that no comments are posted.
fn percent_of(threshold: Option<u8>) -> String {
    threshold.map_or_else(|| "no comments".to_owned(), |threshold| format!("{threshold}\u{a0}%"))
}
