//! Tests the code that a model suggests: on GitHub it can be applied only where it fits.

use canonry_domain::review::ShownAs;
use canonry_review::ReviewerChoice;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::ModelServer;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::pipeline::model::model;
use crate::publication::setting::{ALL, REPO, Setting, code, done};

fn found(title: &str, lines: (u32, u32), replacement: &str) -> Value {
    json!({"title": title, "message": "It goes wrong.", "path": "src/app.js", "line": lines.0, "end_line": lines.1,
        "severity": "major", "category": "correctness", "suggestion": null, "replacement": replacement})
}

on_both_engines! {
    async fn code_that_fits_can_be_applied(database: TestDatabase) {
        let server = ModelServer::start().await;
        let mut setting = Setting::with_app(database, &ALL, &code(&[(9, "  quoted(`x`);"), (20, "first();"), (21, "second();")])).await;
        setting.llm = Some(model(&server));
        let token = ["ghp_", "x7Kq2mVb9TzR4wYc6NdF1hGj8LpS3aQe5UiO"].concat();
        server.answer_next(json!({"findings": [
            found("Plain", (3, 3), "step3(1);\n"),
            found("Two lines", (20, 21), "first();\nbetween();\nsecond();"),
            found("Fence in the code", (9, 9), "  quoted(`x`);\n```\n</details> @mona\n````"),
            found("Secret in the code", (12, 12), &format!("step12(\"{token}\");")),
            found("Another indentation", (15, 15), "    step15(1);"),
        ]}).to_string());
        let report = setting.review_by(&[ReviewerChoice::Llm], true).await;
        assert!(report.standing().all(|one| one.shown == ShownAs::Inline), "{report:?}");
        assert_eq!(done(&setting.publish(&report).await).0, 5);
        let comment = |title: &str| {
            let id = setting.comment_about(title);
            let world = setting.emulator.world();
            let comments = world.review_comments_by(REPO, setting.number(), setting.own);
            comments.iter().find(|one| one.id == id).expect("a comment").body.clone()
        };
        assert!(comment("Plain").contains("Suggested:\n\n```suggestion\nstep3(1);\n```\n"), "{}", comment("Plain"));
        assert!(comment("Two lines").contains("```suggestion\nfirst();\nbetween();\nsecond();\n```\n"), "{}", comment("Two lines"));
        let fence = comment("Fence in the code");
        assert!(fence.contains("`````suggestion\n  quoted(`x`);\n```\n</details> @mona\n````\n`````\n"), "{fence}");
        for shown in ["Secret in the code", "Another indentation"] {
            assert!(!comment(shown).contains("```suggestion"), "{}", comment(shown));
        }
        assert!(comment("Another indentation").contains("```\nstep15(1);\n```\n"), "{}", comment("Another indentation"));
        assert!(setting.emulator.bodies_sent().iter().all(|body| !body.contains(&token)));
    }

    async fn what_a_second_reading_cannot_prove_is_stored_and_not_posted(database: TestDatabase) {
        let server = ModelServer::start().await;
        let mut setting = Setting::with_app(database, &ALL, &code(&[])).await;
        setting.llm = Some(model(&server));
        server.answer_next(json!({"findings": [found("Unproven", (3, 3), "step3(1);")]}).to_string());
        let reading = json!({"finding": 1, "quote": "nowhere();", "failure": "It fails.", "refuted": false, "reason": ""});
        server.answer_next(json!({"readings": [reading]}).to_string());
        let report = setting.review_by(&[ReviewerChoice::Llm], true).await;
        assert_eq!(report.hidden().map(|one| one.hidden_by.as_ref().map(|by| by.as_text())).collect::<Vec<_>>(), [Some("second-reading".to_owned())]);
        assert_eq!(done(&setting.publish(&report).await).0, 0);
        assert!(setting.check_text().contains("1 finding hidden: 1 not proven by a second reading."), "{}", setting.check_text());
        // It is stored as such, and a report that is read back says the same.
        let again = setting.review_by(&[ReviewerChoice::Llm], false).await;
        assert_eq!(again.hidden().count(), 1);
    }
}
