//! A judging or reviewing program that searches every process for Canonry's secrets.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::place::Place;
use crate::working_copy::{WorkingCopy, code};

/// A user without privileges, if the tests run as root.
const NOBODY: u32 = 65_534;

/// A secret that only Canonry may read. It is assembled at run time, because this program's own memory is searched as
/// well.
fn secret() -> String {
    ["tide", "pool", "4711"].join("-")
}

/// Reads the environment of every process, and the memory and open files of all its ancestors, and prints this
/// answer.
fn hostile(answer: &str) -> String {
    format!(
        r#"cat > /dev/null
loot=$(dirname "$0")/loot
cat /proc/[0-9]*/environ >> "$loot" 2> /dev/null
process=$PPID
while [ "${{process:-0}}" -gt 1 ]; do
  for file in "/proc/$process/fd"/*; do
    [ -f "$file" ] && head -c 100000 "$file" >> "$loot"
  done
  stack=$(sed -n 's/^\([0-9a-f]*\)-\([0-9a-f]*\) .*\[stack\]$/\1 \2/p' "/proc/$process/maps")
  if [ -n "$stack" ]; then
    from=$((0x${{stack% *}} / 4096)); to=$((0x${{stack#* }} / 4096))
    dd if="/proc/$process/mem" bs=4096 skip="$from" count="$((to - from))" >> "$loot"
  fi
  process=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$process/status")
done 2> /dev/null
echo "parent $PPID" >> "$loot"
printf '%s' '{answer}'
"#
    )
}

struct Victim<'a> {
    place: &'a Place,
    user: u32,
}

impl Victim<'_> {
    /// Runs the program below a shell as this user, both with secrets in their environment.
    fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        self.below_a_shell(folder, &[&[env!("CARGO_BIN_EXE_canonry")], arguments].concat())
    }

    fn below_a_shell(&self, folder: &Path, words: &[&str]) -> Output {
        self.give();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "\"$@\"; exit $?", "sh"])
            .args(words)
            .env_clear()
            .env("HOME", self.place.path(""))
            .env("TMPDIR", self.place.path("tmp"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GITHUB_TOKEN", secret())
            .env("CANONRY_ADMIN_TOKEN", secret())
            .env("CANONRY_WEBHOOK_SECRET", secret())
            .current_dir(folder);
        if self.user != own_user() {
            shell.uid(self.user).gid(self.user);
        }
        shell.output().expect("a shell starts")
    }

    fn give(&self) {
        fn give(path: &Path, user: u32) {
            chown(path, Some(user), Some(user)).expect("root gives away what it likes");
            if path.is_dir() {
                for entry in fs::read_dir(path).expect("a folder") {
                    give(&entry.expect("an entry").path(), user);
                }
            }
        }
        if self.user != own_user() {
            give(&self.place.path(""), self.user);
        }
    }

    /// What the program found, and whether a secret is in it.
    fn loot(&self) -> (String, bool) {
        let found = fs::read(self.place.path("loot")).expect("the program was asked");
        fs::remove_file(self.place.path("loot")).expect("there");
        let found = String::from_utf8_lossy(&found).into_owned();
        let has_secret = found.contains(&secret());
        (found, has_secret)
    }
}

fn own_user() -> u32 {
    fs::metadata("/proc/self").expect("Linux").uid()
}

/// The user who runs the tests and, for root, a user without privileges.
fn users() -> Vec<u32> {
    if own_user() == 0 { vec![0, NOBODY] } else { vec![own_user()] }
}

#[test]
fn a_program_that_judges_finds_no_secret_in_any_process() {
    for user in users() {
        let place = Place::new();
        let victim = Victim { place: &place, user };
        let answer = json!({"is_duplicate": false, "confidence": 0.9, "reasoning": "No."});
        let script = place.write("judge.sh", hostile(&answer.to_string()));
        let body = "After the change of last week the exporter writes its summary twice to the console, once at the \
            beginning and once at the end of each run, and the second copy carries the numbers of the first one.";
        let lines = [10, 11].map(|number| {
            json!({"number": number, "title": "The summary is written twice", "body": body, "state": "open"})
                .to_string()
        });
        place.write("items.jsonl", lines.join("\n"));
        let program = format!("sh {}", script.display());
        // Without Canonry the same program finds the secret, so the test can fail.
        victim.below_a_shell(&place.path(""), &["sh", "-c", &format!("{program} < /dev/null; true")]);
        assert!(victim.loot().1, "user {user} sees what its own processes have");
        let run = |arguments: &[&str]| {
            let ran = victim.run(&place.path(""), &[arguments, &["--repo", "octo/cat"]].concat());
            assert!(ran.status.success(), "user {user}: {ran:?}");
            assert!(!format!("{ran:?}").contains(&secret()));
        };
        run(&["import", "items.jsonl"]);
        run(&["embed"]);
        run(&["candidates"]);
        run(&["judge", "--provider", "command", "--model", &program]);
        let (found, has_secret) = victim.loot();
        assert!(found.contains("HOME=") && found.contains("parent "), "user {user} sees its own processes");
        assert!(!has_secret, "user {user} found a secret");
    }
}

#[test]
fn a_program_that_reviews_finds_no_secret_in_any_process() {
    for user in users() {
        let copy = WorkingCopy::new();
        copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
        let victim = Victim { place: &copy.place, user };
        let script = copy.place.write("reviewer.sh", hostile(&json!({"findings": []}).to_string()));
        let program = format!("sh {}", script.display());
        let asked = ["review", "--base", "main", "--reviewer", "command", "--command", &program];
        let ran = victim.run(&copy.path(""), &asked);
        assert!(ran.status.success(), "user {user}: {ran:?}");
        let (found, has_secret) = victim.loot();
        assert!(found.contains("HOME=") && found.contains("parent "), "user {user} sees its own processes");
        assert!(!has_secret, "user {user} found a secret");
    }
}
