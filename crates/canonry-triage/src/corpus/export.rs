//! `export`: writes corpus items in the import format.

use canonry_boxed::boxed;
use std::io::{self, Write};

use canonry_domain::{Item, ItemType, RepoName};
use canonry_store::{ItemFilter, Repo, Store, StoreError};
use serde::Serialize;

#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the export cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// One line of the import format. Unknown values are left out, so that they stay unknown after an import.
#[derive(Serialize)]
struct Line<'a> {
    repo: &'a RepoName,
    #[serde(rename = "type")]
    item_type: ItemType,
    number: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    title: &'a str,
    body: &'a str,
    state: &'static str,
    state_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assignees: Option<Vec<&'a str>>,
    labels: &'a [String],
    comments: u32,
    review_comments: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    closed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    duplicate_of: Option<i64>,
    merged: bool,
    draft: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(repo: &'a RepoName, item: &'a Item) -> Self {
        Self {
            repo,
            item_type: item.item_type,
            number: item.number.get(),
            id: item.github_id.map(|id| id.0),
            title: &item.title,
            body: &item.body,
            state: item.state.as_str(),
            state_reason: item.state_reason.map(|reason| reason.as_str()),
            author: item.author.as_ref().map(|login| login.as_str()),
            assignees: item.assignees.as_ref().map(|logins| logins.iter().map(|login| login.as_str()).collect()),
            labels: &item.labels,
            comments: item.comments,
            review_comments: item.review_comments,
            created_at: item.created_at.map(|at| at.to_string()),
            updated_at: item.updated_at.map(|at| at.to_string()),
            closed_at: item.closed_at.map(|at| at.to_string()),
            url: item.url.as_deref(),
            duplicate_of: item.duplicate_of.map(|number| number.get()),
            merged: item.merged,
            draft: item.draft,
            files: item.changes.as_ref().map(|changes| changes.files.as_slice()),
            diff: item.changes.as_ref().map(|changes| changes.diff.as_str()),
            base: item.base_branch.as_deref(),
        }
    }
}

/// Items are read page by page, so that memory does not grow with the repository.
const PAGE: u32 = 500;

/// Writes the items of a repository as JSON lines, by number, and returns their count. Items that have left the
/// repository are left out.
#[boxed]
pub async fn export(
    store: &Store,
    repo: &Repo,
    filter: ItemFilter,
    output: &mut (dyn Write + Send),
) -> Result<u64, ExportFailure> {
    let mut after = None;
    let mut count = 0;
    loop {
        let items = store.corpus().items_after(repo.id, filter, after, PAGE).await?;
        let Some(last) = items.last() else {
            output.flush()?;
            return Ok(count);
        };
        after = Some((last.number, last.item_type));
        for item in &items {
            serde_json::to_writer(&mut *output, &Line::new(&repo.name, item)).map_err(io::Error::from)?;
            output.write_all(b"\n")?;
        }
        count += items.len() as u64;
    }
}
