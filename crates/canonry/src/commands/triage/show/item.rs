//! `show`: all that is known about one item.

use anyhow::{Result, bail};
use canonry_domain::{Item, ItemNumber, ItemType, ordered_scores, render_intent_card};
use canonry_retrieval::ranked_by;
use canonry_store::{CandidateSet, CardOutcome, Repo, Store, StoredCard};
use canonry_triage::ItemReport;
use serde_json::json;

use crate::commands::triage::show::grace::{brakes_in_words, graces_in_words};
use crate::commands::triage::show::judgement::{
    closes_in_words, cluster_in_words, decisions_in_words, triage_in_words,
};
use crate::commands::triage::show::learning::{events_in_words, outcome_in_words, writes_in_words};
use crate::output::printable::{block, one_line};
use crate::output::report::Report;
use crate::output::tables::table;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show all that is known about one issue or pull request.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  canonry show --repo octo/cat --number 12\n  canonry show --repo octo/cat --type pr --number 40 --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Its type: issue or pr [default: whichever has that number]
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<ItemType>,
    /// Its number
    #[arg(long, value_name = "NUMBER")]
    number: ItemNumber,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let item = find(&store, &repo, args.item_type, args.number).await?;
    let report = ItemReport::load(&store, &repo, item).await?;
    let history = &report.history;
    let text = item_in_words(&repo, &history.item, &report.intent_cards, &history.candidate_sets)
        + &decisions_in_words(&history.decisions)
        + &cluster_in_words(report.cluster.as_ref())
        + &triage_in_words(&history.triage_records, &history.triage_actions)
        + &graces_in_words(&history.graces)
        + &closes_in_words(&report.closes)
        + &brakes_in_words(&repo.name, &report.brakes)
        + &writes_in_words(&history.writes)
        + &events_in_words(&history.outcome_events)
        + &outcome_in_words(history.outcome.as_ref());
    let documents = report.documents().into_iter();
    Ok(documents.fold(Report::new(json!({}), text).of(&repo.name), |report, (key, value)| report.with(key, value)))
}

/// GitHub numbers issues and pull requests together, so that the type may be left out; files of
/// other trackers may use a number twice.
pub(crate) async fn find(store: &Store, repo: &Repo, item_type: Option<ItemType>, number: ItemNumber) -> Result<Item> {
    let types = ItemType::one_or_all(item_type);
    let mut found = Vec::new();
    for item_type in types {
        found.extend(store.corpus().item(repo.id, item_type, number).await?);
    }
    let looked_for = item_type.map_or("item", ItemType::in_words);
    match (found.len(), found.pop()) {
        (1, Some(item)) => Ok(item),
        (0, _) => bail!(
            "{} has no {looked_for} #{number}; check the number and the type, or bring it in with `canonry import` or `canonry sync`",
            repo.name
        ),
        _ => bail!("{} has an issue and a pull request #{number}; say which one with --type", repo.name),
    }
}

fn item_in_words(repo: &Repo, item: &Item, cards: &[StoredCard], sets: &[CandidateSet]) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!(
        "{} {} #{}\n{bold}{}{bold:#}\n\n",
        repo.name,
        item.item_type.in_words(),
        item.number,
        one_line(&item.title)
    );
    for (name, value) in facts(item) {
        text.push_str(&format!("  {name:<13}{value}\n"));
    }
    text.push('\n');
    if item.body.trim().is_empty() {
        text.push_str("  (no text)\n");
    }
    for line in block(item.body.trim()).lines() {
        text.push_str(format!("  {line}").trim_end());
        text.push('\n');
    }
    for card in cards {
        text.push_str(&card_in_words(card));
    }
    for set in sets {
        text.push_str(&neighbours(set));
    }
    text
}

fn facts(item: &Item) -> Vec<(&'static str, String)> {
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { one_line(&names.join(", ")) };
    let when = |moment: jiff::Timestamp| moment.to_string();
    let mut facts = vec![("state", state(item))];
    if let Some(target) = item.duplicate_of {
        facts.push(("duplicate of", format!("#{target}")));
    }
    facts.push(("author", item.author.as_ref().map_or_else(|| "unknown".to_owned(), |login| one_line(login.as_str()))));
    facts.push((
        "assigned to",
        item.assignees
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), |logins| names(logins.iter().map(|login| login.as_str()).collect())),
    ));
    facts.push(("labels", names(item.labels.iter().map(String::as_str).collect())));
    facts.push(("comments", (item.comments + item.review_comments).to_string()));
    facts.extend(item.created_at.map(|moment| ("opened", when(moment))));
    facts.extend(item.closed_at.map(|moment| ("closed", when(moment))));
    facts.extend(item.updated_at.map(|moment| ("changed", when(moment))));
    facts.extend(item.url.as_ref().map(|url| ("address", one_line(url))));
    if let Some(changes) = &item.changes {
        facts.push(("files", names(changes.files.iter().map(String::as_str).collect())));
    }
    facts.push(("text", format!("version {}, {}", item.content_version.get(), item.content_hash.as_str())));
    facts
}

fn state(item: &Item) -> String {
    let mut state = item.state.to_string();
    if item.merged {
        state.push_str(", merged");
    }
    if item.draft {
        state.push_str(", a draft");
    }
    if let Some(reason) = item.state_reason {
        state.push_str(&format!(" ({})", reason.as_str().replace('_', " ")));
    }
    if let Some(gone) = item.gone {
        state.push_str(&format!("; no longer in the repository: {gone}"));
    }
    state
}

fn card_in_words(card: &StoredCard) -> String {
    let maker = format!("{}, {}", card.maker.extractor, one_line(&card.maker.model));
    match &card.outcome {
        CardOutcome::Failed(reason) => format!("\nNo intent card ({maker}): {}\n", one_line(reason)),
        CardOutcome::Ready(ready) => {
            let age = if card.fresh { "of the present text" } else { "of an older text" };
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

fn neighbours(set: &CandidateSet) -> String {
    let mut text = format!(
        "\nNearest by {} text at version {} ({}, {}):\n",
        set.representation.as_str(),
        set.content_version.get(),
        set.status.as_str(),
        one_line(&set.model)
    );
    if set.members.is_empty() {
        text.push_str("  none\n");
        return text;
    }
    let mut members = table(["rank", "number", "score", "similarity", "made of"]);
    for ((rank, member), score) in (1..).zip(&set.members).zip(scores(set)) {
        // What each feature added to the order has a line of its own.
        let said = member.parts.iter().filter(|(part, _)| !part.starts_with("by_"));
        let parts: Vec<String> = said.map(|(part, value)| format!("{part} {value:.3}")).collect();
        let [score, similarity] = [score, member.score].map(|value| format!("{value:.4}"));
        members.add_row([format!("{rank}"), format!("#{}", member.number), score, similarity, parts.join(", ")]);
    }
    text.push_str(&format!("{}\n", members.trim_fmt()));
    for member in &set.members {
        if let Some(line) = ranked_by(member.parts.iter().map(|(part, value)| (part.as_str(), *value))) {
            text.push_str(&format!("  #{} ranked by: {line}\n", member.number));
        }
    }
    text
}
