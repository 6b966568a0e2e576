//! What the lists of jobs and deliveries share: each lists everything, for operators, or one repository.

use std::collections::HashMap;

use crate::layout::formatting::is_plain;
use crate::layout::page::{NavSection, PageFrame, repo_path};
use crate::layout::paging::{Pager, word};
use crate::sign_in::visit::{RepoVisit, Visit};

pub(crate) struct WorkListKind {
    pub(crate) title: &'static str,
    pub(crate) section: NavSection,
    pub(crate) tail: &'static str,
    /// The command that prints the same list, and those of its options that are filters of the page.
    pub(crate) command: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) label: &'static str,
    pub(crate) filters: &'static [&'static str],
}

pub(crate) struct WorkList<'a> {
    pub(crate) page: PageFrame,
    pub(crate) path: String,
    /// The name of the list's repository; empty if the list is of all.
    pub(crate) repo: String,
    /// Whether the address names the repository, not a filter.
    pub(crate) is_of_repo: bool,
    work: &'static WorkListKind,
    query: &'a HashMap<String, String>,
}

impl<'a> WorkList<'a> {
    pub(crate) fn of_all(work: &'static WorkListKind, visit: &Visit, query: &'a HashMap<String, String>) -> Self {
        let (page, path) = (visit.page(work.title, work.section), work.tail.to_owned());
        Self::new(work, page, path, word(query, "repo").to_owned(), false, query)
    }

    pub(crate) fn of_repo(work: &'static WorkListKind, at: &RepoVisit, query: &'a HashMap<String, String>) -> Self {
        let path = format!("{}{}", repo_path(&at.repo), work.tail);
        Self::new(work, at.page(work.title, work.section), path, at.repo.name.to_string(), true, query)
    }

    fn new(
        work: &'static WorkListKind,
        page: PageFrame,
        path: String,
        repo: String,
        is_of_repo: bool,
        query: &'a HashMap<String, String>,
    ) -> Self {
        // Text of strangers must stay out of a command that a reader may copy into a shell; a repository name is one
        // of GitHub's.
        let options = work.options.iter().map(|option| (*option, word(query, option)));
        let options = options.chain([("repo", repo.as_str())]);
        let mut command = work.command.to_owned();
        for (option, word) in options.filter(|(_, word)| is_plain(word)) {
            command.push_str(&format!(" --{option} {word}"));
        }
        Self { page: page.cli(command), path, repo, is_of_repo, work, query }
    }

    pub(crate) fn word(&self, name: &str) -> &'a str {
        word(self.query, name)
    }

    /// The repository as a filter; empty if the address names it.
    pub(crate) fn chosen_repo(&self) -> &str {
        if self.is_of_repo { "" } else { &self.repo }
    }

    /// The pager of the list; `next` is the row before its next page.
    pub(crate) fn pager(&self, is_first: bool, next: Option<String>) -> Pager {
        let mut kept: Vec<(&str, &str)> = self.work.filters.iter().map(|name| (*name, self.word(name))).collect();
        kept.push(("repo", self.chosen_repo()));
        Pager::new(self.work.label, &self.path, &kept, is_first, next.map(|next| ("before", next)))
    }
}
