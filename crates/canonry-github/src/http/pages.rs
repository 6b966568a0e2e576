//! Reads lists page by page, along GitHub's `Link` cursors.

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::etag_cache::{Etag, EtagCache};
use crate::http::read::{Answer, Got};

/// No list has more pages: two million items, several times the largest repository known.
const MOST_PAGES: usize = 20_000;
/// The most that GitHub returns at once.
pub(crate) const PER_PAGE: (&str, &str) = ("per_page", "100");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In GitHub's order.
    pub items: Vec<T>,
    pub is_last: bool,
    /// The ETag to store once the items are stored. Only a first page that is also the last has one: "not modified" is
    /// then about the whole list.
    pub etag: Option<Etag>,
}

/// A list that is being read. A page that failed can be requested again: the position is kept.
#[derive(Debug)]
pub struct Pages<T> {
    github: GitHub,
    scope: Scope,
    next: Option<Url>,
    seen: HashSet<String>,
    /// The field that contains the list, if the answer is an object.
    field: Option<&'static str>,
    items: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Pages<T> {
    pub(crate) fn new(github: &GitHub, scope: Scope, first: Url) -> Self {
        let seen = HashSet::from([first.to_string()]);
        Self { github: github.clone(), scope, next: Some(first), seen, field: None, items: PhantomData }
    }

    /// A list in a field of its answers.
    pub(crate) fn below(github: &GitHub, scope: Scope, first: Url, field: &'static str) -> Self {
        Self { field: Some(field), ..Self::new(github, scope, first) }
    }

    /// The next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Page<T>>, GitHubError> {
        let Some(url) = self.next.clone() else { return Ok(None) };
        let got = self.github.get(&self.scope, url).await?;
        self.take(&got).map(Some)
    }

    /// The first page, unless the whole list is unchanged since its ETag was stored. In that case the list ends.
    pub async fn first_if_changed(&mut self, etags: &dyn EtagCache) -> Result<Answer<Page<T>>, GitHubError> {
        let Some(url) = self.next.clone() else { return Ok(Answer::NotModified) };
        match self.github.get_if_changed(&self.scope, url, etags).await? {
            Answer::NotModified => {
                self.next = None;
                Ok(Answer::NotModified)
            }
            Answer::Fresh(got) => {
                let mut page = self.take(&got)?;
                page.etag = got.etag.filter(|_| page.is_last);
                Ok(Answer::Fresh(page))
            }
        }
    }

    /// All remaining pages, for lists that are short by nature.
    pub async fn all(mut self) -> Result<Vec<T>, GitHubError> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page.items);
        }
        Ok(all)
    }

    pub(crate) async fn all_values(self) -> Result<Vec<Value>, GitHubError> {
        let Self { github, scope, next, seen, field, .. } = self;
        Pages { github, scope, next, seen, field, items: PhantomData }.all().await
    }

    fn take(&mut self, got: &Got) -> Result<Page<T>, GitHubError> {
        let items = match self.field {
            None => got.json()?,
            Some(field) => got.json_in(field)?,
        };
        let next = got.next.as_deref().map(|next| self.checked(&got.what, next)).transpose()?;
        if let Some(next) = &next {
            self.seen.insert(next.to_string());
        }
        let is_last = next.is_none();
        self.next = next;
        Ok(Page { items, is_last, etag: None })
    }

    /// Checks an untrusted cursor: it must lead to a new page of the same API, and not in a circle.
    fn checked(&self, what: &str, next: &str) -> Result<Url, GitHubError> {
        let bad = |detail: &str| GitHubError::BadAnswer { what: what.to_owned(), detail: detail.to_owned() };
        let next = Url::parse(next).map_err(|_| bad("its next page has no address"))?;
        if !self.github.is_ours(&next) {
            return Err(bad("its next page is on another host"));
        }
        if self.seen.contains(next.as_str()) {
            return Err(bad("its pages repeat"));
        }
        if self.seen.len() >= MOST_PAGES {
            return Err(bad("it has no last page"));
        }
        Ok(next)
    }
}
