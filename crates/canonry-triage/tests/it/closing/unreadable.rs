//! If GitHub's answer does not have the documented form, the item stays open, and the reason names the fact.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::closing::setting::{REPO, Setting, plain, told};

/// A fact of the item itself, and forms that it must not have; null is valid where it is not listed.
const FIELDS: [(&str, &str, &[&str]); 11] = [
    ("state", "unreadable_state", &["null", "7", r#""ajar""#]),
    ("title", "unreadable_text", &["null", "[]"]),
    ("body", "unreadable_text", &["{}", "7"]),
    ("locked", "unreadable_locked", &["null", r#""no""#]),
    ("assignees", "unreadable_assignees", &["null", r#"{"login":"maint"}"#, r#"["maint"]"#, r#"[{"login":7}]"#]),
    ("labels", "unreadable_labels", &["null", r#"{"name":"security"}"#, r#"[{"name":["security"]}]"#]),
    ("milestone", "unreadable_milestone", &[r#""1.0""#, "1", r#"{"number":"1"}"#]),
    ("user", "unreadable_author", &[r#""maint""#, "{}", r#"{"login":["maint"]}"#]),
    ("comments", "unreadable_comments", &["null", r#""3""#, "-1"]),
    ("created_at", "unreadable_times", &["null", r#""soon""#]),
    ("updated_at", "unreadable_times", &["null", "{}"]),
];

/// A list about the item, and invalid content for it.
const LISTS: [(&str, &str, &[&str]); 2] = [
    (
        "comments",
        "unreadable_comments",
        &[
            "{}",
            "null",
            "[7]",
            r#"[{"id":1,"body":"Not so!","user":{"login":"ann"},"created_at":"soon","updated_at":"soon"}]"#,
            r#"[{"id":1,"user":"ann"}]"#,
        ],
    ),
    (
        "timeline",
        "unreadable_timeline",
        &[
            "{}",
            "null",
            r#"["reopened"]"#,
            r#"[{"event":7}]"#,
            r#"[{"event":"reopened","actor":{"login":"ann"},"created_at":"soon"}]"#,
            r#"[{"event":"reviewed","user":{"login":"ann"}}]"#,
            r#"[{"event":"cross-referenced","source":{"issue":{"state":"open","title":"Fixes it","pull_request":1}}}]"#,
            r#"[{"event":"cross-referenced","source":[]}]"#,
        ],
    ),
];

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Applies a plan of one row while GitHub's answers for a path are changed in this way.
async fn applied(
    setting: &Setting,
    is_target: bool,
    below: &str,
    change: impl Fn(&mut Value) + Send + Sync + 'static,
) -> String {
    let (target, duplicates) = setting.cluster(1);
    let source = duplicates[0];
    let plan = setting.plan(&[(source, target)]).await;
    let about = plain(if is_target { target } else { source });
    let path = format!("/repos/{REPO}/issues/{about}{below}");
    let fault = setting.emulator.fault(Fault::on("GET", &path).always().rewrite(change));
    let report = setting.apply(plan).await;
    assert!(fault.hits() > 0, "{path} was not asked for");
    setting.emulator.clear_faults();
    if !told(&report)[0].ends_with("applied") {
        setting.assert_untouched(source, &path);
    }
    told(&report)[0].split_once(' ').expect("a number").1.to_owned()
}

on_both_engines! {
    async fn a_fact_that_cannot_be_read_keeps_an_item_open(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (field, reason, shapes) in FIELDS {
            let expected = format!("skipped drift:{reason}");
            let missing = applied(&setting, false, "", move |issue| drop(issue.as_object_mut().expect("an item").remove(field)));
            assert_eq!(missing.await, expected, "without {field}");
            for shape in shapes {
                let shaped = applied(&setting, false, "", move |issue| issue[field] = value(shape));
                assert_eq!(shaped.await, expected, "{field}: {shape}");
            }
            setting.next_hour();
        }
        let draft = applied(&setting, false, "", |issue| issue["draft"] = json!("no"));
        assert_eq!(draft.await, "skipped drift:unreadable_draft");
    }

    async fn a_list_that_cannot_be_read_keeps_an_item_open(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (list, reason, shapes) in LISTS {
            for shape in shapes {
                let path = format!("/{list}");
                let shaped = applied(&setting, false, &path, move |answer| *answer = value(shape));
                assert_eq!(shaped.await, format!("skipped drift:{reason}"), "{list}: {shape}");
            }
            setting.next_hour();
        }
        for field in ["state", "title", "body"] {
            let missing = applied(&setting, true, "", move |issue| drop(issue.as_object_mut().expect("an item").remove(field)));
            assert_eq!(missing.await, "skipped drift:unreadable_target", "{field}");
        }
        let unasked = applied(&setting, true, "", |issue| issue["assignees"] = json!(7));
        assert_eq!(unasked.await, "applied", "nobody asks who the original is assigned to");
    }
}
