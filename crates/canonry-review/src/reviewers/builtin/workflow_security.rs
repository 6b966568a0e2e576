//! Finds what lets strangers run code in GitHub Actions.
//!
//! Lines are enough for these rules: an expression, a `uses:` or a permission stands on one line, and a script is what is
//! indented below its key.

use std::sync::LazyLock;

use canonry_domain::review::{Category, LineRange, Severity};
use regex::Regex;

use super::reading::{BuiltinRule, ReadFile, Remark};

pub(super) const INJECTION: BuiltinRule = BuiltinRule { id: "workflow-injection", check: injections };
pub(super) const UNTRUSTED_CHECKOUT: BuiltinRule =
    BuiltinRule { id: "workflow-untrusted-checkout", check: untrusted_checkouts };
pub(super) const UNPINNED_ACTION: BuiltinRule = BuiltinRule { id: "unpinned-action", check: unpinned_actions };

/// Texts that anybody can write into an event, as GitHub's security guide lists them.
static STRANGERS_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\$\{\{[^}]*\bgithub\.(?:head_ref|event\.(?:issue\.(?:title|body)|pull_request\.(?:title|body|head\.(?:ref|label|repo\.default_branch))|(?:comment|review|review_comment|discussion_comment)\.body|discussion\.(?:title|body)|pages[^}]*\.page_name|(?:commits[^}]*|head_commit)\.(?:message|author\.(?:email|name))|workflow_run\.(?:head_branch|display_title|head_commit\.message)))\b",
    )
});

static SCRIPT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?P<before>\s*(?:-\s+)?)(?:run|script):\s*(?P<value>.*)$"));

static USES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*(?:-\s+)?uses:\s*["']?(?P<owner>[\w.-]+)/(?P<rest>[\w./-]+)@(?P<ref>[\w./-]+)"#));

/// Events that run with the base repository's secrets and a token that may write, also for a stranger's change.
static PRIVILEGED_EVENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\s*(?:["']?on["']?\s*:\s*(?:[\[{](?:[^#]*[\s,{])?)?)?(?:-\s+)?["']?(?:pull_request_target|workflow_run)\b"#,
    )
});

static STRANGERS_REVISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\s*(?:-\s+)?(?:with:\s*\{(?:[^#]*[\s,])?)?["']?ref["']?:.*(?:github\.event\.pull_request\.(?:head\.|merge_commit_sha)|github\.head_ref|refs/pull/|github\.event\.workflow_run\.head_)"#,
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("invariant: a constant pattern")
}

fn injections(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let injected = workflows(files).flat_map(|file| {
        let lines =
            script_lines(file).filter(|(number, line)| file.added.contains(number) && STRANGERS_TEXT.is_match(line));
        lines.map(|(number, _)| Remark {
            message:
                "GitHub pastes this text into the script before the shell reads it, and anybody can write it. Put it \
                      into `env:`, and use the variable in quotes."
                    .to_owned(),
            ..remark(file, number, "A stranger's text becomes part of a script", Severity::Major)
        })
    });
    injected.collect()
}

fn untrusted_checkouts(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let mut found = Vec::new();
    for file in workflows(files) {
        let Some(event) = numbered(file).find(|(_, line)| PRIVILEGED_EVENT.is_match(line)) else { continue };
        let checked_out = numbered(file).filter(|(_, line)| STRANGERS_REVISION.is_match(line));
        let is_changed = |number: &u32| [*number, event.0].iter().any(|at| file.added.contains(at));
        for (number, _) in checked_out.filter(|(number, _)| is_changed(number) && !is_approved(file, *number)) {
            found.push(Remark {
                message: "This event runs with the repository's secrets. Whatever runs in the checkout, such as a build, can \
                          read them. Use `pull_request`, or do not run anything of it."
                    .to_owned(),
                ..remark(file, number, "A stranger's code is checked out with secrets", Severity::Major)
            });
        }
    }
    found
}

/// An action of others at a tag or a branch where the file pins its actions otherwise: of 123 branches in 265 workflows
/// of published packages, six were no decision of the project. A shared workflow may have to be called by its tag.
fn unpinned_actions(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let mut found = Vec::new();
    for file in workflows(files) {
        let pins = numbered(file).filter_map(|(_, line)| USES.captures(line)).any(|uses| is_commit(&uses["ref"]));
        for (number, line) in added(file).filter(|_| pins) {
            let Some(uses) = USES.captures(line) else { continue };
            let (owner, rest, revision) = (&uses["owner"], &uses["rest"], &uses["ref"]);
            let is_others = !matches!(owner, "actions" | "github") && !rest.contains(".github/workflows/");
            if is_others && !is_commit(revision) {
                found.push(Remark {
                    message: format!(
                        "Other actions here are pinned to a commit, and `{revision}` of {owner}/{rest} can move. Pin it too."
                    ),
                    ..remark(file, number, "An action is not pinned", Severity::Medium)
                });
            }
        }
    }
    found
}

/// Whether the job of a line has an environment, which people can protect with an approval.
fn is_approved(file: &ReadFile<'_>, line: u32) -> bool {
    let begins_job =
        |text: &str| text.starts_with("  ") && !text[2..].starts_with([' ', '#', '-']) && !text.trim().is_empty();
    let at = line as usize;
    let begin = file.lines[..at.min(file.lines.len())].iter().rposition(|text| begins_job(text)).unwrap_or(0);
    let mut job = file.lines[begin..].iter().skip(1).take_while(|text| !begins_job(text));
    job.any(|text| text.trim_start().starts_with("environment:"))
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn remark(file: &ReadFile<'_>, line: u32, title: &'static str, severity: Severity) -> Remark {
    Remark {
        path: file.path().clone(),
        lines: LineRange::new(line, line),
        title,
        message: String::new(),
        severity,
        category: Category::Security,
    }
}

fn workflows<'f, 'a>(files: &'f [ReadFile<'a>]) -> impl Iterator<Item = &'f ReadFile<'a>> {
    files.iter().filter(|file| {
        let path = file.path().as_str();
        path.starts_with(".github/workflows/") && (path.ends_with(".yml") || path.ends_with(".yaml"))
    })
}

/// The lines with their numbers, without comments.
fn numbered<'f>(file: &'f ReadFile<'_>) -> impl Iterator<Item = (u32, &'f str)> {
    (1_u32..).zip(file.lines.iter().copied()).filter(|(_, line)| !line.trim_start().starts_with('#'))
}

fn added<'f>(file: &'f ReadFile<'_>) -> impl Iterator<Item = (u32, &'f str)> {
    numbered(file).filter(|(number, _)| file.added.contains(number))
}

/// The lines of scripts: those of `run:`, and of the `script:` of an action that runs it.
fn script_lines<'f>(file: &'f ReadFile<'_>) -> impl Iterator<Item = (u32, &'f str)> {
    let mut script: Option<usize> = None;
    (1_u32..).zip(file.lines.iter().copied()).filter(move |(_, line)| {
        let indent = line.len() - line.trim_start().len();
        if script.is_some_and(|key| line.trim().is_empty() || indent > key) {
            return true;
        }
        let begun = SCRIPT.captures(line);
        script = begun.as_ref().map(|begun| begun["before"].len());
        begun.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::{INJECTION, UNPINNED_ACTION, UNTRUSTED_CHECKOUT};

    const PATH: &str = ".github/workflows/ci.yml";

    #[test]
    fn texts_of_strangers_in_scripts() {
        check_table(
            &INJECTION,
            &[
                (PATH, "jobs:\n  a:\n    steps:\n      - run: echo \"${{ github.event.issue.title }}\"\n", &[4]),
                (
                    PATH,
                    "      - name: x\n        run: |\n          a\n\n          b ${{ github.head_ref }}\n        env:\n          X: ${{ github.head_ref }}\n",
                    &[5],
                ),
                (
                    PATH,
                    "      - uses: actions/github-script@v7\n        with:\n          script: |\n            f('${{ github.event.comment.body }}')\n",
                    &[4],
                ),
                (PATH, "      - run: git checkout ${{ github.event.pull_request.head.ref || 'main' }}\n", &[1]),
                // Not reported: variables, numbers, commits, other files.
                (
                    PATH,
                    "        env:\n          TITLE: ${{ github.event.issue.title }}\n        run: echo \"$TITLE\"\n",
                    &[],
                ),
                (
                    PATH,
                    "      - run: gh pr view ${{ github.event.pull_request.number }} ${{ github.event.pull_request.head.sha }}\n",
                    &[],
                ),
                (PATH, "      - run: a\n      - if: ${{ contains(github.event.pull_request.title, 'x') }}\n", &[]),
                ("docs/ci.yml", "      - run: echo ${{ github.head_ref }}\n", &[]),
            ],
        );
    }

    #[test]
    fn code_of_strangers_beside_secrets() {
        let steps = "jobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.event.pull_request.head.sha }}\n";
        check_table(
            &UNTRUSTED_CHECKOUT,
            &[
                (PATH, &format!("on: pull_request_target\n{steps}"), &[7]),
                (PATH, &format!("on:\n  pull_request_target:\n    types: [opened]\n{steps}"), &[9]),
                (PATH, &format!("on: [push, pull_request_target]\n{steps}"), &[7]),
                (PATH, &format!("\"on\": pull_request_target\n{steps}"), &[7]),
                (PATH, &format!("'on':\n  'pull_request_target':\n{steps}"), &[8]),
                (PATH, &format!("on: {{pull_request_target: {{types: [opened]}}}}\n{steps}"), &[7]),
                (PATH, &format!("on: {{push: {{branches: [main]}}, workflow_run: {{}}}}\n{steps}"), &[7]),
                (PATH, &format!("on: [push, 'pull_request_target']\n{steps}"), &[7]),
                (
                    PATH,
                    "on: [pull_request_target]\n      - uses: actions/checkout@v4\n        with: {fetch-depth: 2, ref: \"${{ github.head_ref }}\"}\n",
                    &[3],
                ),
                (PATH, &format!("on: [push] # not pull_request_target\n{steps}"), &[]),
                (PATH, &format!("on: {{pull_request: {{}}}}\n{steps}"), &[]),
                (PATH, &format!("on: pull_request\n{steps}"), &[]),
                (
                    PATH,
                    &format!("on: pull_request_target\n{}", steps.replace("  a:\n", "  a:\n    environment: E2E\n")),
                    &[],
                ),
                (PATH, &format!("on: pull_request # not pull_request_target\n{steps}"), &[]),
                (PATH, "on: pull_request_target\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n", &[]),
            ],
        );
    }

    #[test]
    fn actions_that_can_change() {
        let pinned = "      - uses: actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3 # v4\n";
        check_table(
            &UNPINNED_ACTION,
            &[
                (PATH, &format!("{pinned}      - uses: octo/cat@v2\n      - uses: 'octo/cat/sub@main'\n"), &[2, 3]),
                (PATH, "      - uses: octo/cat@v2\n      - uses: octo/cat@master\n", &[]),
                (PATH, &format!("{pinned}      - uses: actions/cache@v4\n      - uses: ./.github/actions/x\n"), &[]),
                (
                    PATH,
                    &format!(
                        "{pinned}    uses: octo/cat/.github/workflows/build.yml@v2\n      - uses: docker://alpine:3\n"
                    ),
                    &[],
                ),
            ],
        );
    }
}
