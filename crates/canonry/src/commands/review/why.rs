//! `why`: the history of each finding near a line.

use std::path::Path;
use std::str::FromStr;

use anyhow::Result;
use canonry_domain::ItemNumber;
use canonry_domain::review::{Finding, LineRange, RepoPath, ReviewSubject};
use canonry_github::web_address;
use canonry_review::FindingLife;
use canonry_review::output::SourceLinks;
use serde_json::json;

use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::terminal;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RepoOption;
use crate::session::local_clone::LocalClone;

/// Explain the findings near a line.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Explain the findings near a line: who reported them, what became of them, their confidence, what hides them.\n\n\
        Shows findings at most three lines away, by the last review of each branch or pull request, and findings about the \
        whole file. Without a line: every finding of the file.",
    before_help = "Example:\n  canonry why src/main.rs:41\n  canonry why src/main.rs --repo octo/cat --pr 12 --json"
)]
pub(crate) struct Args {
    /// The file, from the top of the repository or from here, and the line
    #[arg(value_name = "PATH:LINE")]
    place: Place,
    #[command(flatten)]
    repo: RepoOption,
    /// Only findings of this pull request
    #[arg(long, value_name = "NUMBER", conflicts_with = "branch")]
    pr: Option<ItemNumber>,
    /// Only findings of this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Clone)]
struct Place {
    path: RepoPath,
    line: Option<u32>,
}

impl FromStr for Place {
    type Err = String;

    /// Parses `PATH`, `PATH:LINE` or `PATH:LINE:COLUMN`; compilers write the last form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|line| *line > 0);
        let (mut path, mut line) = (text, None);
        for _ in 0..2 {
            let Some((before, after)) = path.rsplit_once(':') else { break };
            let Some(found) = number(after) else { break };
            (path, line) = (before, Some(found));
        }
        let path = RepoPath::new(path).map_err(|error| error.to_string())?;
        Ok(Self { path, line })
    }
}

/// The most findings of a file that are read.
const MOST: u32 = 1000;
/// A finding at most this many lines away from the given line is shown.
const NEAR: u32 = 3;

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let subject = args.pr.map(ReviewSubject::Pull).or(args.branch.map(ReviewSubject::Branch));
    let mut found = store.findings().in_file(repo.id, &args.place.path, MOST).await?;
    if found.is_empty()
        && let Some(path) = path_from_the_top(&args.place.path).await
    {
        found = store.findings().in_file(repo.id, &path, MOST).await?;
    }
    let near = found
        .into_iter()
        .filter(|one| is_near(&one.finding, args.place.line))
        .filter(|one| subject.as_ref().is_none_or(|subject| one.subject == *subject));
    let patterns = store.findings().pattern_feedback(repo.id).await?;
    let web = web_address(args.github.api());
    let page = format!("{}/{}", web.as_str().trim_end_matches('/'), repo.name);
    let mut lives = Vec::new();
    for finding in near {
        lives.push(FindingLife::read(&store, repo.id, Some(&page), finding, &patterns).await?);
    }
    store.disconnect().await;
    let text = if lives.is_empty() {
        nothing(&args.place, &repo.name.to_string())
    } else {
        let links = links().await;
        lives.iter().map(|life| linked(life, links.as_ref())).collect::<Vec<_>>().join("\n")
    };
    Ok(Report::new(json!({ "findings": lives.len() }), text)
        .of(&repo.name)
        .with("findings", lives.iter().map(FindingLife::document).collect::<Vec<_>>()))
}

/// Returns links to the files of the clone in the current folder if the terminal shows links.
async fn links() -> Option<SourceLinks> {
    if !terminal::shows_links() {
        return None;
    }
    LocalClone::find(Path::new(".")).await.ok()?.root().map(SourceLinks::to_files)
}

/// Returns the text about a finding; its first part, the place, becomes a link.
fn linked(life: &FindingLife, links: Option<&SourceLinks>) -> String {
    let (words, finding) = (life.in_words(), &life.found().finding);
    match words.strip_prefix(&SourceLinks::place(None, &finding.path, finding.lines)) {
        Some(rest) => SourceLinks::place(links, &finding.path, finding.lines) + rest,
        None => words,
    }
}

/// Converts a path relative to the current folder into a path relative to the root of the clone.
async fn path_from_the_top(path: &RepoPath) -> Option<RepoPath> {
    let folder = LocalClone::find(Path::new(".")).await.ok()?.folder_in_it()?;
    RepoPath::new(&format!("{folder}/{path}")).ok()
}

fn nothing(place: &Place, repo: &str) -> String {
    let path = one_line(place.path.as_str());
    match place.line {
        Some(line) => {
            format!("No findings near {path}:{line} in {repo}.\n\nNext: canonry why {path}\n")
        }
        None => format!("No findings in {path} of {repo}; write the path from the top of the repository.\n"),
    }
}

fn is_near(finding: &Finding, line: Option<u32>) -> bool {
    let (Some(lines), Some(line)) = (finding.lines, line) else { return true };
    lines.overlaps(LineRange { first: line.saturating_sub(NEAR).max(1), last: line.saturating_add(NEAR) })
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places_as_people_and_compilers_write_them() {
        for (text, path, line) in [
            ("src/a.rs:41", "src/a.rs", Some(41)),
            ("./src/a.rs:41:7", "src/a.rs", Some(41)),
            ("src/a.rs", "src/a.rs", None),
            ("odd:name.rs", "odd:name.rs", None),
            ("odd:name.rs:3", "odd:name.rs", Some(3)),
        ] {
            let place: Place = text.parse().expect(text);
            assert_eq!((place.path.as_str(), place.line), (path, line), "{text}");
        }
        for text in ["", ":3", "../up.rs:3"] {
            assert!(text.parse::<Place>().is_err(), "{text:?}");
        }
    }
}
