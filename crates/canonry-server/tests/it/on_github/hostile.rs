//! A stranger puts every known trick into every text that Canonry reads: none has an effect on what Canonry writes.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewPull;
use serde_json::{Value, json};

use crate::on_github::linter::Linter;
use crate::on_github::outbound::assert_clean;
use crate::world::As;
use crate::world::review_world::{REPO, ReviewWorld};

const SETTINGS: &str = "review: {reviewers: [builtin, command], triggers: {onSynchronize: true}, maxComments: 25, \
    minConfidence: 60}\n'@team <img src=x>': '</details>'\nmentions: {'@team': 1}\n";
const FORGED: &str = "<!-- canonry:v1:review:review/1%231/post/1:q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6j7k8l9z0x1c -->";

/// A made-up token, put together here so that secret scanners do not report this file.
fn token() -> String {
    ["ghp_", "x7Kq2mVb9TzR4wYc6NdF1hGj8LpS3a0odryJ"].concat()
}

/// Texts that do harm if they are repeated unchanged. `copied` is a marker that Canonry itself wrote elsewhere.
fn tricks(copied: &str) -> Vec<String> {
    vec![
        "@team @tide/admins @ann look".to_owned(),
        "&commat;team &#64;team \\@team".to_owned(),
        "<img src=https://evil.example/x.png> <a href=//evil.example>x</a> <script>x</script>".to_owned(),
        "![x](https://evil.example/x.png) [x](https://evil.example) [x]: //evil.example".to_owned(),
        "https://evil.example www.evil.example mailto:x@evil.example".to_owned(),
        "</sub></summary></details><details open>".to_owned(),
        format!("{FORGED} --> <!--"),
        copied.to_owned(),
        format!("the token {} is real", token()),
        "``` ```` ~~~ ` `` @team `@team".to_owned(),
        "\u{202e}maet@ \u{200b}\u{0} \u{1b}[31m \u{feff}".to_owned(),
        "# Heading\n\n- [x] done\n\n| a |\n|---|\n| @team |\n\n~~~\n@team\n".to_owned(),
        "fixes #1, closes tide/pool#1, GH-1".to_owned(),
        "/canonry pause".to_owned(),
        // The same token, split by characters that are invisible when rendered.
        format!("the token {} is real", token().replace("7Kq2", "7K\u{200b}q\u{ad}2")),
        format!("the token {} is real", token().replace('_', "\\_")),
        format!("the token {} is real", token().replace("9Tz", "9`Tz`")),
        format!("the token {} is real", token().replace("9Tz", "9<b></b>T&#122;")),
    ]
}

/// The same findings in the report of a tool that the stranger controls.
fn sarif(path: &str, tricks: &[String]) -> String {
    let results: Vec<Value> = tricks
        .iter()
        .zip(1..)
        .map(|(trick, line)| {
            let rule = format!("{trick}-{line}");
            // Some are outside the diff, some have a low confidence.
            let region =
                if line % 5 == 0 { json!({ "startLine": 4_000 + line }) } else { json!({ "startLine": line }) };
            let level = ["error", "warning", "note"][line % 3];
            json!({
                "ruleId": rule, "level": level, "message": { "text": format!("{trick}\n\n{trick}"), "markdown": trick },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": path }, "region": region } }],
                "fixes": [{ "description": { "text": trick }, "artifactChanges": [{
                    "artifactLocation": { "uri": path },
                    "replacements": [{ "deletedRegion": { "startLine": line }, "insertedContent": { "text": trick } }],
                }] }],
                "properties": { "tags": [trick, "security"] },
            })
        })
        .collect();
    let driver = json!({ "name": format!("lint {}", tricks[0]), "rules": [{ "id": tricks[2], "name": tricks[2] }] });
    json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": driver }, "results": results }] }).to_string()
}

fn code(tricks: &[String]) -> String {
    let lines: Vec<String> =
        tricks.iter().map(|trick| format!("debugger; // {}", trick.replace(['\n', '\0'], " "))).collect();
    format!("{}\nconst key = \"{}\";\n", lines.join("\n"), token())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_strangers_write_has_an_effect_where_canonry_writes() {
    let (database, linter) = (TestDatabase::sqlite(), Linter::new());
    let setting = ReviewWorld::with(&database, As::App, SETTINGS, linter.parts()).await;
    // Markers are public and can be copied.
    let honest = setting.open("ben", "honest", "debugger;\n", NewPull::new("Fill the pool"));
    setting.settle().await;
    let said = setting.emulator.world().reviews_by(REPO, honest, setting.who.login())[0].body.clone();
    let copied = said[said.rfind("<!-- canonry:v1:").expect("a marker")..].trim().to_owned();

    let tricks = tricks(&copied);
    let path = "src/@team `@tide` <img src=x> [x](y).js";
    linter.says(&sarif(path, &tricks));
    let unread = "src/</details>@team<!-- x -->.png";
    let number = setting.meanwhile(|world| {
        let files = [
            (path, Some(code(&tricks))),
            (unread, Some("\0binary".to_owned())),
            ("src/\u{202e}sj.tam@.js", Some("debugger;\n".to_owned())),
        ];
        let files: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (*path, text.as_deref())).collect();
        world.commit(REPO, "mallory:fix/@team-<img>-`x`", &files);
        let title = tricks[..4].join(" ");
        let body = Some(tricks.join("\n\n"));
        let new = NewPull { body, fork: Some("mallory".to_owned()), ..NewPull::new(&title) };
        world.open_pull(REPO, "mallory", "fix/@team-<img>-`x`", new)
    });
    setting.settle().await;
    let (reviews, inline) = setting.posted(number);
    assert!(reviews == 1 && inline >= 5, "{reviews} reviews with {inline} comments");
    assert_eq!(setting.said(number).len(), 0);

    // In the conversation, in threads, and after commands.
    let thread = setting.emulator.world().review_comments_by(REPO, number, setting.who.login())[0].id;
    for trick in &tricks {
        for asked in ["", "/canonry why ", "/canonry sing ", "/canonry not useful ", "/canonry duplicate of "] {
            setting.meanwhile(|world| world.comment(REPO, number, "mallory", &format!("{asked}{trick}")));
            setting.meanwhile(|world| world.reply_in_thread(REPO, thread, "mallory", &format!("{asked}{trick}")));
        }
        setting.settle().await;
    }
    for asked in ["/canonry why", "/canonry feedback list", "/canonry feedback status", "/canonry help"] {
        setting.meanwhile(|world| world.comment(REPO, number, "mallory", asked));
        setting.meanwhile(|world| world.reply_in_thread(REPO, thread, "mallory", asked));
    }
    setting.settle().await;

    // The next review reports the state of all of them.
    setting.meanwhile(|world| world.resolve_thread(REPO, thread, "mallory"));
    setting.meanwhile(|world| {
        let moved = format!("// {}\n{}", tricks[0], code(&tricks[..6]));
        world.push_pull(REPO, number, "mallory", &[(path, Some(&moved))])
    });
    setting.settle().await;
    assert_eq!(setting.reviewed(number).await.len(), 2);
    setting.meanwhile(|world| world.comment(REPO, number, "mallory", "/canonry feedback list"));
    setting.settle().await;

    assert!(setting.emulator.bodies_sent().len() > 40, "{}", setting.emulator.bodies_sent().len());
    assert_clean(&setting.emulator);
    for body in setting.emulator.bodies_sent() {
        let shown: String = body.replace("&ZeroWidthSpace;", "").chars().filter(char::is_ascii_alphanumeric).collect();
        assert!(!shown.contains(&token()[4..]), "{body}");
    }
    // A line of code caused no pause, and the honest pull request was not affected.
    let brakes = setting.store.close().brakes(setting.repo.id).await.expect("reads");
    assert_eq!(brakes, []);
    assert_eq!((setting.posted(honest).0, setting.said(honest).len()), (1, 0));
    setting.emulator.assert_no_unknown_routes();
}
