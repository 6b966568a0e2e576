//! The week's pull requests: their findings, and people's answers.

use anyhow::{Context as _, Result};
use canonry_testkit::github::NewPull;

use crate::code;
use crate::demo::Demo;
use crate::week::BRINDLE_REPO;
use crate::world::OWN;

/// The titles of the built-in rules' findings.
pub(crate) const LEFTOVER: &str = "Debugging code is left in";
pub(crate) const SWITCHED_OFF: &str = "A test is switched off without a reason";
pub(crate) const UNPINNED: &str = "An action is not pinned";
pub(crate) const CREDENTIAL: &str = "A credential is committed";

/// The numbers of the pull requests, once they exist.
#[derive(Debug, Default)]
pub(crate) struct Pulls {
    /// Has three findings: one is fixed, one is answered, one moves.
    pub(crate) line_ends: Option<u64>,
    /// Contains a credential, and an own action that two people want at its branch.
    pub(crate) keys: Option<u64>,
    /// Contains one that a third person wants at its branch.
    pub(crate) search: Option<u64>,
    /// Contains one that is no longer reported.
    pub(crate) theme: Option<u64>,
}

/// A person fixes the line ends and leaves three findings behind.
pub(crate) async fn first_pull(demo: &Demo) -> Result<u64> {
    let number = demo.people(|world| {
        let files = [
            (code::EXPORT, Some(code::EXPORT_PUSHED)),
            (code::EXPORT_TESTS, Some(code::EXPORT_TESTS_PUSHED)),
            (code::SITE_WORKFLOW, Some(code::SITE_PUSHED)),
        ];
        world.commit(BRINDLE_REPO, "line-ends", &files);
        let new = NewPull {
            body: Some("0.9.0 writes CRLF everywhere.".to_owned()),
            ..NewPull::new("Export: keep the line ends of the file")
        };
        world.open_pull(BRINDLE_REPO, "mirembe-o", "line-ends", new)
    });
    demo.settle().await?;
    Ok(number)
}

/// The next push fixes one finding and moves another with its line; one is answered and not reported again.
pub(crate) async fn first_pull_is_answered(demo: &Demo, pulls: &mut Pulls) -> Result<()> {
    let number = pulls.line_ends.context("the first pull request is open")?;
    let thread = remark(demo, number, SWITCHED_OFF)?;
    demo.people(|world| {
        world.reply_in_thread(
            BRINDLE_REPO,
            thread,
            "mirembe-o",
            "Won't fix: it needs the runner with Windows, which main has from next week on.",
        )
    });
    demo.settle().await?;
    demo.people(|world| {
        let files = [(code::EXPORT, Some(code::EXPORT_FIXED)), (code::SITE_WORKFLOW, Some(code::SITE_MOVED))];
        world.push_pull(BRINDLE_REPO, number, "mirembe-o", &files)
    });
    demo.settle().await?;
    demo.people(|world| world.push_pull(BRINDLE_REPO, number, "mirembe-o", &[("CHANGELOG.md", Some(code::CHANGELOG))]));
    demo.settle().await
}

/// Opens two more: one leaks a key, and both use an own action at its branch.
pub(crate) async fn other_pulls(demo: &Demo, pulls: &mut Pulls) -> Result<()> {
    let keys = demo.people(|world| {
        world.commit(
            BRINDLE_REPO,
            "site-keys",
            &[
                ("site/src/keys.ts", Some(&code::keys_with_secret())),
                (".github/workflows/keys.yml", Some(code::CHECKS_SITE)),
            ],
        );
        world.user("qiang-w");
        world.open_pull(BRINDLE_REPO, "qiang-w", "site-keys", NewPull::new("Site: try the keys in the page"))
    });
    demo.settle().await?;
    demo.people(|world| {
        world.force_push_pull(
            BRINDLE_REPO,
            keys,
            "qiang-w",
            &[
                ("site/src/keys.ts", Some(code::KEYS_WITHOUT_SECRET)),
                (".github/workflows/keys.yml", Some(code::CHECKS_SITE)),
            ],
        )
    });
    demo.settle().await?;
    let search = demo.people(|world| {
        world.commit(
            BRINDLE_REPO,
            "site-search",
            &[
                ("site/src/search.ts", Some(code::SEARCH_WITHOUT_CASE)),
                (".github/workflows/search.yml", Some(code::CHECKS_SITE)),
            ],
        );
        world.open_pull(BRINDLE_REPO, "tamsin-w", "site-search", NewPull::new("Site: search without case"))
    });
    demo.settle().await?;
    (pulls.keys, pulls.search) = (Some(keys), Some(search));
    Ok(())
}

/// Three people on two pull requests reject findings about unpinned actions. The next pull request gets none.
pub(crate) async fn patterns_are_rejected(demo: &Demo, pulls: &mut Pulls) -> Result<()> {
    let (keys, search) = pulls.keys.zip(pulls.search).context("both pull requests are open")?;
    let remarks = [remark(demo, keys, UNPINNED)?, remark(demo, search, UNPINNED)?];
    demo.people(|world| {
        for (comment, by) in [(remarks[0], "lowellh"), (remarks[0], "kpetrov"), (remarks[1], "ottilie")] {
            world.react_to_review_comment(BRINDLE_REPO, comment, by, "-1");
        }
    });
    let minute = demo.now().duration_since(demo.begins).as_mins();
    demo.until(minute + 5 * 60).await?;
    let theme = demo.people(|world| {
        world.commit(
            BRINDLE_REPO,
            "site-theme",
            &[("site/src/theme.ts", Some(code::THEME)), (".github/workflows/theme.yml", Some(code::CHECKS_SITE))],
        );
        world.open_pull(BRINDLE_REPO, "eliaszh", "site-theme", NewPull::new("Site: dark mode"))
    });
    demo.settle().await?;
    pulls.theme = Some(theme);
    Ok(())
}

/// The inline comment with this title.
fn remark(demo: &Demo, number: u64, title: &str) -> Result<u64> {
    demo.people(|world| {
        let comments = world.review_comments_by(BRINDLE_REPO, number, OWN);
        let found = comments.iter().find(|comment| comment.body.contains(title)).map(|comment| comment.id);
        found.with_context(|| {
            format!("nothing in #{number} says {title:?}: {}", world.conversation(BRINDLE_REPO, number))
        })
    })
}
