//! Collects the context of a change from its repository and its description.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::ItemNumber;
use canonry_domain::review::{CommitSha, RepoPath};

use super::symbols::{ChangedNames, FoundCode, search};
use super::unread_files::{folders_to_know, why_not_shown};
use crate::change::git::{Git, GitError};
use crate::reviewers::FileToRead;

/// The newest commits whose messages are shown.
const MESSAGES: usize = 30;
/// The files with guidance that count in every folder, and in the root.
const GUIDANCE: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
const ROOT_GUIDANCE: [&str; 3] = ["CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md"];
/// The files that are searched for callers and definitions. In a clone all of them are here; elsewhere each has to be
/// fetched first, and the nearest ones are the likeliest.
const SEARCHED_HERE: usize = 2_000;
const SEARCHED_ELSEWHERE: usize = 150;
/// The folders of changed files that the distance of others is measured from.
const MOST_PLACES: usize = 50;
/// Files with code and their neighbours in other languages; anything else names no functions.
const CODE: [&str; 34] = [
    "c", "cc", "clj", "cpp", "cs", "cxx", "dart", "ex", "exs", "go", "h", "hpp", "java", "js", "jsx", "kt", "kts",
    "lua", "m", "mjs", "mts", "php", "pl", "py", "rb", "rs", "scala", "sh", "swift", "ts", "tsx", "vue", "zig", "cjs",
];

pub(crate) struct ContextRequest<'a> {
    pub(crate) git: &'a Git,
    /// The commit of the base branch: guidance comes from it and never from the change.
    pub(crate) base: &'a CommitSha,
    /// Where the change began.
    pub(crate) from: &'a CommitSha,
    pub(crate) head: &'a CommitSha,
    pub(crate) files: &'a [FileToRead<'a>],
}

/// The context of a change. Everything but `guidance` is written by strangers or derived from what they wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewContext {
    pub title: Option<String>,
    pub description: String,
    /// The issues that the change says it fixes: number, title and text.
    pub issues: Vec<(ItemNumber, String, String)>,
    /// The messages of its commits, oldest first.
    pub commits: Vec<String>,
    /// The files at the base that say how the project works, those for the whole project first.
    pub guidance: Vec<GuidanceFile>,
    pub callers: Vec<FoundCode>,
    pub definitions: Vec<FoundCode>,
    /// The changed files whose content is not shown, with the reason.
    pub not_shown: BTreeMap<RepoPath, &'static str>,
    /// What could not be collected.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuidanceFile {
    pub path: RepoPath,
    pub text: String,
}

impl GuidanceFile {
    /// The folder that the guidance is about; `None` for the whole project.
    pub fn folder(&self) -> Option<&str> {
        let path = self.path.as_str();
        let (folder, name) = path.rsplit_once('/')?;
        GUIDANCE.contains(&name).then_some(folder)
    }

    pub fn is_about(&self, path: &RepoPath) -> bool {
        let below = |folder: &str| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.folder().is_none_or(below)
    }
}

/// Collects the context. What cannot be collected is noted, and the review goes on without it.
pub(crate) async fn gather_context(request: &ContextRequest<'_>) -> ReviewContext {
    let mut context = ReviewContext::default();
    let mut notes = Vec::new();
    context.not_shown = or_note("which files are generated", not_shown(request).await, &mut notes);
    context.guidance = or_note("the project's guidance", guidance(request).await, &mut notes);
    let messages = request.git.messages_between(request.from, request.head, MESSAGES).await;
    context.commits = or_note("the messages of the commits", messages, &mut notes);
    // A commit that Canonry made of uncommitted changes has no message of a person.
    context.commits.retain(|message| message != "canonry");
    let found =
        or_note("code elsewhere in the repository", search_repository(request, &context.not_shown).await, &mut notes);
    (context.callers, context.definitions) = (found.callers, found.definitions);
    notes.extend(found.notes);
    context.notes = notes;
    context
}

fn or_note<T: Default>(what: &str, given: Result<T, GitError>, notes: &mut Vec<String>) -> T {
    given.unwrap_or_else(|error| {
        notes.push(format!("context: {what} left out: failed to {error}"));
        T::default()
    })
}

async fn not_shown(request: &ContextRequest<'_>) -> Result<BTreeMap<RepoPath, &'static str>, GitError> {
    let folders = folders_to_know(request.files.iter().map(|file| file.change));
    let known = if folders.is_empty() { folders } else { request.git.folders_at(request.base, &folders).await? };
    let why = |file: &FileToRead<'_>| Some((file.change.path.clone(), why_not_shown(file.change, &known)?));
    Ok(request.files.iter().filter_map(why).collect())
}

/// The guidance at the base: that of the project, and that of the folders with changed files.
async fn guidance(request: &ContextRequest<'_>) -> Result<Vec<GuidanceFile>, GitError> {
    let mut folders: BTreeSet<&str> = BTreeSet::from([""]);
    for file in request.files {
        let path = file.change.path.as_str();
        folders.extend(path.match_indices('/').map(|(at, _)| &path[..=at]));
    }
    let own = folders.iter().flat_map(|folder| GUIDANCE.map(|name| format!("{folder}{name}")));
    let names: Vec<String> = own.chain(ROOT_GUIDANCE.map(str::to_owned)).collect();
    let paths: Vec<RepoPath> = names.iter().filter_map(|name| RepoPath::exact(name).ok()).collect();
    let files = request.git.files_at(request.base, &paths.iter().collect::<Vec<_>>()).await?;
    let ids: Vec<&str> = files.values().map(String::as_str).collect();
    let texts = request.git.texts(&ids).await?;
    let mut seen = BTreeSet::new();
    let guidance = paths.iter().filter_map(|path| {
        let id = files.get(path)?;
        let text = texts.get(id)?.trim();
        // One of two names is often a link to the other: its text is a path.
        let is_link = !text.contains(char::is_whitespace) && text.ends_with(".md");
        (seen.insert(id) && !text.is_empty() && !is_link)
            .then(|| GuidanceFile { path: path.clone(), text: text.to_owned() })
    });
    Ok(guidance.collect())
}

#[derive(Default)]
struct FoundInRepository {
    callers: Vec<FoundCode>,
    definitions: Vec<FoundCode>,
    notes: Vec<String>,
}

/// Searches the files at the head that are nearest to the changed ones.
async fn search_repository(
    request: &ContextRequest<'_>,
    not_shown: &BTreeMap<RepoPath, &'static str>,
) -> Result<FoundInRepository, GitError> {
    let names = ChangedNames::of(request.files, not_shown);
    if names.is_empty() {
        return Ok(FoundInRepository::default());
    }
    let git = request.git;
    let changed: BTreeSet<&RepoPath> = request.files.iter().map(|file| &file.change.path).collect();
    let mut files: Vec<(RepoPath, String)> = git.all_files(request.head).await?;
    files.retain(|(path, _)| is_code(path) && !request.files.iter().any(|file| file.change.path == *path));
    files.retain(|(path, _)| crate::reviewers::llm::written_by(path).is_none());
    let places = changed_places(request.files);
    files.sort_by_cached_key(|(path, _)| (distance(path, &places), path.clone()));
    let (all, most) = (files.len(), if git.fetches() { SEARCHED_ELSEWHERE } else { SEARCHED_HERE });
    files.truncate(most);
    let ids: Vec<&str> = files.iter().map(|(_, id)| id.as_str()).collect();
    let mut contents = git.texts(&ids).await?;
    // Two files with the same content have one blob; one of them is enough.
    let texts: BTreeMap<RepoPath, String> =
        files.iter().filter_map(|(path, id)| Some((path.clone(), contents.remove(id)?))).collect();
    let (callers, definitions) = search(&names, &texts, &changed);
    let note = (all > most).then(|| {
        format!("context: callers and definitions were searched in the nearest {most} of {all} files with code")
    });
    let left_out = names.left_out;
    let unsearched = (left_out > 0).then(|| {
        let more = if left_out == 1 { "1 more name".to_owned() } else { format!("{left_out} more names") };
        format!("context: callers and definitions of {more} of functions were not searched")
    });
    Ok(FoundInRepository { callers, definitions, notes: note.into_iter().chain(unsearched).collect() })
}

fn is_code(path: &RepoPath) -> bool {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, extension)| CODE.contains(&extension))
}

/// The folders and the extensions of the changed files, without repetitions.
fn changed_places<'a>(files: &[FileToRead<'a>]) -> Vec<(Vec<&'a str>, &'a str)> {
    let places: BTreeSet<_> = files.iter().map(|file| place(file.change.path.as_str())).collect();
    places.into_iter().take(MOST_PLACES).collect()
}

/// The folders of a path, and its extension.
fn place(path: &str) -> (Vec<&str>, &str) {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    (folders.split('/').filter(|folder| !folder.is_empty()).collect(), extension)
}

/// How many folders lie between a file and the nearest changed one; a file in another language is farther away than any
/// in the same one.
fn distance(path: &RepoPath, changed: &[(Vec<&str>, &str)]) -> usize {
    const OTHER_LANGUAGE: usize = 100;
    let (own, extension) = place(path.as_str());
    let apart = |(theirs, other): &(Vec<&str>, &str)| {
        let shared = own.iter().zip(theirs).take_while(|(one, other)| one == other).count();
        own.len() + theirs.len() - 2 * shared + OTHER_LANGUAGE * usize::from(*other != extension)
    };
    changed.iter().map(apart).min().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::RepoPath;

    use super::{distance, place};

    #[test]
    fn near_files_come_first() {
        let changed = [place("src/pool/rise.rs"), place("web/a.ts")];
        let apart = |path: &str| distance(&RepoPath::exact(path).expect("a path"), &changed);
        assert_eq!(
            ["src/pool/low.rs", "src/tide.rs", "lib/tide.rs", "web/b.ts", "src/pool/a.py"].map(apart),
            [0, 1, 3, 0, 100]
        );
    }
}
