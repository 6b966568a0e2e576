//! Which member of a cluster is the canonical, and that it stays the same: cases 20 to 22.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::setting::{Setting, clusters, issue, issue_with};

fn canonicalize(setting: &Setting) -> Vec<(i64, Vec<i64>)> {
    clusters(&setting.succeeds(&["canonicalize"]))
}

on_both_engines! {
    /// Cases 20 to 22, each with its own cluster, and the ranking's last steps.
    async fn the_ranking(database: TestDatabase) {
        let setting = Setting::on(database);
        let by = |number: i64, author: &str, state: &str, comments: i64| {
            issue_with(number, json!({"author": author, "state": state, "comments": comments}))
        };
        let closed = |number: i64, comments: i64, created: &str| {
            issue_with(number, json!({"state": "closed", "comments": comments, "created_at": created}))
        };
        let spanish = "Desde la actualización de la semana pasada el exportador escribe dos veces el resumen en la \
            consola, una al principio y otra al final de cada ejecución, y la segunda copia lleva los números de la \
            primera. Ocurre en todas las máquinas que hemos mirado hasta ahora.";
        setting.with_edges(
            &[
                by(21, "ann", "open", 50), by(22, "mona", "open", 1), by(23, "mona", "closed", 100),
                issue_with(31, json!({"title": "El exportador escribe dos veces el resumen 31", "body": spanish, "comments": 20})),
                issue_with(32, json!({"comments": 1})),
                closed(300, 10, "2026-02-03T00:00:00Z"), closed(200, 10, "2026-02-01T00:00:00Z"), closed(100, 9, "2026-01-01T00:00:00Z"),
                by(401, "ann", "open", 3), by(402, "ann", "open", 4),
                issue(501), issue_with(502, json!({"created_at": "2026-01-04T10:00:00Z"})),
                issue(601), issue(602),
            ],
            &[
                (22, 21, 0.95), (21, 23, 0.95), (31, 32, 0.95), (300, 200, 0.95), (200, 100, 0.95),
                (402, 401, 0.95), (502, 501, 0.95), (602, 601, 0.95),
            ],
        );
        setting.maintainers(&["mona"]);
        assert_eq!(canonicalize(&setting), [
            (22, vec![21, 22, 23]), (32, vec![31, 32]), (200, vec![100, 200, 300]),
            (402, vec![401, 402]), (502, vec![501, 502]), (601, vec![601, 602]),
        ]);
        let shown = setting.show(21)["cluster"].clone();
        assert_eq!(shown["canonical"], 22, "{shown}");
    }

    /// A canonical stays while it is open and a member; unrelated items and comments change nothing.
    async fn the_canonical_is_stable(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.maintainers_after_edges();
        assert_eq!(canonicalize(&setting), [(2, vec![1, 2, 3])]);
        let commented = |number: i64, comments: i64| issue_with(number, json!({"comments": comments}));
        setting.import(&[commented(1, 99), commented(3, 98), issue(50), issue(51)]);
        assert_eq!(canonicalize(&setting), [(2, vec![1, 2, 3])], "comments do not move it");

        // If it is closed while another is open, it is replaced, and reopening it does not restore it.
        setting.import(&[issue_with(2, json!({"state": "closed", "comments": 9}))]);
        assert_eq!(canonicalize(&setting), [(1, vec![1, 2, 3])]);
        setting.import(&[issue_with(2, json!({"comments": 500}))]);
        assert_eq!(canonicalize(&setting), [(1, vec![1, 2, 3])]);

        // People may choose the canonical and may remove their choice; it then stays.
        let ruled = setting.succeeds(&["override", "canonical", "3"]);
        assert_eq!(canonicalize(&setting), [(3, vec![1, 2, 3])]);
        let id = ruled["override"]["id"].as_i64().unwrap_or_else(|| panic!("no id: {ruled}")).to_string();
        setting.succeeds(&["override", "remove", &id]);
        assert_eq!(canonicalize(&setting), [(3, vec![1, 2, 3])], "removing the ruling is no reason to move it");

        // If all are closed, it stays.
        let shut = |number: i64| issue_with(number, json!({"state": "closed"}));
        setting.import(&[shut(1), shut(2), shut(3)]);
        assert_eq!(canonicalize(&setting), [(3, vec![1, 2, 3])]);
    }

    /// Pairs that people ruled out are no edge, and merged clusters have one canonical.
    async fn clusters_split_and_merge(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(
            &[issue(1), issue(2), issue(3), issue(4), issue(5)],
            &[(2, 1, 0.95), (3, 2, 0.95), (5, 4, 0.95)],
        );
        setting.maintainers(&["mona"]);
        assert_eq!(canonicalize(&setting), [(1, vec![1, 2, 3]), (4, vec![4, 5])]);
        setting.succeeds(&["override", "not-duplicate", "1", "2"]);
        assert_eq!(canonicalize(&setting), [(2, vec![2, 3]), (4, vec![4, 5])]);
        setting.succeeds(&["override", "duplicate", "5", "3"]);
        let merged = canonicalize(&setting);
        assert_eq!((merged.len(), &merged[0].1), (1, &vec![2, 3, 4, 5]));
        assert!([2, 4].contains(&merged[0].0), "one of the two that were canonical: {merged:?}");
        // The latest ruling about a pair counts.
        setting.succeeds(&["override", "duplicate", "2", "1"]);
        assert_eq!(canonicalize(&setting)[0].1, [1, 2, 3, 4, 5]);
        assert_eq!(canonicalize(&setting)[0].0, merged[0].0);
    }
}

/// Pull requests are also ranked by review comments, and never clustered with issues.
#[test]
fn pull_requests_have_clusters_of_their_own() {
    let setting = Setting::sqlite();
    let pull = |number: i64, comments: i64, review: i64| {
        issue_with(number, json!({"type": "pr", "comments": comments, "review_comments": review}))
    };
    setting.with_edges(&[pull(11, 3, 0), pull(12, 1, 3)], &[(12, 11, 0.95)]);
    setting.maintainers(&["mona"]);
    assert_eq!(canonicalize(&setting), [(12, vec![11, 12])]);
    let both: Value = setting.succeeds(&["canonicalize", "--type", "issue"]);
    assert_eq!(clusters(&both), []);
}

impl Setting {
    /// 1 and 3 are duplicates of 2, which has the most comments.
    fn maintainers_after_edges(&self) {
        self.with_edges(&[issue(1), issue_with(2, json!({"comments": 9})), issue(3)], &[(1, 2, 0.95), (3, 2, 0.95)]);
        self.maintainers(&["mona"]);
    }
}
