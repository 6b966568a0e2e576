//! Tests whether past findings reach a model by default, with the compiled-in embedder.

use canonry_models::LocalEmbedder;
use canonry_review::ReviewerChoice;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::ModelServer;
use serde_json::json;

use crate::pipeline::model::{NOTHING, model, question};
use crate::pipeline::project::{Asked, Project, code, pull};

/// A model's title and message, the flagged line, and a line with the same mistake elsewhere.
const MISTAKES: [(&str, &str, &str, &str); 6] = [
    (
        "Query in a loop",
        "Each turn of the loop asks the database again. Ask once for all of them.",
        "for (const user of users) await db.query('SELECT * FROM orders WHERE user = ?', user.id);",
        "for (const order of orders) items.push(await db.query('SELECT * FROM items WHERE order_id = ?', order.id));",
    ),
    (
        "SQL is put together from input",
        "Whoever chooses the name runs SQL. Bind it as a parameter.",
        "db.query('SELECT * FROM users WHERE name = \\'' + request.query.name + '\\'');",
        "connection.execute(`DELETE FROM sessions WHERE token = '${request.body.token}'`);",
    ),
    (
        "The promise is not awaited",
        "The file may not be written when the function returns, and an error is lost. Await it.",
        "fs.promises.writeFile(path, report);",
        "mailer.sendMail({ to: user.email, subject: 'Welcome' });",
    ),
    (
        "The error is swallowed",
        "The empty catch block hides every failure. Log it or pass it on.",
        "try { save(order); } catch (error) {}",
        "try { await upload(file); } catch (e) { /* ignore */ }",
    ),
    (
        "The file stays open",
        "Nothing closes the file handle when reading fails. Close it in a finally block.",
        "const handle = await fs.open(path); const text = await handle.readFile(); await handle.close();",
        "const file = fs.openSync(name, 'r'); const data = fs.readSync(file, buffer); fs.closeSync(file);",
    ),
    (
        "The last element is left out",
        "The loop ends one too early, so the last element is never looked at.",
        "for (let i = 0; i < list.length - 1; i++) total += list[i].price;",
        "for (let row = 0; row < rows.length - 1; row += 1) print(rows[row]);",
    ),
];

/// How many of the mistakes a model gets when they come back: in the same file, and in another one.
async fn told_of(threshold: Option<f64>) -> (usize, usize) {
    let database = TestDatabase::sqlite();
    let server = ModelServer::start().await;
    let (llm, embedder) = (model(&server), LocalEmbedder::load().expect("the compiled-in model"));
    let asked = Asked { llm: Some(&llm), embedder: Some(&embedder), ..Asked::default() };
    let mut project = Project::new(&database).await;
    project.settings.knowledge.retrieval.distance_threshold = threshold;
    project.reviewers = vec![ReviewerChoice::Llm];
    let base = project.git.write("src/orders.js", code("a();")).write("src/other.js", code("a();")).commit("base");
    for (at, (title, message, line, _)) in (1_i64..).zip(MISTAKES) {
        project.subject = pull(at);
        project.git.switch("main").branch(&format!("first-{at}")).write("src/orders.js", code(line)).commit("push A");
        let finding = json!({"title": title, "message": message, "path": "src/orders.js", "line": 30, "end_line": null,
            "severity": "minor", "category": "correctness", "suggestion": null});
        server.answer_next(json!({ "findings": [finding] }).to_string());
        project.review_asked(&base, asked).await;
        project.git.write("src/orders.js", code("fixed();")).commit("push B");
        server.answer_next(NOTHING);
        project.review_asked(&base, asked).await;
    }
    let mut told = [0, 0];
    for (at, (title, _, same, similar)) in (1_i64..).zip(MISTAKES) {
        for (place, (path, line)) in [("src/orders.js", same), ("src/other.js", similar)].into_iter().enumerate() {
            project.subject = pull(at * 10 + i64::try_from(place).expect("small"));
            project.git.switch("main").branch(&format!("again-{at}-{place}")).write(path, code(line)).commit("push");
            server.answer_next(NOTHING);
            project.review_asked(&base, asked).await;
            told[place] += usize::from(question(&server).contains(&format!("src/orders.js: {title}")));
        }
    }
    (told[0], told[1])
}

#[tokio::test]
async fn past_findings_reach_the_model_by_default() {
    let (same_file, other_file) = told_of(None).await;
    // Measured: 6 and 3.
    assert!(same_file >= 5 && other_file >= 3, "told of {same_file} and {other_file} of 6 each");
}

#[tokio::test]
async fn a_distance_that_is_written_stands() {
    let (same_file, other_file) = told_of(Some(0.1)).await;
    assert_eq!((same_file, other_file), (0, 0));
}
