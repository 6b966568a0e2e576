//! Pushes A, B (forced) and C, and people's comments in between, as one conversation.

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
/// The debugger statement is gone, and the rest has moved down.
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

fn printed(line: u32) -> Value {
    json!({
        "title": "Something is printed to the console", "path": CODE, "line": line, "severity": "minor", "category": "style",
        "rule": "no-print", "message": "Nothing else in this file prints to the console.",
    })
}

fn gauge(line: u32) -> Value {
    json!({
        "title": "The gauge stays open", "path": CODE, "line": line, "severity": "medium", "category": "correctness",
        "rule": "must-close", "message": "Nothing closes `gauge`, also when `open()` fails.", "fix": "finally { gauge.close(); }",
    })
}

/// A key in its usual format, put together here so that secret scanners do not report this file.
fn remote() -> String {
    format!("export const key = \"AKIA{}\";\nexport const region = 'north';\n", "2E0A8F3B6C1D9G7H")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_pushes_make_a_conversation_that_a_maintainer_likes_to_read() {
    let (database, linter) = (TestDatabase::sqlite(), Linter::new());
    let setting = ReviewWorld::with(&database, As::App, SETTINGS, linter.parts()).await;
    linter.finds(&[gauge(3), printed(4)]);
    let number = setting.meanwhile(|world| {
        world.commit(REPO, "night", &[(CODE, Some(A)), (TEST, Some(FOCUSED))]);
        let body = Some("The pool is filled when nobody swims.".to_owned());
        world.open_pull(REPO, "ann", "night", NewPull { body, ..NewPull::new("Fill the pool at night") })
    });
    let mut pushes = vec![setting.head(number)];
    setting.settle().await;

    // The author wants to keep one of them.
    let thread = comment(&setting, number, "Something is printed");
    setting.meanwhile(|world| world.reply_in_thread(REPO, thread, "ann", "Won't fix: the night watch reads it."));
    setting.settle().await;
    linter.finds(&[gauge(5), printed(6)]);
    let files = [(CODE, Some(B)), (TEST, Some(FOCUSED))];
    pushes.push(setting.meanwhile(|world| world.force_push_pull(REPO, number, "ann", &files)));
    setting.settle().await;

    let files = [("src/remote.js", Some(remote()))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_deref()));
    pushes.push(setting.meanwhile(|world| world.push_pull(REPO, number, "ann", &files)));
    setting.settle().await;
    insta::assert_snapshot!(conversation(&setting, number, &pushes), @"
    # Fill the pool at night (open, by ann)
    The pool is filled when nobody swims.

    ## canonry[bot] reviewed push-b
    **4 findings**: 1 major, 2 medium, 1 minor.

    - **Major**: A focused test keeps the others from running · `test/fill.test.js:1`
    - **Medium**: Debugging code is left in · `src/fill.js:2`
    - **Medium**: The gauge stays open · `src/fill.js:3`
    - **Minor**: Something is printed to the console · `src/fill.js:4`

    <details>
    <summary>Review details</summary>

    - Full review: no earlier review.
    - 2 of 2 changed files read, 12 lines.
    - Reviewers: builtin (2 findings), tidelint (2 findings).

    | severity | shown | hidden |
    |---|--:|--:|
    | major | 1 | 0 |
    | medium | 2 | 0 |
    | minor | 1 | 0 |

    `/canonry help` lists the commands.

    </details>
      test/fill.test.js:1
        canonry[bot]:
          **A focused test keeps the others from running**

          With this the other tests are skipped, and the run is green all the same. Remove the focus.

          <sub>Major · `builtin/focused-test` · Not useful? Reply `/canonry not useful`.</sub>
      src/fill.js:2, outdated, resolved by canonry[bot]
        canonry[bot]:
          **Debugging code is left in**

          It stops the program or prints its inner state. Remove it before merging.

          <sub>Medium · `builtin/debug-leftover` · Not useful? Reply `/canonry not useful`.</sub>
      src/fill.js:5
        canonry[bot]:
          **The gauge stays open**

          Nothing closes `gauge`, also when `open()` fails.

          Suggested:

          ```
          finally { gauge.close(); }
          ```

          <sub>Medium · `tidelint/must-close` · Not useful? Reply `/canonry not useful`.</sub>
      src/fill.js:6
        canonry[bot]:
          **Something is printed to the console**

          Nothing else in this file prints to the console.

          <sub>Minor · `tidelint/no-print` · Not useful? Reply `/canonry not useful`.</sub>
        ann:
          Won't fix: the night watch reads it.
          [+1 canonry[bot]]

    ## check Canonry on push-b: neutral
    2 findings: 1 major, 1 medium
    Since the last review: 1 fixed, 2 still open.

    <details>
    <summary>Earlier findings (4)</summary>

    - **Fixed**: Debugging code is left in · `src/fill.js:2` · since `push-a`
    - **Still open**: A focused test keeps the others from running · `test/fill.test.js:1` · since `push-a`
    - **Still open**: The gauge stays open · `src/fill.js:3` → `src/fill.js:5` · since `push-a`
    - **Dismissed** by `ann` (won't fix): Something is printed to the console · `src/fill.js:6` · since `push-a`

    </details>

    - Incremental review: changes since `push-a`.
    - 1 of 2 changed files read, 10 lines.
    - Reviewers: builtin (0 findings), tidelint (2 findings).
    - 1 finding hidden: 1 dismissed.

    | severity | shown | hidden |
    |---|--:|--:|
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    ## check Canonry on push-c: failure
    3 findings: 1 critical, 1 major, 1 medium
    Since the last review: 1 new, 2 still open.

    - **Critical**: A credential is committed · `src/remote.js:1`

    <details>
    <summary>Earlier findings (3)</summary>

    - **Still open**: A focused test keeps the others from running · `test/fill.test.js:1` · since `push-a`
    - **Still open**: The gauge stays open · `src/fill.js:5` · since `push-a`
    - **Dismissed** by `ann` (won't fix): Something is printed to the console · `src/fill.js:6` · since `push-a`

    </details>

    - Incremental review: changes since `push-b`.
    - 1 of 3 changed files read, 2 lines.
    - Reviewers: builtin (1 finding), tidelint (2 findings).
    - 1 finding hidden: 1 dismissed.

    | severity | shown | hidden |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    ## canonry[bot] reviewed push-c
    **3 findings**: 1 critical, 1 major, 1 medium. Since the last review: 1 new, 2 still open.

    - **Critical**: A credential is committed · `src/remote.js:1`

    <details>
    <summary>Earlier findings (3)</summary>

    - **Still open**: A focused test keeps the others from running · `test/fill.test.js:1` · since `push-a`
    - **Still open**: The gauge stays open · `src/fill.js:5` · since `push-a`
    - **Dismissed** by `ann` (won't fix): Something is printed to the console · `src/fill.js:6` · since `push-a`

    </details>

    <details>
    <summary>Review details</summary>

    - Incremental review: changes since `push-b`.
    - 1 of 3 changed files read, 2 lines.
    - Reviewers: builtin (1 finding), tidelint (2 findings).
    - 1 finding hidden: 1 dismissed.

    | severity | shown | hidden |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 1 | 0 |
    | minor | 0 | 1 |

    `/canonry help` lists the commands.

    </details>
      src/remote.js:1
        canonry[bot]:
          **A credential is committed**

          This looks like an AWS key. Anybody who can read the repository can use this credential, even after a commit removes it. Revoke it, and read the new credential from the environment or a secret store.

          <sub>Critical · `builtin/leaked-credential` · Not useful? Reply `/canonry not useful`.</sub>
    ");
    assert_eq!(
        (setting.posted(number), setting.said(number).len()),
        ((2, 5), 0),
        "each finding once, in one review a push"
    );

    // When every delivery is sent again, Canonry posts nothing more.
    let (before, writes) = (conversation(&setting, number, &pushes), setting.emulator.writes().len());
    let guids: Vec<String> = setting.emulator.world().deliveries.iter().map(|one| one.guid.clone()).collect();
    for guid in guids {
        setting.meanwhile(|world| world.redeliver(&guid));
    }
    setting.settle().await;
    assert_eq!((conversation(&setting, number, &pushes), setting.emulator.writes().len()), (before, writes));

    // A requested review of the same commit is made, and posts nothing new either.
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

/// The inline comment with this title.
fn comment(setting: &ReviewWorld, number: u64, title: &str) -> u64 {
    let world = setting.emulator.world();
    let said =
        world.review_comments_by(REPO, number, setting.who.login()).into_iter().rfind(|one| one.body.contains(title));
    said.unwrap_or_else(|| panic!("nothing says {title}: {}", world.conversation(REPO, number))).id
}
