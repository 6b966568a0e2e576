//! What maintainers do with plans: make one, approve or exclude rows, apply it, undo it.

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue};
use axum::response::IntoResponse as _;
use canonry_domain::{ApplyForecast, ItemNumber, ItemType, ONLY_EXCLUDE, Probability, TargetPolicy, UndoReason};
use canonry_server::{
    ApplyOrder, PlanOrder, UndoOrder, is_being_applied, may_row_approval_change_now, queue_apply, queue_plan,
    queue_undo,
};
use canonry_store::PlanSummary;
use canonry_triage::{age_of_plan, forecast_apply, has_close_begun, set_rows_approved};

use crate::admin::repo_settings::settings_of;
use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::form::{Form, PathFields};
use crate::layout::formatting::counted;
use crate::layout::page::{NavSection, back_to, html, repo_path};
use crate::plans::plan_page::{PlanBodyPart, PlanPageRequest, plan_of, plan_path, refused, refused_at, review};
use crate::plans::progress::progress_view;
use crate::plans::selection::{PlanSelection, read_item, write_item};
use crate::plans::state::{PlanBanner, WORKED_ON, apply_phrase, begun_in_vain, undo_phrase, why_not_applied};
use crate::sign_in::visit::{MaintainerOf, RepoVisit};

/// The most characters of a comment on an item.
const LONGEST_NOTE: usize = 2_000;

pub(crate) async fn make(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let item_type: Option<ItemType> = read(&form, "type")?;
    let policy: Option<TargetPolicy> = read(&form, "policy")?;
    let min_close = match form.one("min_close") {
        Some(text) => {
            let percent = text.parse::<f64>().ok().and_then(|percent| Probability::new(percent / 100.0).ok());
            Some(percent.ok_or_else(|| PageError::BadForm(format!("“{text}” is not a percentage from 0 to 100")))?)
        }
        None => None,
    };
    note(&at, "plan", "a new plan").await?;
    let order = PlanOrder { item_type, min_close, policy, by: at.visit.login().cloned() };
    queue_plan(&at.console.store, &at.repo, &order, at.console.now()).await?;
    at.console.wake_worker.notify_one();
    Ok(back_to(
        &format!("{}/plans", repo_path(&at.repo)),
        "Making a plan. It keeps exclusions, and approvals of pairs that did not change.",
    ))
}

/// Approves, excludes or resets rows: one, many, or all that are undecided.
pub(crate) async fn decide_rows(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let selection = PlanSelection::of(|name| form.one(name));
    let word = form.needed("word")?;
    let (approved, done) = match word {
        "approve" => (Some(true), "Approved"),
        "exclude" => (Some(false), "Excluded"),
        "clear" => (None, "Reset"),
        other => {
            return Err(PageError::BadForm(format!("“{other}” is not an action; choose approve, exclude or reset")));
        }
    };
    let items = items_of(&form)?;
    if !may_row_approval_change_now(&at.console.store, &at.repo, plan.run.id, approved, at.console.now()).await? {
        // The row stays selected: the next key is meant for it.
        let row = if let [row] = items[..] { Some(row) } else { None };
        return refused_at(&at, &plan, selection, row, format!("Nothing was changed. {ONLY_EXCLUDE}")).await;
    }
    let (by, now, id) = (at.visit.login(), at.console.now(), plan.run.id);
    let noted = if form.one("all").is_some() {
        note(&at, word, &format!("all rows of plan {id}")).await?;
        at.console.store.plans().set_all_approved(id, None, approved, by, now).await?
    } else {
        if items.is_empty() {
            return refused(&at, &plan, selection, "Select at least one row first.").await;
        }
        note(&at, word, &format!("{} of plan {id}", named(&items))).await?;
        set_rows_approved(&at.console.store, id, items.iter().copied(), approved, by, now).await?
    };
    let words = match (noted, items.as_slice()) {
        (0, _) => "Nothing was changed: rows that are done or left open cannot be approved or excluded.".to_owned(),
        (1, [(_, number)]) => format!("{done} #{number}."),
        (noted, _) => format!("{done} {}.", counted(noted as u64, "row")),
    };
    let words = match approved {
        Some(false) if noted > 0 && may_be_late(&at, &plan, &items).await? => {
            format!("{words} A close had already begun. If GitHub has it, undo it here.")
        }
        _ => words,
    };
    // The row may have left the filtered list; the next one is found from its position.
    let row = match (form.one("move"), items.as_slice()) {
        (Some(_), [row]) => next_row(&at.console, &plan, &selection, *row).await?.or(Some(*row)),
        _ => None,
    };
    let to = plan_path(&at, id);
    let to =
        row.map_or_else(|| to.clone(), |(item_type, number)| format!("{to}/rows/{}", write_item(item_type, number)));
    let to = selection.link(&to);
    if !at.visit.is_htmx {
        return Ok(back_to(&to, &words));
    }
    let plan = plan_of(&at, &path).await?;
    let said = Some(PlanBanner { class: if noted == 0 { "warn" } else { "good" }, words });
    let review = review(&at, &plan, PlanPageRequest { selection, row, said, focus: true }).await?;
    let mut answer = html(&PlanBodyPart { page: at.page("Plan", NavSection::Plans), review })?;
    if let Ok(to) = HeaderValue::try_from(to) {
        answer.headers_mut().insert(HeaderName::from_static("hx-replace-url"), to);
    }
    Ok(answer.into_response())
}

pub(crate) async fn apply(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let selection = PlanSelection::of(|name| form.one(name));
    // Never guessed: a person who meant the approved rows must not close the others.
    let approved_only = match form.one("approved_only") {
        Some("0") => false,
        Some("1") => true,
        _ => {
            let words = "Nothing was applied: choose what to close, the approved rows or all that are not excluded.";
            return refused(&at, &plan, selection, words).await;
        }
    };
    let settings = settings_of(&at.console, at.repo.id).await?;
    let age = age_of_plan(&at.console.store, &plan.run, at.console.now()).await?;
    let progress = progress_view(&at, &plan).await?;
    let why_not = why_not_applied(&at, &plan, &settings, &age, progress.as_ref()).await?;
    if let Some(words) = why_not {
        return refused(&at, &plan, selection, format!("Nothing was applied: {words}.")).await;
    }
    let most = settings.config.close.max_per_day;
    let forecast = forecast_apply(&at.console.store, &at.repo, plan.run.id, most, at.console.now()).await?;
    let ApplyForecast { closes: count, kept_back } = if approved_only { forecast.approved_only } else { forecast.all };
    if count == 0 {
        let words = if approved_only {
            "Nothing was applied: no row is approved. Approve the rows to close."
        } else {
            "Nothing was applied: the daily limit without approval is reached. Approve rows to close them now."
        };
        return refused(&at, &plan, selection, words).await;
    }
    let phrase = apply_phrase(&at, count);
    if form.one("confirm") != Some(phrase.as_str()) {
        let words = format!("Nothing was applied: to close {}, type “{phrase}”.", counted(count, "item"));
        return refused(&at, &plan, selection, words).await;
    }
    let id = plan.run.id;
    let of = if approved_only { "approved rows of plan" } else { "plan" };
    note(&at, "apply", &format!("{of} {id}: {}", counted(count, "row"))).await?;
    let order = ApplyOrder { plan: id, approved_only, only_takes_back: false, by: at.visit.login().cloned() };
    if queue_apply(&at.console.store, &at.repo, &order, at.console.now()).await?.is_none() {
        return refused(&at, &plan, selection, format!("Nothing was applied: {WORKED_ON}.")).await;
    }
    at.console.wake_worker.notify_one();
    let more = if kept_back > 0 { format!(" {kept_back} wait for the daily limit.") } else { String::new() };
    let words = format!("Closing {}. You can leave this page.{more}", counted(count, "item"));
    Ok(back_to(&plan_path(&at, id), &words))
}

/// Stops an apply before its next row. Closed items stay closed until they are undone.
pub(crate) async fn stop(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let id = plan.run.id;
    if !is_being_applied(&at.console.store, &at.repo, id).await? {
        let selection = PlanSelection::of(|name| form.one(name));
        return refused(&at, &plan, selection, "Nothing was stopped: no apply is running.").await;
    }
    note(&at, "stop", &format!("the apply of plan {id}")).await?;
    at.console.store.plans().stop_apply(id, at.visit.login(), at.console.now()).await?;
    at.console.wake_worker.notify_one();
    Ok(back_to(&plan_path(&at, id), "Stopping before the next row. Nothing more is closed."))
}

/// Cancels closes that began and that no apply will finish. Their comments, if any, are corrected.
pub(crate) async fn withdraw(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let selection = PlanSelection::of(|name| form.one(name));
    let age = age_of_plan(&at.console.store, &plan.run, at.console.now()).await?;
    let progress = progress_view(&at, &plan).await?;
    let begun = begun_in_vain(&at, &plan, &age, progress.as_ref()).await?;
    if begun == 0 {
        let words = "Nothing was cancelled: no close of this plan is unfinished.";
        return refused(&at, &plan, selection, words).await;
    }
    let id = plan.run.id;
    note(&at, "withdraw", &format!("{} of plan {id}", counted(begun as u64, "begun close"))).await?;
    // An apply that is refused, or that finds its rows excluded, cancels the closes it had begun. It closes nothing:
    // an old plan never becomes applicable again, and while this order is queued no exclusion can be removed.
    let order = ApplyOrder { plan: id, approved_only: true, only_takes_back: true, by: at.visit.login().cloned() };
    if queue_apply(&at.console.store, &at.repo, &order, at.console.now()).await?.is_none() {
        return refused(&at, &plan, selection, format!("Nothing was cancelled: {WORKED_ON}.")).await;
    }
    at.console.wake_worker.notify_one();
    Ok(back_to(&plan_path(&at, id), "Cancelling unfinished closes. Nothing more is closed."))
}

/// Reopens an item, or everything that the plan closed.
pub(crate) async fn undo(MaintainerOf(at): MaintainerOf, Path(path): PathFields, form: Form) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let selection = PlanSelection::of(|name| form.one(name));
    let item = match form.one("item") {
        Some(text) => Some(read_item(text).ok_or_else(|| unknown_item(text))?),
        None => None,
    };
    let reason: UndoReason = read(&form, "reason")?.ok_or_else(|| PageError::BadForm("choose a reason".to_owned()))?;
    let said = form.one("note").map(str::to_owned);
    if said.as_ref().is_some_and(|said| said.chars().count() > LONGEST_NOTE) {
        return Err(PageError::BadForm(format!("a comment has at most {LONGEST_NOTE} characters")));
    }
    let phrase = match item {
        Some((_, number)) => format!("reopen #{number}"),
        None => undo_phrase(&at, plan.totals.can_be_undone()),
    };
    if plan.totals.can_be_undone() == 0 {
        let words = "Nothing was undone: everything that this plan closed is open again.";
        return refused(&at, &plan, selection, words).await;
    }
    if form.one("confirm") != Some(phrase.as_str()) {
        return refused(&at, &plan, selection, format!("Nothing was undone: to confirm, type “{phrase}”.")).await;
    }
    let id = plan.run.id;
    let what = item.map_or_else(|| "everything".to_owned(), |item| named(&[item]));
    note(&at, "undo", &format!("{what} of plan {id}: {reason}")).await?;
    let order = UndoOrder { plan: id, item, reason, note: said, by: at.visit.login().cloned() };
    if queue_undo(&at.console.store, &at.repo, &order, at.console.now()).await?.is_none() {
        return refused(&at, &plan, selection, format!("Nothing was undone: {WORKED_ON}.")).await;
    }
    at.console.wake_worker.notify_one();
    Ok(back_to(&plan_path(&at, id), "Undoing. You can leave this page."))
}

/// Whether a row was excluded after its close had begun: the checks before each write cancel the close unless GitHub
/// already has it.
async fn may_be_late(at: &RepoVisit, plan: &PlanSummary, items: &[(ItemType, ItemNumber)]) -> Result<bool, PageError> {
    if items.is_empty() {
        return Ok(is_being_applied(&at.console.store, &at.repo, plan.run.id).await?);
    }
    for (item_type, number) in items {
        if has_close_begun(&at.console.store, plan.run.id, *item_type, *number).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn next_row(
    console: &Console,
    plan: &PlanSummary,
    selection: &PlanSelection,
    row: (ItemType, ItemNumber),
) -> Result<Option<(ItemType, ItemNumber)>, PageError> {
    let rows = console.store.plans().rows_page(plan, selection.filter(), Some(row), 1).await?;
    Ok(rows.first().map(|next| (next.row.item_type, next.row.number)))
}

/// Records an action before it is done.
async fn note(at: &RepoVisit, action: &str, subject: &str) -> Result<(), PageError> {
    let action = format!("plan: {}", if action == "clear" { "reset" } else { action });
    at.record(&action, subject).await
}

fn items_of(form: &Form) -> Result<Vec<(ItemType, ItemNumber)>, PageError> {
    form.all("item").into_iter().map(|text| read_item(text).ok_or_else(|| unknown_item(text))).collect()
}

fn unknown_item(text: &str) -> PageError {
    PageError::BadForm(format!("“{}” is not an item of this plan", text.chars().take(40).collect::<String>()))
}

/// Items in a few words, for the activity page.
fn named(items: &[(ItemType, ItemNumber)]) -> String {
    match items {
        [(item_type, number)] => format!("{} #{number}", item_type.in_words()),
        many => counted(many.len() as u64, "row"),
    }
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(form: &Form, name: &str) -> Result<Option<T>, PageError> {
    form.one(name).map(|text| text.parse().map_err(|error: T::Err| PageError::BadForm(error.to_string()))).transpose()
}
