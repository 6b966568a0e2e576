//! Reads small files from a repository's default branch.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use canonry_boxed::boxed;
use canonry_domain::RepoName;
use serde::Deserialize;

use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFile {
    pub text: String,
    /// The hash of the blob.
    pub sha: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name without the path.
    pub name: String,
    pub is_folder: bool,
}

#[derive(Debug, Deserialize)]
struct ListedEntry {
    #[serde(default, rename = "type", deserialize_with = "lenient::or_default")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Contents {
    #[serde(default, rename = "type", deserialize_with = "lenient::or_default")]
    kind: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    encoding: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    content: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    sha: String,
}

#[boxed]
impl GitHub {
    /// The entries of a folder of the default branch; empty if the folder does not exist. Names that lead elsewhere are
    /// left out.
    pub async fn default_branch_folder(&self, repo: &RepoName, path: &str) -> Result<Vec<FolderEntry>, GitHubError> {
        let mut segments = vec!["repos", repo.owner(), repo.name(), "contents"];
        segments.extend(path.split('/'));
        let got = match self.get(&Scope::Repo(repo.clone()), self.url(&segments, &[])).await {
            Err(GitHubError::NotFound { .. }) => return Ok(Vec::new()),
            answer => answer?,
        };
        // The answer is an object if the path is a file.
        let listed: Vec<ListedEntry> = got.json().unwrap_or_default();
        let is_plain = |entry: &ListedEntry| !entry.name.is_empty() && !entry.name.contains('/') && entry.name != "..";
        let listed = listed.into_iter().filter(is_plain);
        Ok(listed.map(|entry| FolderEntry { is_folder: entry.kind == "dir", name: entry.name }).collect())
    }

    /// A text file of the default branch, never of a pull request; `None` if it does not exist.
    ///
    /// A file larger than `limit` bytes, a folder, or bytes that are not UTF-8 are a [`GitHubError::BadAnswer`].
    pub async fn default_branch_file(
        &self,
        repo: &RepoName,
        path: &str,
        limit: usize,
    ) -> Result<Option<RepoFile>, GitHubError> {
        let mut segments = vec!["repos", repo.owner(), repo.name(), "contents"];
        segments.extend(path.split('/'));
        let got = match self.get(&Scope::Repo(repo.clone()), self.url(&segments, &[])).await {
            Err(GitHubError::NotFound { .. }) => return Ok(None),
            answer => answer?,
        };
        let bad = |detail: String| GitHubError::BadAnswer { what: format!("{path} of {repo}"), detail };
        // The answer is a list if the path is a folder.
        let contents: Contents = got.json().map_err(|_| bad("it is not a file".to_owned()))?;
        if contents.kind != "file" {
            return Err(bad("it is not a file".to_owned()));
        }
        // Above a megabyte GitHub leaves the content out and says so in the encoding.
        let too_large = || bad(format!("it is larger than {limit} bytes"));
        if contents.encoding != "base64" {
            return Err(too_large());
        }
        let packed: Vec<u8> = contents.content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(packed).map_err(|_| bad("its content is not base64".to_owned()))?;
        if bytes.len() > limit {
            return Err(too_large());
        }
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8 text".to_owned()))?;
        Ok(Some(RepoFile { text, sha: contents.sha }))
    }
}
