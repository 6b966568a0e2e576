//! Parses one line of an import file, or one object of GitHub's REST API, into a record.

use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    GithubId, ItemNumber, ItemRecord, ItemState, ItemType, Login, PullChanges, RepoName, StateReason, parse_moment,
};

/// An imported item and the repository it names, if it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportLine {
    /// `None` means the repository that the caller chose.
    pub repo: Option<RepoName>,
    pub record: ItemRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The line is JSON, but not an object.
    #[error("expected a JSON object with number and title, found {found}")]
    NotAnObject {
        /// The kind of JSON value that was found instead.
        found: &'static str,
    },
    #[error("{field} is missing")]
    Missing { field: &'static str },
    /// A field has a value that is not allowed there.
    #[error("{field} {problem}")]
    Field { field: &'static str, problem: String },
}

/// Reads an object: Canonry's own import line, or what `gh api` prints for an issue or pull request.
///
/// Unknown keys are ignored (GitHub's objects have dozens). A known key with an invalid value is an error, because
/// guessing would store something that nobody wrote.
pub fn parse_import_value(value: &Value) -> Result<ImportLine, ImportError> {
    let Value::Object(object) = value else {
        return Err(ImportError::NotAnObject { found: kind_of(value) });
    };
    let fields = ImportFields { object };
    let number = fields.number("number")?.ok_or(ImportError::Missing { field: "number" })?;
    let title = fields.text("title")?.ok_or(ImportError::Missing { field: "title" })?;
    let item_type = fields.item_type()?;
    let merged_at = fields.merged_at()?;
    let record = ItemRecord {
        github_id: fields.integer("id", i64::MIN, i64::MAX)?.map(GithubId),
        body: fields.nullable("body", ImportFields::text)?.map(Option::unwrap_or_default),
        state: fields.state()?,
        state_reason: fields.nullable("state_reason", ImportFields::word::<StateReason>)?,
        merged: fields.boolean("merged")?.or(merged_at.map(|at| at.is_some())),
        draft: fields.boolean("draft")?,
        author: fields.author()?,
        assignees: fields.names("assignees", "login")?.map(|names| logins("assignees", &names)).transpose()?,
        has_milestone: fields.get("milestone").map(Value::is_object),
        locked: fields.boolean("locked")?,
        labels: fields.names("labels", "name")?,
        comments: fields.count("comments")?,
        review_comments: fields.count("review_comments")?,
        created_at: fields.moment("created_at")?,
        updated_at: fields.moment("updated_at")?,
        closed_at: fields.nullable("closed_at", ImportFields::moment)?,
        url: fields.url()?,
        duplicate_of: fields.nullable("duplicate_of", ImportFields::number)?,
        changes: fields.changes()?,
        base_branch: fields.base_branch()?,
        ..ItemRecord::new(item_type, number, title)
    };
    Ok(ImportLine { repo: fields.repo()?, record })
}

struct ImportFields<'a> {
    object: &'a Map<String, Value>,
}

impl<'a> ImportFields<'a> {
    /// The value of a key; null counts as absent.
    fn get(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    /// Distinguishes an absent key (`None`) from an explicit null (`Some(None)`).
    fn nullable<T>(
        &self,
        field: &'static str,
        read: impl Fn(&Self, &'static str) -> Result<Option<T>, ImportError>,
    ) -> Result<Option<Option<T>>, ImportError> {
        if !self.object.contains_key(field) {
            return Ok(None);
        }
        read(self, field).map(Some)
    }

    fn text(&self, field: &'static str) -> Result<Option<String>, ImportError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong_kind(field, "a text", other)),
        }
    }

    fn boolean(&self, field: &'static str) -> Result<Option<bool>, ImportError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(wrong_kind(field, "true or false", other)),
        }
    }

    fn integer(&self, field: &'static str, least: i64, most: i64) -> Result<Option<i64>, ImportError> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        if !value.is_number() {
            return Err(wrong_kind(field, "a whole number", value));
        }
        match value.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(ImportError::Field {
                field,
                problem: format!("is {value}, which is not a whole number from {least} to {most}"),
            }),
        }
    }

    fn number(&self, field: &'static str) -> Result<Option<ItemNumber>, ImportError> {
        let number = self.integer(field, 1, i64::MAX)?;
        Ok(number.map(|number| ItemNumber::new(number).expect("invariant: the range begins at 1")))
    }

    fn count(&self, field: &'static str) -> Result<Option<u32>, ImportError> {
        // Both database engines store counts in 32 signed bits.
        let count = self.integer(field, 0, i64::from(i32::MAX))?;
        Ok(count.map(|count| u32::try_from(count).expect("invariant: the range fits")))
    }

    fn word<T: FromStr<Err: std::fmt::Display>>(&self, field: &'static str) -> Result<Option<T>, ImportError> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        let word = text.trim().to_ascii_lowercase();
        if word.is_empty() {
            return Ok(None);
        }
        word.parse()
            .map(Some)
            .map_err(|error: T::Err| ImportError::Field { field, problem: format!("is wrong: {error}") })
    }

    fn moment(&self, field: &'static str) -> Result<Option<Timestamp>, ImportError> {
        let Some(text) = self.text(field)?.filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        parse_moment(&text)
            .map(Some)
            .map_err(|error| ImportError::Field { field, problem: format!("is wrong: {error}") })
    }

    fn item_type(&self) -> Result<ItemType, ImportError> {
        if let Some(item_type) = self.word("type")? {
            return Ok(item_type);
        }
        // GitHub lists pull requests among the issues; this key distinguishes them. GitHub's pull request objects have
        // `head` and `base` instead.
        let is_pull = self.get("pull_request").is_some() || (self.get("head").is_some() && self.get("base").is_some());
        Ok(if is_pull { ItemType::Pr } else { ItemType::Issue })
    }

    fn state(&self) -> Result<Option<ItemState>, ImportError> {
        let Some(text) = self.text("state")? else {
            return Ok(None);
        };
        match state_of(&text) {
            Some(state) => Ok(Some(state)),
            // The error lists the values that are always valid.
            None => self.word("state"),
        }
    }

    /// `Some(None)` if GitHub says that the pull request was not merged.
    fn merged_at(&self) -> Result<Option<Option<Timestamp>>, ImportError> {
        if let Some(Value::Object(pull)) = self.get("pull_request") {
            return ImportFields { object: pull }.nullable("merged_at", ImportFields::moment);
        }
        self.nullable("merged_at", ImportFields::moment)
    }

    fn author(&self) -> Result<Option<Login>, ImportError> {
        let name = match (self.get("author"), self.get("user")) {
            (Some(Value::String(name)), _) => name,
            (Some(Value::Object(person)), _) | (None, Some(Value::Object(person))) => match person.get("login") {
                Some(Value::String(name)) => name,
                _ => return Ok(None),
            },
            (None, Some(Value::String(name))) => name,
            (None, None) => return Ok(None),
            (Some(other), _) | (None, Some(other)) => return Err(wrong_kind("author", "a login", other)),
        };
        if name.trim().is_empty() {
            return Ok(None);
        }
        login("author", name).map(Some)
    }

    /// A list of names. Each entry is a text, or an object that has the name under `key`.
    fn names(&self, field: &'static str, key: &str) -> Result<Option<Vec<String>>, ImportError> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        let Value::Array(entries) = value else {
            return Err(wrong_kind(field, "a list", value));
        };
        let names = entries.iter().map(|entry| match entry {
            Value::String(name) => Ok(name.clone()),
            Value::Object(object) => match object.get(key) {
                Some(Value::String(name)) => Ok(name.clone()),
                _ => Err(ImportError::Field { field, problem: format!("has an entry without {key}") }),
            },
            other => Err(ImportError::Field { field, problem: format!("has {} as an entry", kind_of(other)) }),
        });
        names.collect::<Result<Vec<_>, _>>().map(Some)
    }

    fn url(&self) -> Result<Option<String>, ImportError> {
        // In GitHub's objects `url` is the address in the API; people read `html_url`.
        if self.get("html_url").is_some() { self.text("html_url") } else { self.text("url") }
    }

    fn changes(&self) -> Result<Option<PullChanges>, ImportError> {
        let (files, diff) = (self.names("files", "filename")?, self.text("diff")?);
        if files.is_none() && diff.is_none() {
            return Ok(None);
        }
        Ok(Some(PullChanges { files: files.unwrap_or_default(), diff: diff.unwrap_or_default() }))
    }

    /// The name under `base`, the `ref` of GitHub's object there, or the name under `base_ref`.
    fn base_branch(&self) -> Result<Option<String>, ImportError> {
        let name = match self.get("base") {
            Some(Value::Object(base)) => ImportFields { object: base }.text("ref")?,
            Some(_) => self.text("base")?,
            None => self.text("base_ref")?,
        };
        Ok(name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()))
    }

    fn repo(&self) -> Result<Option<RepoName>, ImportError> {
        let Some(text) = self.text("repo")? else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|error| ImportError::Field { field: "repo", problem: format!("is wrong: {error}") })
    }
}

/// Maps states of GitHub, and of Bugzilla and Jira, whose exports are imported too.
fn state_of(text: &str) -> Option<ItemState> {
    let word = text.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    Some(match word.as_str() {
        "open" | "new" | "unconfirmed" | "confirmed" | "assigned" | "accepted" | "started" | "reopened" | "todo"
        | "to_do" | "in_progress" | "in_review" | "patch_available" => ItemState::Open,
        "closed" | "resolved" | "verified" | "fixed" | "done" | "merged" => ItemState::Closed,
        _ => return None,
    })
}

fn login(field: &'static str, name: &str) -> Result<Login, ImportError> {
    name.parse().map_err(|error| ImportError::Field { field, problem: format!("is wrong: {error}") })
}

fn logins(field: &'static str, names: &[String]) -> Result<Vec<Login>, ImportError> {
    names.iter().map(|name| login(field, name)).collect()
}

fn wrong_kind(field: &'static str, wanted: &str, found: &Value) -> ImportError {
    ImportError::Field { field, problem: format!("must be {wanted}, found {}", kind_of(found)) }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse_import_value;
    use crate::{GithubId, ItemState, ItemType, StateReason};

    #[test]
    fn number_and_title_are_enough() {
        let line = parse_import_value(&json!({"number": 3, "title": "t"})).expect("valid");
        assert_eq!((line.repo, line.record.item_type, line.record.number.get()), (None, ItemType::Issue, 3));
        assert_eq!((line.record.body, line.record.author, line.record.assignees), (None, None, None));
    }

    #[test]
    fn a_pull_request_among_githubs_issues() {
        let line = parse_import_value(&json!({
            "id": 5_000_000_000_i64, "number": 9, "title": "Fix", "body": null, "state": "closed", "state_reason": null,
            "user": {"login": "mona"}, "assignees": [{"login": "hubot"}], "labels": [{"name": "bug"}],
            "comments": 2, "draft": false, "created_at": "2026-01-01T00:00:00Z", "closed_at": "2026-01-02T00:00:00Z",
            "url": "https://api.github.com/repos/o/n/issues/9", "html_url": "https://github.com/o/n/pull/9",
            "pull_request": {"merged_at": "2026-01-02T00:00:00Z"}, "author_association": "MEMBER"
        }))
        .expect("valid");
        let record = line.record;
        assert_eq!(
            (record.item_type, record.merged, record.state),
            (ItemType::Pr, Some(true), Some(ItemState::Closed))
        );
        assert_eq!((record.github_id, record.body.as_deref()), (Some(GithubId(5_000_000_000)), Some("")));
        assert_eq!(record.url.as_deref(), Some("https://github.com/o/n/pull/9"));
        assert_eq!(record.author.map(|login| login.to_string()).as_deref(), Some("mona"));
        assert_eq!(record.state_reason, Some(None));
    }

    #[test]
    fn the_base_branch_is_read_in_every_shape() {
        for (value, expected) in [
            (json!({"number": 9, "title": "t", "head": {"ref": "topic"}, "base": {"ref": "main"}}), Some("main")),
            (json!({"number": 9, "title": "t", "type": "pr", "base": "release/1.2"}), Some("release/1.2")),
            (json!({"number": 9, "title": "t", "type": "pr", "base_ref": "main"}), Some("main")),
            (json!({"number": 9, "title": "t", "type": "pr", "base": " "}), None),
            (json!({"number": 9, "title": "t", "type": "pr"}), None),
        ] {
            assert_eq!(parse_import_value(&value).expect("valid").record.base_branch.as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_value_that_a_field_cannot_hold_is_named() {
        for (value, message) in [
            (json!([1]), "expected a JSON object with number and title, found a list"),
            (json!({"title": "t"}), "number is missing"),
            (json!({"number": 1, "title": "t", "base": 3}), "base must be a text, found a number"),
            (json!({"number": 1}), "title is missing"),
            (json!({"number": "1", "title": "t"}), "number must be a whole number, found a text"),
            (
                json!({"number": 0, "title": "t"}),
                "number is 0, which is not a whole number from 1 to 9223372036854775807",
            ),
            (
                json!({"number": 9_223_372_036_854_775_808_u64, "title": "t"}),
                "number is 9223372036854775808, which is not a whole number from 1 to 9223372036854775807",
            ),
            (
                json!({"number": 1.5, "title": "t"}),
                "number is 1.5, which is not a whole number from 1 to 9223372036854775807",
            ),
            (
                json!({"number": 1, "title": "t", "comments": -1}),
                "comments is -1, which is not a whole number from 0 to 2147483647",
            ),
            (json!({"number": 1, "title": 5}), "title must be a text, found a number"),
            (
                json!({"number": 1, "title": "t", "state": "ajar"}),
                "state is wrong: \"ajar\" is not a state; it must be one of open, closed",
            ),
            (
                json!({"number": 1, "title": "t", "created_at": "soon"}),
                "created_at is wrong: \"soon\" is not a time; write it as 2026-02-01T12:00:00Z",
            ),
            (json!({"number": 1, "title": "t", "labels": "bug"}), "labels must be a list, found a text"),
            (json!({"number": 1, "title": "t", "labels": [{"id": 1}]}), "labels has an entry without name"),
            (
                json!({"number": 1, "title": "t", "duplicate_of": 0}),
                "duplicate_of is 0, which is not a whole number from 1 to 9223372036854775807",
            ),
        ] {
            assert_eq!(parse_import_value(&value).expect_err("refused").to_string(), message, "{value}");
        }
    }

    #[test]
    fn other_trackers_states_are_open_or_closed() {
        for (word, state) in [
            ("UNCONFIRMED", ItemState::Open),
            ("Patch Available", ItemState::Open),
            ("In Progress", ItemState::Open),
            ("Reopened", ItemState::Open),
            ("RESOLVED", ItemState::Closed),
            ("VERIFIED", ItemState::Closed),
        ] {
            let line = parse_import_value(&json!({"number": 1, "title": "t", "state": word})).expect(word);
            assert_eq!(line.record.state, Some(state), "{word}");
        }
    }

    #[test]
    fn words_are_read_in_any_case() {
        let line =
            parse_import_value(&json!({"number": 1, "title": "t", "state": "CLOSED", "state_reason": "DUPLICATE"}));
        let record = line.expect("valid").record;
        assert_eq!((record.state, record.state_reason), (Some(ItemState::Closed), Some(Some(StateReason::Duplicate))));
    }
}
