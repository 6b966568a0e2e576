//! The change to review: one in a clone, or a pull request on GitHub.

use anyhow::{Context as _, Result, bail};
use canonry_config::{MAX_FILE_BYTES, RepoConfig, SETTINGS_FILE, parse_bytes};
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_domain::{ItemNumber, ItemType, Login, RepoName};
use canonry_github::GitHub;
use canonry_review::{LintedCommit, PullDescription, ReadSettings, Repository, read_settings};
use canonry_server::ReviewFolder;
use canonry_store::{Repo, Store};

use super::Args;
use crate::commands::start::config;
use crate::output::exit::WrongUsage;
use crate::session::context::Context;
use crate::session::local_clone::LocalClone;
use crate::session::published_pull::PublishedPull;

const NOT_PUBLISHED: &str = "nothing was written to GitHub, because GITHUB_TOKEN is not set; --no-publish hides this \
    note";

/// Shown with a review that was requested all the same.
const SERVICE_IS_OFF: &str =
    "review.enabled is not true in .canonry.yml: the service does not review pull requests here.";

/// The change to review, and its settings.
pub(super) struct RequestedChange {
    pub(super) repo: Repo,
    pub(super) subject: ReviewSubject,
    pub(super) repository: Repository,
    pub(super) base: CommitSha,
    pub(super) head: CommitSha,
    pub(super) settings: RepoConfig,
    pub(super) notes: Vec<String>,
    pub(super) author: Option<Login>,
    pub(super) description: Option<PullDescription>,
    pub(super) pull: Option<PublishedPull>,
    /// A note if the settings file does not enable the service's reviews.
    pub(super) service_is_off: Option<&'static str>,
    /// The subject under which the base branch is reviewed.
    pub(super) base_ledger: Option<ReviewSubject>,
    pub(super) linted: RequestedLint,
    _fetched: Option<ReviewFolder>,
}

/// The commit whose lines the reports name.
pub(super) enum RequestedLint {
    Head,
    Given(CommitSha),
    Reported { checkout: Option<CommitSha> },
}

impl RequestedLint {
    /// Finds the commit: the one that the option names, else the checked-out merge of the head.
    async fn find(args: &Args, clone: Option<&LocalClone>, head: &CommitSha) -> Result<Self> {
        if let Some(name) = args.reviewers.linted() {
            // A commit that is not here may still be fetched.
            if let Ok(sha) = name.parse() {
                return Ok(Self::Given(sha));
            }
            let Some(clone) = clone else {
                bail!(WrongUsage("--linted needs a clone, or the whole id of a commit".to_owned()));
            };
            return Ok(Self::Given(clone.commit("--linted", name).await?));
        }
        let checkout = match clone {
            Some(clone) => clone.checked_out_merge(head).await,
            None => None,
        };
        Ok(Self::Reported { checkout })
    }

    pub(super) fn commit(&self) -> LintedCommit<'_> {
        match self {
            Self::Head => LintedCommit::Head,
            Self::Given(commit) => LintedCommit::Given(commit),
            Self::Reported { checkout } => LintedCommit::Reported { checkout: checkout.as_ref() },
        }
    }
}

/// What is known of a change in a clone before the database is opened.
pub(super) struct Local {
    base: CommitSha,
    head: CommitSha,
    subject: ReviewSubject,
    settings: ReadSettings,
    name: RepoName,
    notes: Vec<String>,
    base_ledger: Option<ReviewSubject>,
    linted: RequestedLint,
}

impl Local {
    pub(super) async fn find(args: &Args, clone: &LocalClone, context: &Context) -> Result<Self> {
        let mark = context.run_id.to_string();
        let mut notes = Vec::new();
        // The reports may name the commit that they are about. With uncommitted changes they are about those files.
        let mut is_commit = args.head.is_some() || args.reviewers.linted().is_some();
        let (base, head, subject, base_branch) = if args.staged {
            let (base, head) = clone.staged(&mark).await?;
            // The findings on what is staged are tracked until it is committed. No branch has such a name.
            let subject = ReviewSubject::Branch(format!("{}:staged", base.short()));
            (base, head, subject, clone.branch("HEAD").await)
        } else {
            let (base, base_name) = match &args.base {
                Some(name) => (clone.base(name).await?, name.as_str()),
                None => clone.default_base().await?,
            };
            let head = match &args.head {
                Some(name) => clone.commit("--head", name).await?,
                None => {
                    let head = clone.head_with_changes(&mark).await?;
                    notes.extend(head.notes);
                    is_commit |= head.is_clean;
                    head.sha
                }
            };
            let subject = match args.pr {
                Some(number) => ReviewSubject::Pull(number),
                None => clone.subject(args.head.as_deref(), &head, &mut notes).await,
            };
            (base, head, subject, clone.branch(base_name).await)
        };
        let linted = match is_commit {
            true => RequestedLint::find(args, Some(clone), &head).await?,
            false => RequestedLint::Head,
        };
        let settings = match settings_file(args)? {
            Some(settings) => settings,
            None => read_settings(clone.git(), &base).await,
        };
        // Wrong options are reported before anything is opened.
        args.reviewers.choose(&settings.config.review)?;
        let name = repo_name(args, Some(clone)).await?;
        let base_ledger = base_branch.map(ReviewSubject::Branch);
        Ok(Self { base, head, subject, settings, name, notes, base_ledger, linted })
    }
}

impl RequestedChange {
    /// A change in a clone; nothing about it is published.
    pub(super) async fn in_clone(
        args: &Args,
        clone: &LocalClone,
        local: Local,
        store: &Store,
        context: &Context,
    ) -> Result<Self> {
        let Local { base, head, subject, settings, name, mut notes, base_ledger, linted } = local;
        notes.extend(settings.notes);
        if args.pr.is_some() && !args.no_publish {
            notes.push(NOT_PUBLISHED.to_owned());
        }
        let repo = store.repos().ensure(&name, context.now).await?;
        let item = match args.pr {
            Some(number) => store.corpus().item(repo.id, ItemType::Pr, number).await?,
            None => None,
        };
        let author = args.author.clone().or_else(|| item.as_ref().and_then(|item| item.author.clone()));
        let description = item.map(|item| PullDescription { title: item.title, body: item.body });
        // Without a file nothing was decided, and nothing here is public.
        let service_is_off = (settings.has_file && !settings.config.review.enabled).then_some(SERVICE_IS_OFF);
        let (repository, settings) = (Repository::Local(clone.git().clone()), settings.config);
        Ok(Self {
            repo,
            subject,
            repository,
            base,
            head,
            settings,
            notes,
            author,
            description,
            pull: None,
            service_is_off,
            base_ledger,
            linted,
            _fetched: None,
        })
    }

    /// A pull request on which the findings are published. Its head is the one on GitHub; further commits in a clone
    /// do not count.
    pub(super) async fn on_github(
        args: &Args,
        clone: Option<&LocalClone>,
        store: &Store,
        number: ItemNumber,
        context: &Context,
    ) -> Result<Self> {
        let name = repo_name(args, clone).await?;
        let github = args.github.client(&context.counter("GitHub"))?;
        let pull = PublishedPull::find(store, github.clone(), &name, number, context.now).await?;
        let clone_for = |option: &str| {
            clone.ok_or_else(|| WrongUsage(format!("{option} needs a clone; run this in one, or leave the option out")))
        };
        if let Some(head) = &args.head {
            let head = clone_for("--head")?.commit("--head", head).await?;
            if head != pull.head {
                bail!(
                    "--head is {}, but {} #{number} on GitHub is at {}; push or fetch first, or add --no-publish",
                    head.short(),
                    pull.repo.name,
                    pull.head.short()
                );
            }
        }
        let base = match &args.base {
            Some(base) => clone_for("--base")?.commit("--base", base).await?,
            None => pull.base.clone(),
        };
        let settings = match settings_file(args)? {
            Some(settings) => settings,
            None => live_settings(&github, &pull.repo.name).await?,
        };
        let folder = ReviewFolder::make().context("no temporary folder can be made")?;
        let repository = pull.repository(clone, &base, &folder.path().join("git")).await?;
        Ok(Self {
            repo: pull.repo.clone(),
            subject: ReviewSubject::Pull(number),
            repository,
            base,
            head: pull.head.clone(),
            service_is_off: (!settings.config.review.enabled).then_some(SERVICE_IS_OFF),
            settings: settings.config,
            notes: settings.notes,
            author: args.author.clone().or_else(|| pull.author.clone()),
            description: Some(pull.description.clone()),
            base_ledger: Some(ReviewSubject::Branch(pull.base_branch.clone())),
            linted: RequestedLint::find(args, clone, &pull.head).await?,
            pull: Some(pull),
            _fetched: Some(folder),
        })
    }
}

async fn repo_name(args: &Args, clone: Option<&LocalClone>) -> Result<RepoName> {
    match (&args.repo, clone) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(clone)) => Ok(clone.repo_name().await),
        (None, None) => bail!(WrongUsage("name the repository with --repo OWNER/NAME".to_owned())),
    }
}

/// The settings of the default branch: a pull request cannot change the settings of its own review.
async fn live_settings(github: &GitHub, repo: &RepoName) -> Result<ReadSettings> {
    let Some(file) = github.default_branch_file(repo, SETTINGS_FILE, MAX_FILE_BYTES).await? else {
        return Ok(ReadSettings::default());
    };
    let parsed = parse_bytes(file.text.as_bytes());
    let notes = parsed.problems.iter().map(|problem| format!("{SETTINGS_FILE}: {problem}")).collect();
    Ok(ReadSettings { config: parsed.config, notes, has_file: true })
}

fn settings_file(args: &Args) -> Result<Option<ReadSettings>> {
    let Some(file) = &args.config else { return Ok(None) };
    let parsed =
        config::read(file)?.with_context(|| format!("there is no settings file {}; check the name", file.display()))?;
    let notes = parsed.problems.iter().map(|problem| format!("{}, {problem}", file.display())).collect();
    Ok(Some(ReadSettings { config: parsed.config, notes, has_file: true }))
}
