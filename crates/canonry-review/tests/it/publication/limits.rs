//! Tests many findings, and lines at which GitHub accepts no comment.

use canonry_domain::review::AnswerableScope;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault};
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::publication::setting::{ALL, Setting, code, done, finding, saying};

/// GitHub's limit for any text.
const LONGEST: usize = 65_536;

fn on_line(line: u32, severity: &str, category: &str) -> Value {
    finding(&format!("Finding number {line} of many"), line, severity, category)
}

fn long_file(lines: u32) -> String {
    (1..=lines).map(|line| format!("call{line}();\n")).collect()
}

on_both_engines! {
    async fn three_hundred_findings_are_capped_and_counted(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &long_file(300)).await;
        let all: Vec<Value> = (1..=300).map(|line| saying(on_line(line, "minor", "style"), &"@mona ".repeat(200))).collect();
        let report = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&report).await), (7, true, 0));
        assert_eq!(setting.own_reviews(), (1, 7));
        let summary = setting.own_bodies().remove(0);
        assert!(summary.starts_with("**300 findings**: 300 minor.") && summary.contains("Further findings (293)"), "{summary}");
        assert!(summary.contains("- … and 243 more\n\n</details>"), "{summary}");
        assert!(setting.emulator.bodies_sent().iter().all(|body| body.chars().count() <= LONGEST));
    }

    async fn what_nothing_may_hide_is_not_capped(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &long_file(300)).await;
        let all: Vec<Value> = (1..=300).map(|line| saying(on_line(line, "critical", "security"), &"<x>&".repeat(300))).collect();
        let report = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&report).await), (300, true, 0));
        assert_eq!(setting.own_reviews(), (1, 300));
        assert!(setting.emulator.bodies_sent().iter().all(|body| body.chars().count() <= LONGEST));
        let (_, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((conclusion.as_deref(), title.as_str()), (Some("failure"), "300 findings: 300 critical"));
    }

    async fn a_line_that_github_refuses_is_named_in_the_body(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        // GitHub may refuse a line although its own list of files contains it.
        let refused = Answer::json(422, json!({"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}));
        let names_it = |request: &canonry_testkit::github::Recorded| {
            let comments = request.body.as_ref().and_then(|body| body["comments"].as_array());
            comments.is_some_and(|comments| comments.iter().any(|one| one["line"] == 17))
        };
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").when(names_it).always().answer_with(refused));
        let all: Vec<Value> = (1..=30).map(|line| on_line(line, "major", "correctness")).collect();
        let report = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&report).await), (29, true, 0));
        assert_eq!(setting.own_reviews(), (1, 29));
        let named = "- **Major**: Finding number 17 of many · `src/app.js:17`\n";
        assert!(setting.own_bodies()[0].contains(named) && setting.check_text().contains(named), "{:?}", setting.own_bodies());
        let writes = setting.emulator.writes().len();
        assert_eq!(done(&setting.publish(&report).await), (29, false, 0));
        assert_eq!(setting.emulator.writes().len(), writes);
        // The next push neither tries the same line again nor posts the finding again.
        setting.push(&code(&[(35, "more();")]));
        let second = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 0));
        assert_eq!(setting.own_reviews(), (1, 29));
        assert!(setting.check_text().contains(&named.replace('\n', " · since")), "{}", setting.check_text());
    }

    async fn a_review_whose_lines_github_refuses_is_its_body(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let refused = Answer::json(422, json!({"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}));
        let has_comments = |request: &canonry_testkit::github::Recorded| {
            let comments = request.body.as_ref().and_then(|body| body["comments"].as_array());
            comments.is_some_and(|comments| !comments.is_empty())
        };
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").when(has_comments).always().answer_with(refused));
        let report = setting.review(&[on_line(7, "critical", "security")]).await;
        assert_eq!(done(&setting.publish(&report).await), (0, true, 0));
        assert_eq!(setting.own_reviews(), (1, 0));
        let named = "- **Critical**: Finding number 7 of many · `src/app.js:7`\n";
        assert!(setting.own_bodies()[0].contains(named), "{:?}", setting.own_bodies());
    }

    async fn grave_findings_off_the_diff_stand_in_the_body_if_the_scope_is_everything(database: TestDatabase) {
        let mut setting = Setting::with_app(database, &ALL, &code(&[])).await;
        setting.settings.review.scope = AnswerableScope::All;
        let mut elsewhere = finding("Password in the code", 1, "critical", "security");
        elsewhere["path"] = json!("README.md");
        let whole = json!({"title": "No licence", "path": "src/app.js", "severity": "major", "category": "correctness", "rule": "licence"});
        let all = [elsewhere, whole];
        let report = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&report).await), (0, true, 0));
        let named = "- **Critical**: Password in the code · `README.md:1` · outside the diff\n- **Major**: No licence · `src/app.js`\n";
        assert!(setting.own_bodies()[0].contains(named), "{:?}", setting.own_bodies());
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((1, 0), 0));
        // Posted once: after the next push only the check repeats it.
        setting.push(&code(&[(35, "more();")]));
        let second = setting.review(&all).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 0));
        assert_eq!(setting.own_reviews(), (1, 0));
        assert!(setting.check_text().contains("- **Critical**: Password in the code · `README.md:1`"), "{}", setting.check_text());
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("failure"));
    }

    async fn what_was_there_before_is_counted_in_the_details_and_posts_nothing(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let old: Vec<Value> = (1..=40)
            .map(|line| {
                let mut one = finding(&format!("Old problem {line}"), 1, "critical", "security");
                one["path"] = json!("README.md");
                one
            })
            .collect();
        let report = setting.review(&old).await;
        assert_eq!(done(&setting.publish(&report).await), (0, false, 0));
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((0, 0), 0));
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("success"));
        let text = setting.check_text();
        assert!(text.contains("40 findings off the changed lines or older than the change are not shown."), "{text}");
    }
}
