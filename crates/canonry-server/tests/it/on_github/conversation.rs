//! Pushes A, B (forced) and C, and what people say in between, as one conversation.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewPull;
use serde_json::{Value, json};

use crate::on_github::linter::Linter;
use crate::on_github::outbound::assert_clean;
use crate::world::As;
use crate::world::review_world::{REPO, ReviewWorld};

const SETTINGS: &str = "review: {reviewers: [builtin, command], triggers: {onSynchronize: true}}\nknowledge: {retrieval: {enabled: false}}";
const CODE: &str = "src/fill.js";
const TEST: &str = "test/fill.test.js";

const A: &str = "\
export async function fill(pool, level) {
  debugger;
  const gauge = await openGauge(pool);
  console.log('filling', pool.name);
  while (gauge.read() < level) {
    await pool.valve.open();
  }
}
";
/// Nothing stops it any more, and the rest is further down.
const B: &str = "\
import { openGauge } from './gauge.js';

/** Fills the pool at night. */
export async function fill(pool, level) {
  const gauge = await openGauge(pool);
  console.log('filling', pool.name);
  while (gauge.read() < level) {
    await pool.valve.open();
  }
}
";
const FOCUSED: &str = "\
it.only('fills a pool', async () => {
  await fill(pool, 3);
  expect(pool.level).toBe(3);
});
";

fn gauge(line: u32) -> Value {
    json!({
        "title": "The gauge stays open", "path": CODE, "line": line, "severity": "medium", "category": "correctness",
        "rule": "must-close", "message": "Nothing closes `gauge`, also when `open()` fails.", "fix": "finally { gauge.close(); }",
    })
}

/// A key as its maker prints it, and put together here so that nobody takes this file for a leak.
fn remote() -> String {
    format!("export const key = \"AKIA{}\";\nexport const region = 'north';\n", "2E0A8F3B6C1D9G7H")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_pushes_make_a_conversation_that_a_maintainer_likes_to_read() {
    let (database, linter) = (TestDatabase::sqlite(), Linter::new());
    let setting = ReviewWorld::with(&database, As::App, SETTINGS, linter.parts()).await;
    linter.finds(&[gauge(3)]);
    let number = setting.meanwhile(|world| {
        world.commit(REPO, "night", &[(CODE, Some(A)), (TEST, Some(FOCUSED))]);
        let body = Some("The pool is filled when nobody swims.".to_owned());
        world.open_pull(REPO, "ann", "night", NewPull { body, ..NewPull::new("Fill the pool at night") })
    });
    let mut pushes = vec![setting.head(number)];
    setting.settle().await;

    // The author wants one of them so.
    let thread = comment(&setting, number, "Something is printed");
    setting.meanwhile(|world| world.reply_in_thread(REPO, thread, "ann", "Won't fix: the night watch reads it."));
    setting.settle().await;
    linter.finds(&[gauge(5)]);
    let files = [(CODE, Some(B)), (TEST, Some(FOCUSED))];
    pushes.push(setting.meanwhile(|world| world.force_push_pull(REPO, number, "ann", &files)));
    setting.settle().await;

    let files = [("src/remote.js", Some(remote()))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_deref()));
    pushes.push(setting.meanwhile(|world| world.push_pull(REPO, number, "ann", &files)));
    setting.settle().await;
    insta::assert_snapshot!(conversation(&setting, number, &pushes), @r#"
    # Fill the pool at night (open, by ann)
    The pool is filled when nobody swims.

    ## canonry[bot] reviewed push-b
    New findings, each at its line.
      test/fill.test.js:1
        canonry[bot]:
          **A focused test keeps the others from running**

          Major · correctness · 80 % sure · builtin (focused-test)

          With this the other tests are skipped, and the run is green all the same. Remove the focus.

          <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
      src/fill.js:2, outdated, resolved by canonry[bot]
        canonry[bot]:
          **Debugging code is left in**

          Medium · correctness · 70 % sure · builtin (debug-leftover)

          It stops the program or prints its inner state. Remove it before merging.

          <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
      src/fill.js:5
        canonry[bot]:
          **The gauge stays open**

          Medium · correctness · 70 % sure · tidelint (must-close)

          Nothing closes `gauge`, also when `open()` fails.

          Suggested:

          ```
          finally { gauge.close(); }
          ```

          <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
      src/fill.js:6
        canonry[bot]:
          **Something is printed to the console**

          Minor · style · 45 % sure · builtin (console-output)

          Nothing else in this file prints to the console. Remove it, or use the logger.

          <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
        ann:
          Won't fix: the night watch reads it.
          [+1 canonry[bot]]

    ## canonry[bot] commented (edited)
    **3 findings: 1 critical, 1 major, 1 medium; 1 new.** Last reviewed commit: `push-c`.

    Earlier findings: 2 still there, 1 dismissed.

    - **Still there**: A focused test keeps the others from running · `test/fill.test.js:1` · since `push-a`
    - **Still there**: The gauge stays open · `src/fill.js:5` · since `push-a`
    - **Dismissed** by `ann` (will not be fixed): Something is printed to the console · `src/fill.js:6` · since `push-a`

    <details>
    <summary>Review details</summary>

    - Incremental review: what came since `push-b`.
    - 1 of 3 changed files read, 2 lines.
    - Reviewers: builtin (1 finding), tidelint (1 finding).
    - 1 finding suppressed: 1 dismissed by people.

    | severity | shown | suppressed |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    `/canonry help` tells what can be asked for here.

    </details>

    ## check Canonry on push-b: neutral
    2 findings: 1 major, 1 medium; none new
    The findings are told in the conversation of the pull request.

    Earlier findings: 1 fixed, 1 still there, 1 moved, 1 dismissed.

    - Incremental review: what came since `push-a`.
    - 1 of 2 changed files read, 10 lines.
    - Reviewers: builtin (1 finding), tidelint (1 finding).
    - 1 finding suppressed: 1 dismissed by people.

    | severity | shown | suppressed |
    |---|--:|--:|
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    ## check Canonry on push-c: failure
    3 findings: 1 critical, 1 major, 1 medium; 1 new
    The findings are told in the conversation of the pull request.

    Earlier findings: 2 still there, 1 dismissed.

    - Incremental review: what came since `push-b`.
    - 1 of 3 changed files read, 2 lines.
    - Reviewers: builtin (1 finding), tidelint (1 finding).
    - 1 finding suppressed: 1 dismissed by people.

    | severity | shown | suppressed |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    ## canonry[bot] reviewed push-c
    New findings, each at its line.
      src/remote.js:1
        canonry[bot]:
          **A credential is committed**

          Critical · security · 95 % sure · builtin (leaked-credential)

          This looks like an AWS key. Whoever can read the repository can use it, also after it is removed: revoke it, and read the new one from the environment or a secret store.

          <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
    "#);
    assert_eq!((setting.posted(number), setting.said(number).len()), ((2, 5), 1), "each finding once, and one summary");

    // Told once more of everything that ever happened, it has nothing to add.
    let (before, writes) = (conversation(&setting, number, &pushes), setting.emulator.writes().len());
    let guids: Vec<String> = setting.emulator.world().deliveries.iter().map(|one| one.guid.clone()).collect();
    for guid in guids {
        setting.meanwhile(|world| world.redeliver(&guid));
    }
    setting.settle().await;
    assert_eq!((conversation(&setting, number, &pushes), setting.emulator.writes().len()), (before, writes));

    // Who asks about the same commit gets a review of it, which has nothing to add either.
    for asked in ["/canonry review", "/canonry full review"] {
        let (posted, said) = (setting.posted(number), setting.said(number).len());
        setting.meanwhile(|world| world.comment(REPO, number, "ann", asked));
        setting.settle().await;
        assert_eq!((setting.posted(number), setting.said(number).len()), (posted, said), "{asked}");
        let head = setting.head(number);
        assert_eq!(setting.conclusion(&head).as_deref(), Some("failure"), "a critical finding stands");
    }
    assert_eq!(setting.reviewed(number).await.len(), 5);
    assert_clean(&setting.emulator);
}

/// The conversation, with the pushes by their names.
fn conversation(setting: &ReviewWorld, number: u64, pushes: &[String]) -> String {
    let shown = setting.emulator.world().conversation(REPO, number);
    pushes.iter().zip(["push-a", "push-b", "push-c"]).fold(shown, |shown, (head, name)| shown.replace(&head[..7], name))
}

/// The comment at a line that says this.
fn comment(setting: &ReviewWorld, number: u64, title: &str) -> u64 {
    let world = setting.emulator.world();
    let said =
        world.review_comments_by(REPO, number, setting.who.login()).into_iter().rfind(|one| one.body.contains(title));
    said.unwrap_or_else(|| panic!("nothing says {title}: {}", world.conversation(REPO, number))).id
}
