//! Reads and writes labels of a repository and of its items.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, RepoName};
use reqwest::Method;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestLabel {
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub color: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: Option<String>,
}

#[boxed]
impl GitHub {
    pub fn labels(&self, repo: &RepoName) -> Pages<RestLabel> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "labels"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    pub fn item_labels(&self, repo: &RepoName, number: ItemNumber) -> Pages<RestLabel> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string(), "labels"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    /// Adds labels to an item and returns all its labels. Existing labels stay; GitHub creates labels that the
    /// repository does not have.
    pub async fn add_labels(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        labels: &[&str],
    ) -> Result<Vec<RestLabel>, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string(), "labels"], &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &json!({ "labels": labels })).await
    }

    /// Removes a label from an item; status 404 if the item does not have it.
    pub async fn remove_label(&self, repo: &RepoName, number: ItemNumber, label: &str) -> Result<(), WriteError> {
        let number = number.to_string();
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number, "labels", label], &[]);
        self.write(&Scope::Repo(repo.clone()), Method::DELETE, url, None).await.map(drop)
    }
}

/// Labels inside issues: objects, or bare names in old answers. Labels without a name are skipped.
pub(super) fn label_list<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<RestLabel>, D::Error> {
    let values: Vec<Value> = lenient::fitting(reader)?;
    Ok(values
        .into_iter()
        .filter_map(|value| match value {
            Value::String(name) => Some(RestLabel { name, color: String::new(), description: None }),
            value => serde_json::from_value(value).ok(),
        })
        .collect())
}
