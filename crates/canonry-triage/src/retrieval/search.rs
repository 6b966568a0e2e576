//! `search`: finds items similar to a text or to another item.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemState, ItemType, PullChanges, Similarity, TITLE_LIMIT};
use canonry_models::{EmbedError, Embedder, InputType, TextEmbedding};
use canonry_retrieval::{Query, RetrievalMode, SearchHit};
use canonry_store::{Repo, Store, StoreError};

use crate::retrieval::boilerplate::stored_boilerplate;
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchFor {
    Text(String),
    SimilarTo(ItemNumber),
}

#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    pub mode: RetrievalMode,
    /// The state of the hits; `None` for any.
    pub state: Option<ItemState>,
    /// The maximum number of hits.
    pub limit: usize,
    pub min_score: Similarity,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

/// A hit, as shown to people.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundItem {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub state: ItemState,
    pub title: String,
    pub url: Option<String>,
    pub score: Similarity,
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("there is no item #{0} in the database; sync or import it first")]
    UnknownItem(ItemNumber),
    #[error("failed to {0}")]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Searches each neighbourhood (issues, pull requests, or both) and returns the best hits of all.
#[boxed]
pub async fn search(
    store: &Store,
    repo: &Repo,
    embedder: &dyn Embedder,
    neighbourhoods: &[Neighbourhood],
    search_for: &SearchFor,
    options: &SearchOptions,
) -> Result<Vec<FoundItem>, SearchError> {
    let asked = SearchedText::new(store, repo, embedder, search_for, options.mode).await?;
    let mut found = Vec::new();
    for neighbourhood in neighbourhoods {
        for hit in asked.hits(neighbourhood, options).await? {
            let item = store.corpus().item(repo.id, neighbourhood.item_type(), hit.number).await?;
            found.extend(item.map(|item| FoundItem {
                item_type: item.item_type,
                number: item.number,
                state: item.state,
                title: item.title,
                url: item.url,
                score: hit.score,
            }));
        }
    }
    // Each list is already sorted; a stable sort keeps the fused order among equals.
    found.sort_by_key(|item| std::cmp::Reverse(item.score));
    found.truncate(options.limit);
    Ok(found)
}

/// A search's text and vectors, the same for every neighbourhood.
struct SearchedText {
    title: String,
    body: String,
    changes: Option<PullChanges>,
    made: Option<TextEmbedding>,
    /// The item that is searched by; it is not a hit of its own search.
    own: Option<(ItemType, ItemNumber)>,
}

impl SearchedText {
    async fn new(
        store: &Store,
        repo: &Repo,
        embedder: &dyn Embedder,
        search_for: &SearchFor,
        mode: RetrievalMode,
    ) -> Result<Self, SearchError> {
        let mut asked = match search_for {
            SearchFor::Text(text) => {
                let (title, body) = divided(text.trim());
                Self { title: title.to_owned(), body: body.to_owned(), changes: None, made: None, own: None }
            }
            SearchFor::SimilarTo(number) => {
                let mut item = None;
                for item_type in ItemType::ALL {
                    item = item.or(store.corpus().item(repo.id, *item_type, *number).await?);
                }
                let item = item.ok_or(SearchError::UnknownItem(*number))?;
                let own = Some((item.item_type, item.number));
                let item = stored_boilerplate(store, repo, item.item_type).await?.own(&item);
                Self { title: item.title, body: item.body, changes: item.changes, made: None, own }
            }
        };
        if mode != RetrievalMode::Lexical {
            let input = if asked.own.is_some() { InputType::Document } else { InputType::Query };
            let text = canonry_domain::raw_text(&asked.title, &asked.body);
            asked.made = embedder.embed_with_tokens(&[text], input).await?.pop();
        }
        Ok(asked)
    }

    async fn hits(
        &self,
        neighbourhood: &Neighbourhood,
        options: &SearchOptions,
    ) -> Result<Vec<SearchHit>, RetrievalError> {
        let mut query = query_of_text(&self.title, &self.body, self.changes.as_ref(), self.made.as_ref());
        if let Some((item_type, number)) = self.own
            && item_type == neighbourhood.item_type()
        {
            query = query.for_item(number);
        }
        let vector = self.made.as_ref().map(|made| made.vector.as_slice());
        // Everything that is near at all: the terms then decide what stays.
        let wanted = NeighbourQuery { mode: options.mode, k: WIDE, min_score: Similarity::ZERO, state: options.state };
        let hits = neighbourhood.neighbours(&query, vector, wanted, &|_| true).await?;
        let index = neighbourhood.index();
        Ok(index.search_among(hits, options.mode, options.min_score, options.limit, &options.include, &options.exclude))
    }
}

/// The query of a text that is not an item of the index, with its vectors if they count.
pub(crate) fn query_of_text(
    title: &str,
    body: &str,
    changes: Option<&PullChanges>,
    made: Option<&TextEmbedding>,
) -> Query {
    let mut query = Query::new(title, body);
    if let Some(changes) = changes {
        query = query.with_changes(changes);
    }
    if let Some(made) = made {
        query = query.with_vector(made.vector.clone());
        if let Some(tokens) = &made.tokens {
            query = query.with_tokens(tokens.clone());
        }
    }
    query
}

/// The number of neighbours that a search chooses from.
const WIDE: usize = 400;

/// Splits a long query into title and body, between words: only the beginning of a title is read, and a person may
/// paste a whole log.
fn divided(text: &str) -> (&str, &str) {
    let Some((limit, _)) = text.char_indices().nth(TITLE_LIMIT) else { return (text, "") };
    text.split_at(text[..limit].rfind(char::is_whitespace).unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::divided;

    #[test]
    fn a_long_query_is_divided_between_words() {
        assert_eq!(divided("crash on start"), ("crash on start", ""));
        let long = "größer ".repeat(60);
        let (title, body) = divided(&long);
        assert!(title.ends_with("größer") && title.chars().count() <= 300 && body.starts_with(" größer"));
        assert_eq!(divided(&"x".repeat(301)), ("x".repeat(300).as_str(), "x"));
    }
}
