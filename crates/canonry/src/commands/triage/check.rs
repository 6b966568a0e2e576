//! `check`: is a draft already reported, in progress or fixed?

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_domain::{
    ChangeText, DraftAnswer, Item, ItemType, Login, Probability, RepoName, Similarity, answer_by_commit,
    issues_fixed_by_commit,
};
use canonry_models::Embedder;
use canonry_store::Store;
use canonry_triage::{
    CHANGES_PER_SYNC, CheckOptions, Detectors, Draft, DraftReport, DraftRequest, EmbedOptions, EmbedSource, FixCommit,
    FixIndexes, Judge, SimilarItem, SyncOptions, check_draft, check_thresholds, embed, sync,
};
use jiff::Timestamp;
use serde_json::Value;
use url::Url;

use crate::commands::start::sync::{fetch_changes, stopped};
use crate::commands::triage::candidates::score;
use crate::commands::triage::judge::probability;
use crate::commands::triage::show::item::state;
use crate::options::retrieval::{EmbedderOptions, ModeOption, snapshots_of};
use crate::output::exit::{Exit, WrongUsage};
use crate::output::numbers::percent;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::asked_service::ask_service;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RepoOption;
use crate::session::local_clone::change_in;
use crate::session::remote_history::RemoteHistory;

/// Check whether a draft issue or change is already known.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("draft").required(true).args(["title", "file", "diff", "stdin"]),
    long_about = "Check whether a draft issue or change is already known: reported, in progress, fixed or new.\n\n\
        The draft is compared with the issues in the database, or a change with the pull requests, open and closed. \
        The draft is not stored, and no language model is asked. Only a remote embedder, if you name one, or the service that you name receives it.\n\n\
        Exit status: 0 new, 10 reported, 11 in progress, 12 fixed, 13 possible regression.",
    before_help = "Example:\n  canonry check --title 'Crash when saving' --body 'panic at save.rs:88'\n  \
        canonry check --file draft.md\n  canonry check --diff main..HEAD\n  canonry check --file draft.md --server https://canonry.example.org --repo octo/cat\n  gh issue view 12 --json title,body -q '.title,.body' | canonry check -"
)]
pub(crate) struct Args {
    /// The draft's title
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    title: Option<String>,
    /// The draft's body
    #[arg(long, value_name = "TEXT", requires = "title")]
    body: Option<String>,
    /// A file with the draft: the title in the first line, the body below
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The change between two commits of the clone in this folder, compared with pull requests
    #[arg(long, value_name = "BASE..HEAD")]
    diff: Option<String>,
    /// Read the draft from standard input
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true)]
    stdin: Option<String>,
    /// Who files the draft: an item of theirs with the same text is the draft itself, and their own pull requests are no match
    #[arg(long, value_name = "LOGIN")]
    author: Option<Login>,
    /// Fetch what is new from GitHub first; needs GITHUB_TOKEN
    #[arg(long)]
    sync: bool,
    /// Ask a running service instead of the local database; needs GITHUB_TOKEN or CANONRY_ADMIN_TOKEN
    #[arg(long, value_name = "URL", conflicts_with_all = ["sync", "min_score", "min_confidence", "retrieval", "embedder"])]
    server: Option<Url>,
    /// How many similar items are shown at most
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=50))]
    k: u16,
    /// The lowest score of an item that is judged, 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "0.75", value_parser = score)]
    min_score: Similarity,
    /// The lowest confidence for a match, 0 to 1
    #[arg(long, value_name = "CONFIDENCE", default_value = "0.85", value_parser = probability)]
    min_confidence: Probability,
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Bytes of a draft: sixteen times the longest body that GitHub accepts.
const DRAFT_LIMIT: u64 = 1 << 20;

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let draft = args.draft().await?;
    let kind = if draft.changes.is_some() { "pull request" } else { "issue" };
    let (repo, checked) = match &args.server {
        Some(server) => {
            let repo = args.repo.name_to_ask().await?;
            let checked = ask_service(server, &repo, &DraftRequest { draft, k: args.k }).await?;
            (repo, checked)
        }
        None => check_here(&args, &draft, context).await?,
    };
    // "New" would be a guess: scripts file what is new.
    if checked.stats.compared == 0 && checked.synced_at.is_none() {
        bail!("no {kind} of {repo} is known yet; run `canonry sync --repo {repo}` first");
    }
    let mut report =
        Report::new(checked.stats, text(&checked, kind, context)).of(&repo).ending(exit_of(checked.answer));
    if let Value::Object(parts) = serde_json::to_value(&checked)? {
        for (key, part) in parts.into_iter().filter(|(key, _)| key != "stats") {
            report = report.with(&key, part);
        }
    }
    Ok(report)
}

/// Compares the draft with the items in the database.
async fn check_here(args: &Args, draft: &Draft, context: &Context) -> Result<(RepoName, DraftReport)> {
    let store =
        if args.sync { args.database.open_known(context).await? } else { args.database.open_existing().await? };
    let embedder = args.embedder.embedder(&store).await?;
    if args.sync {
        fetch_new(args, &store, &*embedder, context).await?;
    }
    let repo = args.repo.find(&store).await?;
    let snapshots = snapshots_of(&args.database)?;
    let with = Detectors {
        github: None,
        embedder: &*embedder,
        extractor: None,
        judge: Judge::Local,
        snapshots: snapshots.as_deref(),
        indexes: None,
    };
    let options = CheckOptions {
        k: usize::from(args.k),
        thresholds: check_thresholds(args.min_score, args.min_confidence),
        mode: args.mode.mode,
    };
    let mut checked = check_draft(&store, &repo, draft, with, &options, context.now).await?;
    FixIndexes::default().explain(&store, &repo, &mut checked, context.now).await?;
    let synced_at = store.corpus().sync_progress(repo.id).await?.finished_at;
    let default_branch = store.repos().default_branch(repo.id).await?;
    store.disconnect().await;
    let mut report = DraftReport::new(&checked, synced_at);
    let history = match &checked.report {
        Some(_) => RemoteHistory::of(&repo.name, default_branch.as_deref()).await,
        None => None,
    };
    if let Some((history, item)) = history.as_ref().zip(checked.report.as_ref()) {
        report = explained_by(history, &repo.name, report, item, context.now).await;
    }
    Ok((repo.name.clone(), report.by_version(draft, &repo.name)))
}

/// The same answer with what the clone's history says about the fix.
async fn explained_by(
    history: &RemoteHistory,
    repo: &RepoName,
    mut report: DraftReport,
    item: &Item,
    now: Timestamp,
) -> DraftReport {
    if let Some(fix) = report.fix.as_mut().filter(|fix| fix.merged) {
        let merges = history.merges_of(fix.number).await;
        let is_reverted = match merges.first() {
            Some(merge) => {
                let change = ChangeText::of_pull(repo, fix.number, &fix.title, "").merged_as(merge.as_str());
                history.is_reverted(repo, merge, change).await
            }
            None => false,
        };
        match is_reverted {
            true => report = report.without_fix(),
            false => fix.released_in = history.release_with(&merges).await,
        }
    }
    let is_named = report.fix.as_ref().is_some_and(|fix| fix.confidence.is_none());
    if !is_named && let Some((commit, answer)) = fixing_commit(history, repo, item, now).await {
        report = report.fixed_by_commit(answer, commit);
    }
    report
}

/// The commit that fixed a closed report without a pull request.
async fn fixing_commit(
    history: &RemoteHistory,
    repo: &RepoName,
    report: &Item,
    now: Timestamp,
) -> Option<(FixCommit, DraftAnswer)> {
    let reported_at = report.created_at.filter(|_| report.item_type == ItemType::Issue)?;
    for commit in history.commits_mentioning(report.number, reported_at).await {
        if !issues_fixed_by_commit(repo, &commit.message).contains(&report.number) {
            continue;
        }
        let Some(answer) = answer_by_commit(report, commit.committed_at, now) else { continue };
        let change = ChangeText::of_commit(repo, commit.sha.as_str(), &commit.message);
        if !history.is_reverted(repo, &commit.sha, change).await {
            let released_in = history.release_with(std::slice::from_ref(&commit.sha)).await;
            let (sha, committed_at) = (commit.sha.to_string(), commit.committed_at);
            return Some((FixCommit { sha, committed_at, released_in }, answer));
        }
    }
    None
}

const fn exit_of(answer: DraftAnswer) -> Exit {
    match answer {
        DraftAnswer::New => Exit::Done,
        DraftAnswer::Reported => Exit::Reported,
        DraftAnswer::InProgress => Exit::InProgress,
        DraftAnswer::Fixed => Exit::Fixed,
        DraftAnswer::PossibleRegression => Exit::PossibleRegression,
    }
}

impl Args {
    async fn draft(&self) -> Result<Draft> {
        let author = self.author.clone();
        if let Some(range) = &self.diff {
            return Ok(Draft { author, ..draft_of_change(range).await? });
        }
        let (title, body) = match (&self.title, &self.file) {
            (Some(title), _) => (title.clone(), self.body.clone().unwrap_or_default()),
            (None, Some(file)) => divided(&read_file(file)?),
            (None, None) => divided(&read_draft(std::io::stdin().lock(), "standard input")?),
        };
        let draft = Draft { title, body, author, changes: None };
        if draft.is_empty() {
            bail!(WrongUsage("the draft is empty; write a title in its first line".to_owned()));
        }
        Ok(draft)
    }
}

/// Fetches what changed on GitHub and embeds it.
async fn fetch_new(args: &Args, store: &Store, embedder: &dyn Embedder, context: &Context) -> Result<()> {
    let bar = context.counter("items from GitHub");
    let github = args.github.client(&bar)?;
    let name = args.repo.name_to_fetch(store).await?;
    sync(store, &github, &name, SyncOptions::default(), &mut |so_far| bar.set_position(so_far.fetched))
        .await
        .map_err(|failure| stopped(&failure))?;
    let repo = args.repo.find(store).await?;
    fetch_changes(store, &github, &repo.name, CHANGES_PER_SYNC, &bar).await?;
    let options = EmbedOptions { source: EmbedSource::Raw, item_type: None, state: None, only_changed: true };
    let made = embed(store, embedder, &repo, options, context.now, &mut |_| {}).await;
    bar.finish_and_clear();
    made.map(drop).map_err(|failure| anyhow!("{failure}"))
}

fn read_file(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        return read_draft(std::io::stdin().lock(), "standard input");
    }
    let file = std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    read_draft(file, &path.display().to_string())
}

fn read_draft(from: impl std::io::Read, name: &str) -> Result<String> {
    let mut read = Vec::new();
    from.take(DRAFT_LIMIT + 1).read_to_end(&mut read).with_context(|| format!("{name} cannot be read"))?;
    if read.len() as u64 > DRAFT_LIMIT {
        bail!(WrongUsage(format!("{name} is larger than 1 MiB; shorten the draft")));
    }
    String::from_utf8(read).map_err(|_| anyhow!(WrongUsage(format!("{name} is not UTF-8 text"))))
}

/// The title in the first line that is not empty, without a heading's `#`, and the body below.
fn divided(text: &str) -> (String, String) {
    let text = text.trim_start();
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    (title.trim().trim_start_matches('#').trim().to_owned(), body.trim().to_owned())
}

/// The draft of a change between two commits: the subject of its first commit as title, all messages as body.
async fn draft_of_change(range: &str) -> Result<Draft> {
    let change = change_in(range).await?;
    let (title, body) = divided(&change.messages);
    Ok(Draft { title, body, author: None, changes: Some(change.changes) })
}

fn text(checked: &DraftReport, kind: &str, context: &Context) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}\n", checked.headline(&|at| context.when(at)));
    if let Some(report) = &checked.item {
        text += &format!("  #{} {} ({})\n", report.number, one_line(&report.title), state(report, context));
    }
    if let Some(fix) = &checked.fix {
        text += &format!("  #{} {}\n", fix.number, one_line(&fix.title));
        if fix.confidence.is_some() {
            let why = fix.evidence.iter().map(|why| format!(": {}", one_line(why))).next().unwrap_or_default();
            text += &format!("It does not name #{}, but is probably its fix{why}.\n", checked.item_number());
        }
    }
    text.extend(checked.branch_gap().map(|gap| format!("{gap}\n")));
    let matched = checked.matched.filter(|matched| checked.item.as_ref().is_some_and(|one| one.number != *matched));
    if let Some(matched) = matched {
        text += &format!("Found through its duplicate #{matched}, which the evidence is about.\n");
    }
    if let Some(evidence) = &checked.explanation {
        text += &format!("{}\n", one_line(evidence));
    }
    if checked.same_lines {
        text += "Both change the same lines.\n";
    }
    let others: Vec<&SimilarItem> = checked
        .similar
        .iter()
        .filter(|one| checked.item.as_ref().is_none_or(|report| report.number != one.number))
        .collect();
    if !others.is_empty() {
        let mut shown = table(["similar", "score", "state", "title"]);
        for one in others {
            shown.add_row([
                format!("#{}", one.number),
                percent(one.score),
                one.state.to_string(),
                one_line(&one.title),
            ]);
        }
        text += &format!("\n{shown}\n");
    }
    let synced =
        checked.synced_at.map_or_else(|| "never synced".to_owned(), |at| format!("synced {}", context.when(at)));
    text += &format!("\nCompared with {}, {synced}.\n", counted(checked.stats.compared as u64, kind));
    let missing = checked.stats.compared.saturating_sub(checked.stats.embedded) as u64;
    if missing > 0 {
        text += &format!("{} without a current vector; run `canonry embed --only-changed`.\n", counted(missing, kind));
    }
    text.extend(checked.changes_gap().map(|gap| format!("{gap}\n")));
    if checked.answer == DraftAnswer::New {
        text.extend(checked.data_gap(kind).map(|gap| format!("{gap}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::divided;

    #[test]
    fn the_first_line_is_the_title() {
        let divided = |text: &str| divided(text);
        assert_eq!(divided("\n# Crash \n\nIt stops.\n"), ("Crash".to_owned(), "It stops.".to_owned()));
        assert_eq!(divided("Crash"), ("Crash".to_owned(), String::new()));
        assert_eq!(divided(" \n"), (String::new(), String::new()));
    }
}
