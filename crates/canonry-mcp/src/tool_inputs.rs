//! The inputs of the tools.

use canonry_domain::{ItemNumber, ItemState, ItemType};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DraftInput {
    /// The repository as OWNER/NAME. May be left out where the server knows only one.
    pub(crate) repo: Option<String>,
    /// The title of the issue that you are about to file.
    pub(crate) title: String,
    /// Its text, with error messages and stack traces as they were printed.
    pub(crate) body: Option<String>,
    /// The GitHub login of whoever will file it.
    pub(crate) author: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffInput {
    /// The repository as OWNER/NAME. May be left out where the server knows only one.
    pub(crate) repo: Option<String>,
    /// The change as a unified diff, as `git diff` prints it.
    pub(crate) diff: Option<String>,
    /// Instead of `diff`: two commits of the clone that the server was started in, such as `main..HEAD`.
    pub(crate) range: Option<String>,
    /// The title of the pull request.
    pub(crate) title: Option<String>,
    /// Its description.
    pub(crate) body: Option<String>,
    /// The GitHub login of whoever opens it: their own pull requests are no match.
    pub(crate) author: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SearchInput {
    /// The repository as OWNER/NAME. May be left out where the server knows only one.
    pub(crate) repo: Option<String>,
    /// What to search for: a sentence, an error message, the name of a function.
    pub(crate) query: String,
    /// Only issues, or only pull requests.
    #[serde(rename = "type")]
    pub(crate) item_type: Option<ItemType>,
    pub(crate) state: Option<ItemState>,
    /// The maximum number of items, 1 to 50; 10 if left out.
    #[schemars(with = "Option<i64>")]
    pub(crate) limit: Option<u16>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ItemInput {
    /// The repository as OWNER/NAME. May be left out where the server knows only one.
    pub(crate) repo: Option<String>,
    /// The number of the issue or pull request.
    #[schemars(with = "i64", range(min = 1))]
    pub(crate) number: ItemNumber,
}
