//! `show`: the verdict on one item, the reasons, and everything that is known about it.

use anyhow::{Result, bail};
use canonry_console::item_verdict;
use canonry_domain::{Item, ItemNumber, ItemState, ItemType, StateReason, ordered_scores, render_intent_card};
use canonry_retrieval::ranked_by;
use canonry_store::{CandidateSet, CardOutcome, Repo, Representation, SetStatus, Store, StoredCard};
use canonry_triage::{ItemReport, ItemSummary};
use serde_json::json;

use crate::commands::triage::show::grace::{brakes_in_words, graces_in_words};
use crate::commands::triage::show::judgement::{
    closes_in_words, cluster_in_words, decisions_in_words, triage_in_words,
};
use crate::commands::triage::show::learning::{events_in_words, outcome_in_words, writes_in_words};
use crate::options::item_number::ItemOption;
use crate::output::numbers::{percent, thousands};
use crate::output::printable::{block, one_line};
use crate::output::report::Report;
use crate::output::tables::table;
use crate::output::terminal::paragraph;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show the verdict on an issue or pull request, and why.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show the verdict on an issue or pull request, and why.\n\n\
        First the verdict, then what it is based on: the judge's answers, what Canonry did, what people did. Then the \
        nearest items, the details and the text. --verbose adds exact times, hashes and what each score is made of.",
    before_help = "Example:\n  canonry show 12\n  canonry show 40 --repo octo/cat --type pr --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    item: ItemOption,
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let item = find(&store, &repo, args.item.item_type, args.item.number()).await?;
    let report = ItemReport::load(&store, &repo, item).await?;
    let history = &report.history;
    let verdict = item_verdict(&store, &repo, &report, context.now).await?;
    let text = heading(&repo, &history.item, &verdict, context)
        + &decisions_in_words(&history.decisions, context)
        + &triage_in_words(&history.triage_records, &history.triage_actions, context)
        + &cluster_in_words(report.cluster.as_ref())
        + &graces_in_words(&history.graces, context)
        + &closes_in_words(&report.closes, context)
        + &brakes_in_words(&repo.name, &report.brakes, context)
        + &writes_in_words(&history.writes, context)
        + &events_in_words(&history.outcome_events, context)
        + &outcome_in_words(history.outcome.as_ref(), context)
        + &history.candidate_sets.iter().map(|set| neighbours(set, context)).collect::<String>()
        + &details(&history.item, context)
        + &report.intent_cards.iter().map(card_in_words).collect::<String>();
    let documents = report.documents().into_iter();
    Ok(documents.fold(Report::new(json!({}), text).of(&repo.name), |report, (key, value)| report.with(key, value)))
}

/// Finds an item by its number. The type is optional, because GitHub numbers issues and pull requests together. Files
/// of other trackers may use a number twice; then the type is required.
pub(crate) async fn find(store: &Store, repo: &Repo, item_type: Option<ItemType>, number: ItemNumber) -> Result<Item> {
    let types = ItemType::one_or_all(item_type);
    let mut found = Vec::new();
    for item_type in types {
        found.extend(store.corpus().item(repo.id, item_type, number).await?);
    }
    let kind = item_type.map_or("item", ItemType::in_words);
    match (found.len(), found.pop()) {
        (1, Some(item)) => Ok(item),
        (0, _) => bail!(
            "{} has no {kind} #{number}; check the number, or fetch it with `canonry sync` or `canonry import`",
            repo.name
        ),
        _ => bail!("{} has an issue and a pull request #{number}; add --type issue or --type pr", repo.name),
    }
}

/// Shows the number, title and state of the item, and the verdict.
fn heading(repo: &Repo, item: &Item, verdict: &str, context: &Context) -> String {
    let bold = anstyle::Style::new().bold();
    let title = paragraph(0, &one_line(&item.title));
    let title: String = title.lines().map(|line| format!("{bold}{line}{bold:#}\n")).collect();
    let verdict = paragraph(0, &format!("Verdict: {verdict}"));
    let verdict = verdict.replacen("Verdict:", &format!("{bold}Verdict:{bold:#}"), 1);
    let kind = item.item_type.in_words();
    format!(
        "{} {kind} #{}\n{title}{}\n{verdict}",
        repo.name,
        item.number,
        paragraph(0, &state(&ItemSummary::from(item), context))
    )
}

/// Describes the state of an item, such as `Closed as a duplicate of #1, …`.
pub(crate) fn state(item: &ItemSummary, context: &Context) -> String {
    let mut state = match (item.state, item.state_reason) {
        _ if item.merged => "Merged".to_owned(),
        (ItemState::Open, _) if item.draft => "Open, a draft".to_owned(),
        (ItemState::Open, _) => "Open".to_owned(),
        (ItemState::Closed, Some(StateReason::Duplicate)) => "Closed as a duplicate".to_owned(),
        (ItemState::Closed, Some(reason)) => format!("Closed as {}", reason.as_str().replace('_', " ")),
        (ItemState::Closed, None) => "Closed".to_owned(),
    };
    if let Some(target) = item.duplicate_of {
        state += &match item.state_reason {
            Some(StateReason::Duplicate) => format!(" of #{target}"),
            _ => format!(", a duplicate of #{target}"),
        };
    }
    let at = match item.state {
        ItemState::Open => item.created_at.map(|at| format!(", opened {}", context.when(at))),
        ItemState::Closed => item.closed_at.map(|at| format!(", {}", context.when(at))),
    };
    state += &at.unwrap_or_default();
    if let Some(gone) = item.gone {
        state += &format!("; no longer in the repository ({gone})");
    }
    state
}

/// Shows the facts about an item, then its text.
fn details(item: &Item, context: &Context) -> String {
    let mut text = "\nDetails:\n".to_owned();
    for (name, value) in facts(item, context) {
        text.push_str(&format!("  {name:<11}{value}\n"));
    }
    text.push('\n');
    if item.body.trim().is_empty() {
        text.push_str("  (no text)\n");
    }
    for line in block(item.body.trim()).lines() {
        text.push_str(format!("  {line}").trim_end());
        text.push('\n');
    }
    text
}

fn facts(item: &Item, context: &Context) -> Vec<(&'static str, String)> {
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { one_line(&names.join(", ")) };
    let unknown = || "unknown".to_owned();
    let assignees = item.assignees.as_ref().map(|logins| names(logins.iter().map(|login| login.as_str()).collect()));
    let mut facts = vec![
        ("author", item.author.as_ref().map_or_else(unknown, |login| one_line(login.as_str()))),
        ("assignees", assignees.unwrap_or_else(unknown)),
        ("labels", names(item.labels.iter().map(String::as_str).collect())),
        ("comments", thousands(u64::from(item.comments) + u64::from(item.review_comments))),
    ];
    facts.extend(item.created_at.map(|moment| ("opened", context.when(moment))));
    facts.extend(item.closed_at.map(|moment| ("closed", context.when(moment))));
    facts.extend(item.updated_at.map(|moment| ("updated", context.when(moment))));
    facts.extend(item.url.as_ref().map(|url| ("url", one_line(url))));
    if let Some(changes) = &item.changes {
        facts.push(("files", names(changes.files.iter().map(String::as_str).collect())));
    }
    if context.verbose {
        facts.push(("text", format!("version {}, {}", item.content_version.get(), item.content_hash.as_str())));
    }
    facts
}

fn card_in_words(card: &StoredCard) -> String {
    let maker = format!("{}, {}", card.maker.extractor, one_line(&card.maker.model));
    match &card.outcome {
        CardOutcome::Failed(reason) => format!("\nNo intent card ({maker}): {}\n", one_line(reason)),
        CardOutcome::Ready(ready) => {
            let age = if card.fresh { "of the current text" } else { "of an older text" };
            let mut text = format!("\nIntent card ({maker}, {age}):\n");
            for line in block(&render_intent_card(ready)).lines() {
                text.push_str(format!("  {line}").trim_end());
                text.push('\n');
            }
            text
        }
    }
}

fn scores(set: &CandidateSet) -> Vec<f64> {
    ordered_scores(&set.members.iter().map(|member| member.score).collect::<Vec<_>>())
}

/// Shows the nearest items; with `--verbose`, also the parts of each score.
fn neighbours(set: &CandidateSet, context: &Context) -> String {
    let mut text = match context.verbose {
        true => format!(
            "\nNearest by {} text at version {} ({}, {}):\n",
            set.representation.as_str(),
            set.content_version.get(),
            set.status.as_str(),
            one_line(&set.model)
        ),
        false => {
            let by = match set.representation {
                Representation::Raw => "title and body",
                Representation::Intent => "intent card",
            };
            let age = if set.status == SetStatus::Stale { " (outdated)" } else { "" };
            format!("\nMost similar items, by {by}{age}:\n")
        }
    };
    if set.members.is_empty() {
        text.push_str("  none\n");
        return text;
    }
    if !context.verbose {
        let nearest = set.members.iter().zip(scores(set));
        let nearest: Vec<String> =
            nearest.map(|(member, score)| format!("#{} {}", member.number, percent(score))).collect();
        return text + &format!("  {}\n", nearest.join(", "));
    }
    let mut members = table(["rank", "number", "score", "similarity", "made of"]);
    for ((rank, member), score) in (1..).zip(&set.members).zip(scores(set)) {
        // A separate line shows what each feature added to the order.
        let parts = member.parts.iter().filter(|(part, _)| !part.starts_with("by_"));
        let parts: Vec<String> = parts.map(|(part, value)| format!("{part} {value:.3}")).collect();
        let [score, similarity] = [score, member.score].map(|value| format!("{value:.4}"));
        members.add_row([format!("{rank}"), format!("#{}", member.number), score, similarity, parts.join(", ")]);
    }
    text.push_str(&format!("{members}\n"));
    for member in &set.members {
        if let Some(line) = ranked_by(member.parts.iter().map(|(part, value)| (part.as_str(), *value))) {
            text.push_str(&format!("  #{} ranked by: {line}\n", member.number));
        }
    }
    text
}
