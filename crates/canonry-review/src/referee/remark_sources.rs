//! Reads the comments of other reviewers: from GitHub, or from a file with GitHub's answers.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use canonry_domain::review::{LineRange, RemarkAuthor, RemarkThread, ReviewRemark, is_named_bot, remark_essence};
use canonry_domain::{GithubId, ItemNumber, Login, RepoName, counted};
use canonry_github::api::{ReactionSubject, RestReviewComment, RestUser};
use canonry_github::{GitHub, GitHubError};
use serde_json::Value;

use crate::reviewers::{ReportError, read_report};

/// The comments that are weighed; a review with more is not read by anybody.
const MOST_REMARKS: usize = 300;
/// The comments whose reactions are read one by one.
const MOST_REACTIONS: usize = 50;
/// What every text of Canonry contains.
const OWN_MARK: &str = "canonry:v1:";

/// The comments that were read, and what was not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeardRemarks {
    pub remarks: Vec<ReviewRemark>,
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RemarkFileError {
    #[error(transparent)]
    File(#[from] ReportError),
    #[error(
        "read the comments in {name}: it is not JSON as `gh api repos/OWNER/NAME/pulls/NUMBER/comments` prints it ({error})"
    )]
    Json { name: String, error: serde_json::Error },
}

/// Reads the comments on a pull request, with the states of their threads and people's reactions.
#[boxed]
pub async fn remarks_of_pull(
    github: &GitHub,
    own: &Login,
    repo: &RepoName,
    number: ItemNumber,
    bots: &[String],
) -> Result<HeardRemarks, GitHubError> {
    let comments = github.review_comments(repo, number).all().await?;
    let mut heard = HeardRemarks::default();
    let resolved = match github.review_threads(repo, number).await {
        Ok(threads) => {
            let resolved = threads.into_iter().filter(|thread| thread.is_resolved);
            resolved.flat_map(|thread| thread.comments).map(|comment| comment.id).collect()
        }
        Err(error) => {
            heard.notes.push(format!("which threads of other reviewers are resolved is unknown: failed to {error}"));
            BTreeSet::new()
        }
    };
    heard.take(&comments, bots, Some(own), &resolved);
    let counts: BTreeMap<GithubId, bool> =
        comments.iter().map(|one| (GithubId(one.id), one.reactions.plus_one + one.reactions.minus_one > 0)).collect();
    let (mut asked, mut unread) = (0, 0);
    for remark in &mut heard.remarks {
        remark.thumbs = (0, 0);
        if !counts.get(&remark.id).copied().unwrap_or_default() {
            continue;
        }
        // Unknown reactions count as none: the comment is weighed by the rest.
        let reactions = match asked {
            MOST_REACTIONS => None,
            _ => github.reactions(repo, ReactionSubject::ReviewComment(remark.id)).all().await.ok(),
        };
        asked = MOST_REACTIONS.min(asked + 1);
        let Some(reactions) = reactions else {
            unread += 1;
            continue;
        };
        let people = |content: &str| {
            let by = reactions.iter().filter(|one| one.content == content).filter_map(|one| one.user.as_ref());
            let people = by.filter(|user| !user.is_bot() && !is_named_bot(&user.login, bots));
            let others = people.filter_map(RestUser::to_login).filter(|login| *login != remark.author.login);
            others.map(|login| login.key()).collect::<BTreeSet<String>>().len() as u32
        };
        remark.thumbs = (people("+1"), people("-1"));
    }
    if unread > 0 {
        let comments = counted(unread, "comment");
        heard.notes.push(format!("the reactions to {comments} of other reviewers were not read and count as none"));
    }
    Ok(heard)
}

/// Reads comments from a file: one or several lists, as `gh api --paginate` prints them. It does not say which threads
/// are resolved, nor who reacted.
#[boxed]
pub async fn remarks_of_file(path: &Path, bots: &[String]) -> Result<HeardRemarks, RemarkFileError> {
    let bytes = read_report(path).await?;
    let name = || path.display().to_string();
    let mut comments = Vec::new();
    let mut unreadable = 0;
    for list in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
        let list = list.map_err(|error| RemarkFileError::Json { name: name(), error })?;
        for value in flat(list) {
            match serde_json::from_value::<RestReviewComment>(value) {
                Ok(comment) => comments.push(comment),
                Err(_) => unreadable += 1,
            }
        }
    }
    let mut heard = HeardRemarks::default();
    if unreadable > 0 {
        heard.notes.push(format!("{unreadable} entries in {} are not review comments and were left out", name()));
    }
    heard.take(&comments, bots, None, &BTreeSet::new());
    Ok(heard)
}

/// The comments in lists, or in lists of lists as `gh api --slurp` prints them.
fn flat(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values.into_iter().flat_map(flat).collect(),
        value => vec![value],
    }
}

impl HeardRemarks {
    fn take(
        &mut self,
        comments: &[RestReviewComment],
        bots: &[String],
        own: Option<&Login>,
        resolved: &BTreeSet<GithubId>,
    ) {
        let mut seen = BTreeSet::new();
        let mut remarks: Vec<ReviewRemark> = comments
            .iter()
            .filter(|one| seen.insert(one.id))
            .filter_map(|one| remark(one, bots, own, resolved))
            .collect();
        if remarks.len() > MOST_REMARKS {
            let left_out = remarks.len() - MOST_REMARKS;
            self.notes.push(format!(
                "{left_out} comments of other reviewers beyond the first {MOST_REMARKS} were not weighed"
            ));
            remarks.truncate(MOST_REMARKS);
        }
        self.remarks = remarks;
    }
}

/// A remark of a named bot or a person; `None` for replies, other bots, Canonry itself, and what says nothing.
fn remark(
    comment: &RestReviewComment,
    bots: &[String],
    own: Option<&Login>,
    resolved: &BTreeSet<GithubId>,
) -> Option<ReviewRemark> {
    let user = comment.user.as_ref()?;
    let login = user.to_login()?;
    let is_bot = is_named_bot(&user.login, bots);
    let is_own = own == Some(&login) || comment.body.contains(OWN_MARK);
    if is_own || comment.in_reply_to_id.is_some() || (user.is_bot() && !is_bot) {
        return None;
    }
    let text = remark_essence(&comment.body);
    if text.is_empty() {
        return None;
    }
    let id = GithubId(comment.id);
    let line = |line: Option<i64>| line.and_then(|line| u32::try_from(line).ok());
    let is_new_side = !comment.side.as_deref().is_some_and(|side| side.eq_ignore_ascii_case("left"));
    let last = line(comment.line).filter(|_| is_new_side);
    let is_about_file = comment.subject_type.as_deref() == Some("file");
    let lines = last.and_then(|last| LineRange::new(line(comment.start_line).unwrap_or(last), last));
    Some(ReviewRemark {
        id,
        author: RemarkAuthor { login, is_bot },
        path: comment.path.parse().ok()?,
        lines,
        text,
        link: checked_link(&comment.html_url, comment.id),
        said_at: comment.created_at,
        thread: RemarkThread {
            is_resolved: resolved.contains(&id),
            is_outdated: comment.line.is_none() && !is_about_file,
        },
        thumbs: (comment.reactions.plus_one, comment.reactions.minus_one),
    })
}

/// The address of a review comment, if it is one: `https://HOST/OWNER/NAME/pull/NUMBER#discussion_rID`. It is put into
/// Markdown as it is.
fn checked_link(link: &str, id: i64) -> Option<String> {
    let parts: Vec<&str> = link.strip_prefix("https://")?.split('/').collect();
    let [host, owner, name, "pull", place] = parts.as_slice() else { return None };
    let (number, comment) = place.split_once("#discussion_r")?;
    let is_plain = |text: &str, others: &str| {
        !text.is_empty() && text.len() <= 253 && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    let is_address = is_plain(host, ".-:") && is_plain(owner, "-_") && is_plain(name, ".-_");
    let is_ours = number.parse::<u32>().is_ok() && comment.parse() == Ok(id);
    (is_address && is_ours).then(|| link.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{checked_link, remarks_of_file};

    #[test]
    fn only_addresses_of_comments_are_links() {
        let link = "https://github.com/acme/widgets/pull/7#discussion_r12";
        assert_eq!(checked_link(link, 12).as_deref(), Some(link));
        for (bad, id) in [
            (link, 13),
            ("http://github.com/acme/widgets/pull/7#discussion_r12", 12),
            ("https://github.com/acme/widgets/pull/7)[x](https://evil.example/#discussion_r12", 12),
            ("https://github.com/acme/wid gets/pull/7#discussion_r12", 12),
            ("https://mona@github.com/acme/widgets/pull/7#discussion_r12", 12),
            ("https://github.com/acme/widgets/issues/7#discussion_r12", 12),
            ("", 12),
        ] {
            assert_eq!(checked_link(bad, id), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn a_file_holds_what_gh_prints() {
        let comment = |id: i64, login: &str, kind: &str| {
            json!({"id": id, "user": {"login": login, "type": kind}, "path": "src/a.js", "line": 4, "start_line": 3, "side": "RIGHT",
                "body": "**Bug**: this throws when `x` is null", "html_url": format!("https://github.com/o/n/pull/1#discussion_r{id}"),
                "created_at": "2026-01-02T03:04:05Z", "reactions": {"+1": 2, "-1": 0}})
        };
        let mut reply = comment(5, "mona", "User");
        reply["in_reply_to_id"] = json!(1);
        let first = json!([comment(1, "rabbit[bot]", "Bot"), comment(2, "other[bot]", "Bot"), reply]);
        let second = json!([[comment(3, "mona", "User"), comment(1, "rabbit[bot]", "Bot")], ["no comment"]]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("comments.json");
        std::fs::write(&path, format!("{first}{second}")).expect("a file");
        let heard = remarks_of_file(&path, &["Rabbit".to_owned()]).await.expect("read");
        let who: Vec<(i64, &str, bool)> =
            heard.remarks.iter().map(|one| (one.id.0, one.author.login.as_str(), one.author.is_bot)).collect();
        assert_eq!(who, [(1, "rabbit[bot]", true), (3, "mona", false)]);
        assert_eq!(heard.remarks[0].text, "Bug: this throws when `x` is null");
        assert_eq!(heard.remarks[0].thumbs, (2, 0));
        assert_eq!(heard.notes, [format!("1 entries in {} are not review comments and were left out", path.display())]);
        std::fs::write(&path, "not JSON").expect("a file");
        let error = remarks_of_file(&path, &[]).await.expect_err("not JSON").to_string();
        assert!(error.contains("is not JSON as `gh api repos/OWNER/NAME/pulls/NUMBER/comments` prints it"), "{error}");
    }
}
