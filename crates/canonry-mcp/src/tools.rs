//! The tools. Their descriptions tell an agent when to call them.

use std::time::Duration;

use axum::http::request::Parts;
use canonry_domain::{Login, PullChanges};
use canonry_review::changed_files;
use canonry_store::Repo;
use canonry_triage::{Draft, KnownFixes, LookupError};
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};

use crate::access::Caller;
use crate::advice::{on_draft, on_fixes};
use crate::server::McpServer;
use crate::tool_answers::{
    CheckAnswer, FindingsAnswer, FixAnswer, ItemAnswer, OpenFinding, SearchAnswer, SearchedItem, failed, shown,
};
use crate::tool_inputs::{DiffInput, DraftInput, ItemInput, SearchInput};

/// A call that takes longer is stopped.
const PATIENCE: Duration = Duration::from_secs(30);
/// Similar items in the answer to a check.
const SIMILAR: usize = 5;
/// Bytes of a diff, before it is read.
const LONGEST: usize = 1 << 20;

#[tool_router(router = tools, vis = "pub(crate)")]
impl McpServer {
    /// Call this before you file an issue. Answers whether the problem is already reported, in progress, fixed or a
    /// possible regression, with the number to follow instead and the evidence. Nothing is stored.
    #[tool(
        output_schema = schema_for_output::<CheckAnswer>(),
        annotations(title = "Is this problem known?", read_only_hint = true, open_world_hint = false)
    )]
    async fn check_draft(
        &self,
        Parameters(input): Parameters<DraftInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let author = match login(input.author.as_deref()) {
            Ok(author) => author,
            Err(message) => return failed(&message),
        };
        let draft = Draft { title: input.title, body: input.body.unwrap_or_default(), author, changes: None };
        self.check(&context, input.repo.as_deref(), draft).await
    }

    /// Call this before you open a pull request. Answers whether an open or merged pull request makes the same change.
    /// Give the unified diff, or a range of commits where the server runs in your clone.
    #[tool(
        output_schema = schema_for_output::<CheckAnswer>(),
        annotations(title = "Is this change known?", read_only_hint = true, open_world_hint = false)
    )]
    async fn check_diff(
        &self,
        Parameters(input): Parameters<DiffInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let author = match login(input.author.as_deref()) {
            Ok(author) => author,
            Err(message) => return failed(&message),
        };
        let (messages, changes) = match self.change_of(&input).await {
            Ok(change) => change,
            Err(message) => return failed(&message),
        };
        let (first, rest) = messages.split_once('\n').unwrap_or((&messages, ""));
        let draft = Draft {
            title: input.title.unwrap_or_else(|| first.to_owned()),
            body: input.body.unwrap_or_else(|| rest.trim().to_owned()),
            author,
            changes: Some(changes),
        };
        self.check(&context, input.repo.as_deref(), draft).await
    }

    /// Find issues and pull requests by meaning and by words, open and closed. Use it to find related items; use check_draft
    /// to decide whether to file.
    #[tool(
        output_schema = schema_for_output::<SearchAnswer>(),
        annotations(title = "Search issues and pull requests", read_only_hint = true, open_world_hint = false)
    )]
    async fn search_items(
        &self,
        Parameters(input): Parameters<SearchInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        if input.query.trim().is_empty() {
            return failed("the query is empty; write what to search for");
        }
        let limit = usize::from(input.limit.unwrap_or(10).clamp(1, 50));
        let searched = self
            .answer(&context, input.repo.as_deref(), async |repo| {
                self.lookup.search(&repo, &input.query, input.item_type, input.state, limit).await
            })
            .await;
        match searched {
            Ok((repo, found)) => shown(&SearchAnswer {
                repo: repo.name.to_string(),
                items: found.into_iter().map(SearchedItem::from).collect(),
            }),
            Err(message) => failed(&message),
        }
    }

    /// Read one issue or pull request: its state and text, the canonical item if it is a duplicate, its duplicates, and
    /// the pull requests that fix it.
    #[tool(
        output_schema = schema_for_output::<ItemAnswer>(),
        annotations(title = "Read an issue or pull request", read_only_hint = true, open_world_hint = false)
    )]
    async fn get_item(
        &self,
        Parameters(input): Parameters<ItemInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let found = self
            .answer(&context, input.repo.as_deref(), async |repo| self.lookup.item(&repo, input.number).await)
            .await;
        match found {
            Ok((repo, known)) => shown(&ItemAnswer::new(&repo.name.to_string(), known)),
            Err(message) => failed(&message),
        }
    }

    /// Call this before you start to work on an issue. Answers whether a pull request for it is open or merged, and which
    /// merged ones probably fixed it without naming it.
    #[tool(
        output_schema = schema_for_output::<FixAnswer>(),
        annotations(title = "Is this issue fixed or taken?", read_only_hint = true, open_world_hint = false)
    )]
    async fn find_fix(
        &self,
        Parameters(input): Parameters<ItemInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let found = self
            .answer(&context, input.repo.as_deref(), async |repo| self.lookup.fixes(&repo, input.number).await)
            .await;
        match found {
            Ok((repo, known)) => {
                let advice = on_fixes(&known);
                let KnownFixes { issue, fixes, likely } = known;
                shown(&FixAnswer { repo: repo.name.to_string(), issue, advice, fixes, likely })
            }
            Err(message) => failed(&message),
        }
    }

    /// The findings that are open after the last review of a pull request, with path and lines. Call it when you
    /// continue somebody's change, or before you ask for another review.
    #[tool(
        output_schema = schema_for_output::<FindingsAnswer>(),
        annotations(title = "Open findings of a pull request", read_only_hint = true, open_world_hint = false)
    )]
    async fn review_findings(
        &self,
        Parameters(input): Parameters<ItemInput>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let found = self
            .answer(&context, input.repo.as_deref(), async |repo| self.lookup.open_findings(&repo, input.number).await)
            .await;
        match found {
            Ok((repo, findings)) => shown(&FindingsAnswer {
                repo: repo.name.to_string(),
                pull: input.number,
                findings: findings.iter().map(OpenFinding::from).collect(),
            }),
            Err(message) => failed(&message),
        }
    }
}

fn login(author: Option<&str>) -> Result<Option<Login>, String> {
    author.map(str::parse::<Login>).transpose().map_err(|error| error.to_string())
}

pub(crate) fn caller(context: &RequestContext<RoleServer>) -> Caller<'_> {
    context.extensions.get::<Parts>().map_or(Caller::Local, Caller::Remote)
}

impl McpServer {
    async fn check(&self, context: &RequestContext<RoleServer>, repo: Option<&str>, draft: Draft) -> CallToolResult {
        if draft.is_empty() {
            return failed("the draft is empty; give it a title");
        }
        let checked = self.answer(context, repo, async |repo| self.lookup.check(&repo, &draft, SIMILAR).await).await;
        match checked {
            Ok((repo, report)) => {
                let advice = on_draft(&report, draft.changes.is_some());
                shown(&CheckAnswer { repo: repo.name.to_string(), advice, report })
            }
            Err(message) => failed(&message),
        }
    }

    /// The messages and the changes that a call gives, or names by its commits.
    async fn change_of(&self, input: &DiffInput) -> Result<(String, PullChanges), String> {
        let (messages, changes) = match (&input.diff, &input.range) {
            (Some(diff), None) => {
                if diff.len() > LONGEST {
                    return Err(LookupError::TooLong.to_string());
                }
                (String::new(), PullChanges::of_patches(changed_files(diff).into_iter()))
            }
            (None, Some(range)) => self.access.change_in(range).await?,
            _ => return Err("give the change either as `diff` or as `range`".to_owned()),
        };
        if changes.is_empty() {
            return Err("there is no change; give a unified diff, as `git diff` prints it".to_owned());
        }
        Ok((messages, changes))
    }

    /// Finds the repository for the caller and answers within the limits; a cancelled call stops.
    pub(crate) async fn answer<T>(
        &self,
        context: &RequestContext<RoleServer>,
        repo: Option<&str>,
        work: impl AsyncFnOnce(Repo) -> Result<T, LookupError>,
    ) -> Result<(Repo, T), String> {
        let caller = caller(context);
        let in_address = caller.repo_in_address();
        let answering = async {
            let repo = self.access.repo(repo.or(in_address.as_deref()), caller).await?;
            let answer = work(repo.clone()).await.map_err(|error| {
                tracing::warn!(?error, repo = %repo.name, "a question could not be answered");
                error.to_string()
            })?;
            Ok((repo, answer))
        };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err("the call was cancelled".to_owned()),
            answered = tokio::time::timeout(PATIENCE, answering) => {
                answered.unwrap_or_else(|_| Err("the answer takes too long; try again later".to_owned()))
            }
        }
    }
}
