//! Tests what people's reactions change.

use canonry_domain::GithubId;
use canonry_domain::review::{Confidence, Fingerprint, HiddenBy, ShownAs};
use canonry_review::ReviewReport;
use canonry_store::{FindingId, NewReaction};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Asked, Project, login, pull, the};

/// A repository with one changed file, reviewed as two pull requests.
pub(crate) async fn two_pulls(database: &TestDatabase, findings: &[(&str, &str, u32, &str, &str)]) -> Rejected {
    let (mut project, base, _) = Project::pushed(database, "b();").await;
    project.reported(findings);
    let mut reports = Vec::new();
    for number in [1, 2] {
        project.subject = pull(number);
        reports.push(project.review(&base).await);
    }
    Rejected { project, base, reports }
}

pub(crate) struct Rejected {
    pub(crate) project: Project,
    pub(crate) base: canonry_domain::review::CommitSha,
    pub(crate) reports: Vec<ReviewReport>,
}

impl Rejected {
    /// Records a person's reaction to a finding of one of the pull requests.
    pub(crate) async fn react(&self, reaction: i64, pull: usize, title: &str, by: &str, up: bool) -> FindingId {
        let finding = the(&self.reports[pull - 1], title).id.expect("stored");
        let reaction = NewReaction {
            repo: self.project.repo,
            reaction: GithubId(reaction),
            finding,
            by: &login(by),
            up,
            at: self.project.now(),
            teaches: true,
        };
        assert!(self.project.store.findings().record_reaction(&reaction).await.expect("stored"), "it is new");
        finding
    }

    /// Three people reject a finding on two pull requests.
    pub(crate) async fn reject(&self, first: i64, title: &str) {
        self.react(first, 1, title, "ada", false).await;
        self.react(first + 1, 1, title, "bea", false).await;
        self.react(first + 2, 2, title, "cleo", false).await;
    }

    /// The same change as one more pull request.
    pub(crate) async fn third(&mut self) -> ReviewReport {
        self.project.subject = pull(3);
        self.project.review_asked(&self.base, Asked { requested: true, full: true, ..Asked::default() }).await
    }
}

fn points(report: &ReviewReport, title: &str) -> u8 {
    Confidence::get(the(report, title).confidence)
}

on_both_engines! {
    async fn a_thumbs_up_raises_a_visible_finding_and_a_removed_one_counts_no_more(database: TestDatabase) {
        let mut rejected = two_pulls(&database, &[("Odd name", "a.js", 30, "minor", "style")]).await;
        assert_eq!(points(&rejected.reports[0], "Odd name"), 45);
        let finding = rejected.react(1, 1, "Odd name", "ada", true).await;
        assert_eq!(points(&rejected.third().await, "Odd name"), 55);
        rejected.react(2, 2, "Odd name", "bea", false).await;
        assert_eq!(points(&rejected.third().await, "Odd name"), 35);
        let removed = rejected.project.store.findings().remove_reactions_except(finding, &[], rejected.project.now()).await;
        assert_eq!(removed.expect("removed"), 1);
        assert_eq!(points(&rejected.third().await, "Odd name"), 25);
    }

    async fn people_hide_a_pattern_only_where_the_settings_say_so(database: TestDatabase) {
        let findings = [("Odd name", "a.js", 30, "minor", "style"), ("Slow", "a.js", 30, "minor", "performance")];
        let mut rejected = two_pulls(&database, &findings).await;
        rejected.reject(1, "Odd name").await;
        // The store groups feedback under the same fingerprint that the next review compares with.
        let pooled = rejected.project.store.findings().pattern_feedback(rejected.project.repo).await.expect("read");
        let fingerprints: Vec<_> = pooled.iter().map(|one| one.fingerprint.clone()).collect();
        assert_eq!(fingerprints, [Fingerprint::of_title("Odd name")]);
        let visible = rejected.third().await;
        assert_eq!((the(&visible, "Odd name").shown, visible.hidden_patterns), (ShownAs::Inline, 0));
        // Its confidence still changes.
        assert_eq!(points(&visible, "Odd name"), 0);

        rejected.project.settings.feedback.auto_suppress.enabled = true;
        let hidden = rejected.third().await;
        let odd = the(&hidden, "Odd name");
        assert_eq!((odd.shown, odd.hidden_by.clone()), (ShownAs::Suppressed, Some(HiddenBy::Feedback)));
        assert_eq!((hidden.hidden_patterns, the(&hidden, "Slow").shown), (1, ShownAs::Inline));
        let stored = rejected.project.store.review().get(hidden.review.expect("stored")).await.expect("read").expect("there");
        assert_eq!((stored.shown, stored.suppressed), (1, 1));

        rejected.project.settings.feedback.auto_suppress.thresholds.min_distinct_prs = 3;
        assert_eq!(the(&rejected.third().await, "Odd name").shown, ShownAs::Inline);
        rejected.project.settings.feedback.auto_suppress.thresholds.min_distinct_prs = 2;
        // After clearing, the feedback starts again.
        let by = login("mara");
        let cleared = rejected.project.store.findings().clear_feedback(rejected.project.repo, None, &by, rejected.project.now());
        assert_eq!(cleared.await.expect("cleared"), 1);
        let fresh = rejected.third().await;
        assert_eq!((the(&fresh, "Odd name").shown, points(&fresh, "Odd name")), (ShownAs::Inline, 45));
    }
}
