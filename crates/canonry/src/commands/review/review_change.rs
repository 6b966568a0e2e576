//! `review`: findings of rules, tools and models on a change, each reported once.

mod requested_change;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_config::{RepoConfig, ReviewSettings};
use canonry_domain::review::{AnswerableScope, FindingStatus, ReviewSubject, Severity, ShownAs, gaps_in_words};
use canonry_domain::{ItemNumber, Login, RepoName};
use canonry_models::Embedder;
use canonry_review::output::{self, SourceLinks};
use canonry_review::{
    HeardRemarks, ReportedFinding, ReviewOutcome, ReviewReport, ReviewRequest, remarks_of_file, review, weigh_remarks,
};
use canonry_store::Store;
use indicatif::ProgressStyle;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::requested_change::{Local, RequestedChange};
use crate::options::retrieval::EmbedderOptions;
use crate::options::reviewers::ReviewerOptions;
use crate::output::exit::{Exit, WrongUsage};
use crate::output::file::OutputFile;
use crate::output::json::harmless;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::output::terminal;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, has_credentials};
use crate::session::local_clone::LocalClone;
use crate::session::published_pull::WhatWasPublished;

/// Review a change in a clone, or a pull request.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Review a change in a clone, or a pull request.\n\n\
        The change is what --head adds to --base since they diverged. Without --head it is the current branch with the \
        uncommitted changes of tracked files; nothing in the clone is changed. Findings of all reviewers are tracked from one \
        review to the next, through moved lines and renamed files, until their code is fixed. A second review of the same \
        branch or pull request reads only the files that changed since the first; --full reads everything again.\n\n\
        It needs no account and no key: the reviewer builtin is part of the program, and --sarif and --rdjson read the \
        reports of linters. The settings are those of .canonry.yml at the base, so that a change cannot silence its own \
        review. Critical findings are always shown.\n\n\
        With --pr and GITHUB_TOKEN the review is posted on the pull request: findings at their lines, and threads of fixed \
        findings are resolved. Base and head are then the pull request's own, fetched where the clone does not have them, and \
        the settings are those of the default branch. No finding is posted twice. --no-publish writes nothing to GitHub.\n\n\
        With --fail-on the exit status is 5 when an open finding of at least that severity is shown at a changed line; the \
        output names those findings. Hidden, dismissed and low-confidence findings do not count, nor do findings off the \
        changed lines, unless review.scope is all. Exit status 3: the review is stored, but a file was not read or a reviewer \
        failed; --allow-gaps accepts that.",
    before_help = "Example:\n  canonry review --base main\n  \
        canonry review --base origin/main --sarif lint.sarif --fail-on major\n  \
        canonry review --staged --fail-on major\n  \
        GITHUB_TOKEN=… canonry review --repo octo/cat --pr 12\n  \
        canonry review --pr 12 --no-publish --format code-scanning --output canonry.sarif\n  \
        ANTHROPIC_API_KEY=… canonry review --reviewer builtin llm --provider anthropic"
)]
pub(crate) struct Args {
    /// The repository [default: the GitHub repository of the clone's remote, else local/FOLDER]
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    repo: Option<RepoName>,
    /// The pull request of the change [default: none; findings are tracked by branch]
    #[arg(long, value_name = "NUMBER")]
    pr: Option<ItemNumber>,
    /// What the change is merged into: a branch, a tag or a commit [default: the remote's default branch, else main
    /// or master]
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// The last commit of the change [default: the current one with the uncommitted changes of tracked files; the pull
    /// request's own where the review is published]
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// Review what the next commit would contain: the index against the current commit. For a hook before commits
    #[arg(long, conflicts_with_all = ["base", "head", "pr"])]
    staged: bool,
    /// A folder of the clone
    #[arg(long, value_name = "DIR", default_value = ".")]
    work_tree: PathBuf,
    /// Read everything, even what did not change since the last review
    #[arg(long)]
    full: bool,
    /// The author of the change; authors in review.skipAuthors are not reviewed [default: as the database knows it]
    #[arg(long, value_name = "LOGIN")]
    author: Option<Login>,
    /// The settings file [default: .canonry.yml at the base; of the default branch where the review is published]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Store the review, and write nothing to GitHub
    #[arg(long)]
    no_publish: bool,
    /// Exit with status 5 when there is an open finding of at least this severity: minor, medium, major, critical or never
    #[arg(long, value_name = "SEVERITY", default_value = "never", value_enum, hide_possible_values = true)]
    fail_on: FailOn,
    /// Comments of other reviewers on the pull request, as `gh api repos/OWNER/NAME/pulls/NUMBER/comments --paginate`
    /// prints them; those of the bots in review.referee.bots and of people are weighed [default: read from GitHub where
    /// the review is published]
    #[arg(long, value_name = "FILE")]
    comments: Option<PathBuf>,
    /// Exit with status 0 although files were not read or a reviewer failed; the output still names them
    #[arg(long)]
    allow_gaps: bool,
    /// The output format: text, json (as with --json), sarif (everything, with baselineState and suppressions),
    /// code-scanning (SARIF with the open findings, for GitHub's code scanning), rdjsonl, github (annotations of a
    /// workflow), gitlab (a code quality report) or junit
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    format: Option<Format>,
    /// Write the result into this file, and a summary to the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    reviewers: ReviewerOptions,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    CodeScanning,
    Rdjsonl,
    Github,
    Gitlab,
    Junit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Minor,
    Medium,
    Major,
    Critical,
    Never,
}

impl FailOn {
    fn severity(self) -> Option<Severity> {
        match self {
            Self::Minor => Some(Severity::Minor),
            Self::Medium => Some(Severity::Medium),
            Self::Major => Some(Severity::Major),
            Self::Critical => Some(Severity::Critical),
            Self::Never => None,
        }
    }
}

impl Args {
    /// Whether stdout receives the JSON document even without `--json`.
    pub(crate) fn prints_json(&self) -> bool {
        self.format == Some(Format::Json) && self.output.is_none()
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    if context.json && args.output.is_none() && args.format.is_some_and(|format| format != Format::Json) {
        let words = "--json and --format ask for two formats; remove one, or name a file with --output";
        bail!(WrongUsage(words.to_owned()));
    }
    let llm = args.reviewers.llm()?;
    let publishes = args.pr.filter(|_| !args.no_publish && has_credentials());
    let clone = match LocalClone::find(&args.work_tree).await {
        Ok(clone) => Some(clone),
        // A pull request that is named with its repository needs no clone.
        Err(error) if error.is::<WrongUsage>() || publishes.is_none() || args.repo.is_none() => return Err(error),
        Err(_) => None,
    };
    let file = || args.output.as_deref().map(|path| OutputFile::create(path, &context.run_id.to_string())).transpose();
    // Problems of the clone or the options are reported before a database or a file is opened or created.
    let (store, file, asked) = match (publishes, &clone) {
        (Some(number), clone) => {
            let (file, store) = (file()?, args.database.open(context).await?);
            let asked = RequestedChange::on_github(&args, clone.as_ref(), &store, number, context).await?;
            (store, file, asked)
        }
        (None, Some(clone)) => {
            let local = Local::find(&args, clone, context).await?;
            let (file, store) = (file()?, args.database.open(context).await?);
            let asked = RequestedChange::in_clone(&args, clone, local, &store, context).await?;
            (store, file, asked)
        }
        (None, None) => unreachable!("invariant: a clone is only missing where a review is published"),
    };
    if let Some(author) = &asked.author
        && is_skipped(&asked.settings.review, author)
    {
        store.disconnect().await;
        return skipped(&asked.repo.name, author, &asked.subject, file);
    }
    let mut notes = asked.notes.clone();
    let reviewers = args.reviewers.choose(&asked.settings.review)?;
    let embedder = embedder(&args.embedder, &store, &asked.settings, &mut notes).await?;
    let request = ReviewRequest {
        repo: asked.repo.id,
        name: &asked.repo.name,
        subject: &asked.subject,
        repository: &asked.repository,
        root: clone.as_ref().and_then(LocalClone::root),
        base: &asked.base,
        base_branch: asked.pull.as_ref().filter(|pull| pull.base == asked.base).map(|pull| pull.base_branch.as_str()),
        head: &asked.head,
        asked_at: context.now,
        requested: true,
        full: args.full || args.staged,
        settings: &asked.settings,
        description: asked.description.as_ref(),
        notes: &notes,
        reviewers: &reviewers,
        linted: asked.linted.commit(),
        base_reports: args.reviewers.base_reports(),
        base_ledger: asked.base_ledger.as_ref(),
        llm_budget: args.reviewers.budget(asked.settings.review.model_budget),
        owner: &context.run_id.to_string(),
    };
    let clock = || canonry_domain::whole_micros(Timestamp::now());
    let bar = context.counter("reviewing");
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("invariant: a constant template"));
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    let mut handle = None;
    if let Some(pull) = &asked.pull {
        handle = pull.is_heard().await?.then_some(asked.settings.mentions.handle.as_str());
        pull.begin(handle).await?;
    }
    let outcome = review(&store, &request, llm.as_ref(), embedder.as_deref(), &clock).await;
    let subject = &asked.subject;
    let mut report = match outcome {
        Ok(ReviewOutcome::Reviewed(report) | ReviewOutcome::AlreadyReviewed(report)) => report,
        Ok(ReviewOutcome::Superseded { .. }) => {
            bail!("a newer review of {subject} replaced this review, which was not stored; run the command again")
        }
        Ok(ReviewOutcome::Busy { until }) => bail!(
            "another review of {subject} is running (until {} at the latest); wait for it, then run the command again",
            context.due(until)
        ),
        Err(error) => {
            if let Some(pull) = &asked.pull {
                pull.could_not(handle, &format!("failed to {error}"), &context.run_id.to_string()).await;
            }
            return Err(anyhow!("failed to {error}"));
        }
    };
    if let Some(heard) = other_comments(&args, &asked, &mut report.notes).await? {
        let now = context.now;
        weigh_remarks(&store, asked.repo.id, embedder.as_deref(), &mut report, heard, now).await?;
    }
    let published = match &asked.pull {
        Some(pull) => Some(pull.publish(handle, &report).await?),
        None => None,
    };
    bar.finish_and_clear();
    store.disconnect().await;
    let links = terminal::shows_links().then(|| links(&asked, clone.as_ref())).flatten();
    let scope = asked.settings.review.scope;
    let result = Presented { report: &report, scope, links, published, service_is_off: asked.service_is_off };
    present(&result, &args, file, context)
}

/// The comments of other reviewers, if the settings name bots: from the file, else from GitHub where the review is
/// published. Comments that GitHub does not return are a note.
async fn other_comments(args: &Args, asked: &RequestedChange, notes: &mut Vec<String>) -> Result<Option<HeardRemarks>> {
    let bots = &asked.settings.review.referee.bots;
    match (&args.comments, &asked.pull) {
        (Some(_), _) if bots.is_empty() => {
            notes.push("--comments was not read: review.referee.bots names no bot".to_owned());
            Ok(None)
        }
        (Some(file), _) => Ok(Some(remarks_of_file(file, bots).await.map_err(|error| anyhow!("failed to {error}"))?)),
        (None, Some(pull)) if !bots.is_empty() => match pull.remarks(bots).await {
            Ok(heard) => Ok(Some(heard)),
            Err(error) => {
                notes.push(format!("comments of other reviewers were not read: failed to {error}"));
                Ok(None)
            }
        },
        (None, _) => Ok(None),
    }
}

/// Returns the links for `path:line`: to the commit on GitHub for a pull request there, otherwise to the file in the
/// clone.
fn links(asked: &RequestedChange, clone: Option<&LocalClone>) -> Option<SourceLinks> {
    match &asked.pull {
        Some(pull) => Some(SourceLinks::to_commit(&pull.web_url(), &asked.head)),
        None => Some(SourceLinks::to_files(clone?.root()?)),
    }
}

fn is_skipped(settings: &ReviewSettings, author: &Login) -> bool {
    settings.skip_authors.iter().any(|skipped| skipped.parse::<Login>().is_ok_and(|skipped| skipped == *author))
}

fn skipped(repo: &RepoName, author: &Login, subject: &ReviewSubject, file: Option<OutputFile>) -> Result<Report> {
    // The file is not written: an empty result would look like a review without findings.
    drop(file);
    let why = format!("review.skipAuthors names {author}");
    let text = format!("Not reviewed: {subject}, because {why}.\n");
    Ok(Report::new(json!({ "reviews": 0 }), text)
        .of(repo)
        .with("run", Value::Null)
        .with("findings", json!([]))
        .with("counts", json!({}))
        .with("skipped", why))
}

/// Returns the embedder that turns findings into vectors for the search in earlier findings. If no embedder is
/// available, the review continues without it.
async fn embedder(
    options: &EmbedderOptions,
    store: &Store,
    settings: &RepoConfig,
    notes: &mut Vec<String>,
) -> Result<Option<Box<dyn Embedder>>> {
    if !settings.knowledge.retrieval.enabled {
        return Ok(None);
    }
    match options.embedder(store).await {
        Ok(embedder) => Ok(Some(embedder)),
        Err(error) if error.is::<WrongUsage>() => Err(error),
        Err(error) => {
            notes.push(format!("earlier findings were not searched: {error}"));
            Ok(None)
        }
    }
}

/// What a review came to.
struct Presented<'a> {
    report: &'a ReviewReport,
    scope: AnswerableScope,
    /// Where `path:line` leads; `None` where the terminal follows no links.
    links: Option<SourceLinks>,
    published: Option<WhatWasPublished>,
    service_is_off: Option<&'static str>,
}

fn present(presented: &Presented<'_>, args: &Args, file: Option<OutputFile>, context: &Context) -> Result<Report> {
    let Presented { report, scope, links, published, service_is_off } = presented;
    let mut words = output::text(report, terminal::width().unwrap_or(100), links.as_ref());
    if let Some(published) = published {
        words += &format!("\n{}\n", published.words);
    }
    if let Some(why) = service_is_off {
        words += &format!("\n{why}\n");
    }
    let format = args.format.unwrap_or(if context.json { Format::Json } else { Format::Text });
    let failing = failing_findings(report, args.fail_on, *scope);
    let is_incomplete = gaps_in_words(&output::gaps(report)).filter(|_| !args.allow_gaps);
    let mut failed = failing_in_words(&failing, args.fail_on, links.as_ref());
    if let Some(gaps) = is_incomplete.as_ref().filter(|_| failing.is_empty()) {
        failed = format!("Exit status 3: {gaps}. --allow-gaps accepts that.\n");
    }
    if !failed.is_empty() {
        words += &format!("\n{failed}");
    }
    let exit = match (exit(&failing, is_incomplete.is_some()), published) {
        (Exit::Done, Some(published)) => published.exit,
        (exit, _) => exit,
    };
    let document = |text: String| {
        let Value::Object(keys) = output::json(report) else {
            unreachable!("invariant: a review is an object");
        };
        let report = Report::new(stats(report), text).of(&report.repo).ending(exit);
        let report = report.with("published", published.as_ref().map(|published| &published.json));
        let report = match service_is_off {
            Some(why) => report.with("service_reviews", why),
            None => report,
        };
        keys.into_iter().fold(report, |report, (key, value)| report.with(&key, value))
    };
    let formatted = match format {
        Format::Text => words.clone(),
        Format::Json => {
            let envelope = document(String::new()).envelope(context);
            format!("{}\n", serde_json::to_string_pretty(&envelope)?)
        }
        Format::Sarif => format!("{}\n", serde_json::to_string_pretty(&output::sarif(report))?),
        Format::CodeScanning => format!("{}\n", serde_json::to_string_pretty(&output::code_scanning(report))?),
        Format::Rdjsonl => output::rdjsonl(report),
        Format::Github => output::github(report),
        Format::Gitlab => format!("{}\n", serde_json::to_string_pretty(&output::gitlab(report))?),
        Format::Junit => output::junit(report),
    };
    let (Some(mut file), Some(path)) = (file, args.output.as_deref()) else {
        if matches!(format, Format::Rdjsonl | Format::Gitlab) {
            report_gaps(report);
        }
        if format != Format::Text && !context.quiet {
            // A program reads the document on stdout; a person who reads the build log finds the reason for the exit
            // status on stderr.
            let _ = write!(anstream::stderr(), "{failed}");
        }
        return Ok(document(if format == Format::Text { words } else { harmless(&formatted) }));
    };
    let written = if format == Format::Text {
        anstream::adapter::strip_str(&formatted).to_string()
    } else {
        harmless(&formatted)
    };
    file.write_all(written.as_bytes()).with_context(|| format!("the file {} cannot be written", path.display()))?;
    file.finish()?;
    Ok(document(summary(&words, path)))
}

/// Reports the problems of reviewers on stderr. The lines of findings cannot contain them, and a program that reads a
/// pipe does not see the exit status.
fn report_gaps(report: &ReviewReport) {
    for reviewer in &report.reviewers {
        for problem in &reviewer.problems {
            let (name, problem) = (one_line(&reviewer.name), one_line(problem));
            // If stderr is closed, the problem cannot be shown.
            let _ = writeln!(anstream::stderr(), "canonry: {name}: {problem}");
        }
    }
}

fn summary(words: &str, path: &Path) -> String {
    format!("{words}\nWrote {}.\n", path.display())
}

fn stats(report: &ReviewReport) -> Value {
    let counts = output::counts(report);
    json!({
        "reviews": 1,
        "findings": report.findings.len() - counts.with_status(FindingStatus::Fixed),
        "shown": counts.shown(),
        "suppressed": counts.suppressed,
        "new": counts.with_status(FindingStatus::New),
        "fixed": counts.with_status(FindingStatus::Fixed),
        "files_read": report.coverage.files_read,
        "lines_read": report.coverage.lines_read,
    })
}

fn exit(failing: &[&ReportedFinding], is_incomplete: bool) -> Exit {
    match (failing.is_empty(), is_incomplete) {
        (false, _) => Exit::Findings,
        (true, true) => Exit::SomeFailed,
        (true, false) => Exit::Done,
    }
}

/// Returns the findings that make `--fail-on` exit with status 5.
fn failing_findings(report: &ReviewReport, fail_on: FailOn, scope: AnswerableScope) -> Vec<&ReportedFinding> {
    let Some(least) = fail_on.severity() else { return Vec::new() };
    report.findings.iter().filter(|one| stands(one, scope) && one.sighting.finding.severity >= least).collect()
}

/// Lists the findings that make the command exit with status 5.
fn failing_in_words(failing: &[&ReportedFinding], fail_on: FailOn, links: Option<&SourceLinks>) -> String {
    let Some(least) = fail_on.severity().filter(|_| !failing.is_empty()) else { return String::new() };
    let count = counted(failing.len() as u64, "finding");
    let mut text = format!("Exit status 5: {count} of severity {least} or higher (--fail-on {least}):\n");
    for one in failing {
        let finding = &one.sighting.finding;
        let place = SourceLinks::place(links, &finding.path, finding.lines);
        text += &format!("  {}  {place}  {}\n", finding.severity, one_line(&finding.title));
    }
    text
}

/// Whether a finding counts for `--fail-on`: it is open, and it is shown at its line, or would be if there were more
/// room or the diff had its line and the change answers for all lines.
fn stands(one: &ReportedFinding, scope: AnswerableScope) -> bool {
    let open = !matches!(one.sighting.status, FindingStatus::Fixed | FindingStatus::Dismissed);
    let answers_for_it = one.grounded || scope == AnswerableScope::All;
    open && (one.shown == ShownAs::Inline || (one.shown == ShownAs::Details && answers_for_it))
}
