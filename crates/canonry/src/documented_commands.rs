//! Checks that the program accepts every command line that a document, the Action, the systemd unit or the image
//! names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};

use crate::arguments::Arguments;

/// All documents except the generated reference, whose examples come from the program.
const DOCUMENTS: [&str; 16] = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "docs/install.md",
    "docs/user-guide.md",
    "docs/operations.md",
    "docs/security.md",
    "docs/faq.md",
    "docs/service.md",
    "docs/review.md",
    "docs/mentions.md",
    "docs/action.md",
    "docs/agents.md",
    "docs/comparison.md",
    "docs/configuration.md",
    "packages/about.md",
];

/// Placeholders for the reader's own values: in commands, and as variables in scripts.
const PLACEHOLDERS: [(&str, &str); 21] = [
    ("N", "12"),
    ("NUMBER", "12"),
    ("PLAN", "12"),
    ("ID", "12"),
    ("o/n", "octo/cat"),
    ("OWNER/NAME", "octo/cat"),
    ("$REPO", "octo/cat"),
    ("$REPOSITORY", "octo/cat"),
    ("$NUMBER", "12"),
    ("$PR", "12"),
    ("$PROVIDER", "openai"),
    ("$STATE", "refs/canonry/state"),
    ("$INPUT_PRICE", "3"),
    ("$OUTPUT_PRICE", "15"),
    ("$MONTHLY_COST", "20"),
    ("$FAIL_ON", "major"),
    ("$MAX_CALLS", "10"),
    ("PATH:LINE", "src/app.js:41"),
    ("FILE…", "items.jsonl"),
    ("FINGERPRINT", "fp-0123abcd"),
    ("--reviewer=$one", "--reviewer=builtin"),
];

#[test]
fn documents_name_commands_that_exist() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for document in DOCUMENTS {
        let (blocks, mentions) = code(&text(document));
        for words in blocks.iter().flat_map(|line| commands(line)) {
            seen += 1;
            wrong.extend(accepted(&words).err().map(|error| format!("{document}: {}\n{error}", words.join(" "))));
        }
        let mentions = mentions.iter().filter(|line| line.starts_with("canonry "));
        for words in mentions.flat_map(|line| commands(line)) {
            seen += 1;
            // In a sentence `canonry jobs` is a name and may be incomplete.
            let error = accepted(&words).err().filter(|error| !is_incomplete(error));
            wrong.extend(error.map(|error| format!("{document}: {}\n{error}", words.join(" "))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "only {seen} commands were found");
}

/// Commands on pages of the demo are tested further in the browser; this test covers the sources, where values are
/// not filled in yet.
#[test]
fn pages_name_commands_that_exist() {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../canonry-console");
    let (mut seen, mut wrong) = (0, Vec::new());
    let mut waiting = vec![console.join("src")];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        // A template has commands in `<code>` elements; Rust code has them in strings or between backquotes inside
        // strings.
        let (begins, ends) = if path.extension().is_some_and(|ending| ending == "html") {
            (&["<code>"][..], &['<'][..])
        } else {
            (&["\"", "`"][..], &['"', '`'][..])
        };
        for begin in begins {
            for (start, _) in text.match_indices(&format!("{begin}canonry ")) {
                let command = without_tags(&text[start + begin.len()..]);
                let command = command.split(ends).next().unwrap_or_default();
                let words = words_of(&with_values(command));
                if words.len() < 2 || words.iter().any(|word| word.contains('…')) {
                    continue;
                }
                seen += 1;
                let error = accepted(&words).err().filter(|error| !is_incomplete(error));
                wrong.extend(error.map(|error| format!("{}: {command}\n{error}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 25, "only {seen} commands were found");
}

/// A template without its `{% … %}` tags.
fn without_tags(template: &str) -> String {
    let template = template.split("</code>").next().unwrap_or_default();
    let mut kept = template.split("{%");
    let first = kept.next().unwrap_or_default().to_owned();
    first + &kept.filter_map(|part| part.split_once("%}")).map(|(_, rest)| rest).collect::<String>()
}

/// A command with a plausible value in place of each value that is filled in later.
fn with_values(command: &str) -> String {
    let command = command.replace("{{ repo.owner }}/{{ repo.name }}", "octo/cat");
    let mut filled = String::new();
    let mut rest = command.as_str();
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        let Some(end) = from.find('}') else { break };
        filled.push_str(before);
        let value = match before.trim_end().rsplit(' ').next() {
            Some("--repo") => "octo/cat",
            Some("--type") => "issue",
            Some("--source") => "raw",
            Some("why") => "src/app.js:41",
            _ => "12",
        };
        filled.push_str(value);
        rest = from[end + 1..].trim_start_matches('}');
    }
    filled + rest
}

#[test]
fn the_help_of_every_command_begins_with_an_example() {
    let (mut seen, mut without) = (0, Vec::new());
    let mut waiting: Vec<Command> = Arguments::command().get_subcommands().cloned().collect();
    while let Some(mut command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        if command.is_hide_set() {
            continue;
        }
        seen += 1;
        for help in [command.render_help(), command.render_long_help()] {
            if !help.to_string().starts_with("Example:\n  ") {
                without.push(command.get_name().to_owned());
            }
        }
    }
    assert!(without.is_empty(), "without an example: {without:?}");
    assert!(seen > 45, "only {seen} commands were found");
}

#[test]
fn the_unit_and_the_image_start_the_service() {
    let unit = text("packages/canonry.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/")).expect("ExecStart");
    assert_eq!(name_of(&words_of(start)), "serve");
    let containerfile = text("packages/Containerfile");
    let given = containerfile.lines().find_map(|line| line.strip_prefix("CMD ")).expect("CMD");
    let mut words: Vec<String> = serde_json::from_str(given).expect("a JSON list");
    words.insert(0, "canonry".to_owned());
    assert_eq!(name_of(&words), "serve");
}

#[test]
fn the_action_passes_options_that_exist() {
    let action = text("action.yml");
    let lines: Vec<&str> = action.lines().map(str::trim).collect();
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in &lines {
        for (start, _) in line.match_indices("=(") {
            let name = line[..start].trim_end_matches('+').rsplit([' ', ';']).next().unwrap_or_default();
            let inside = &line[start + 2..];
            if let Some(end) = inside.find(')') {
                lists.entry(name.to_owned()).or_default().extend(words_of(&inside[..end]));
            }
        }
    }
    let options = &lists["options"];
    assert!(options.len() > 10, "{options:?}");
    let mut run = Vec::new();
    // `program` is the same command, with or without the token in its environment.
    let call = |line: &&&str| ["\"$CANONRY\" ", "\"${program[@]}\" "].iter().any(|begin| line.starts_with(begin));
    for line in lines.iter().filter(call).filter_map(|line| line.split_once(' ')).map(|(_, rest)| rest) {
        let mut words = vec!["canonry".to_owned()];
        for word in words_of(line) {
            match lists.iter().find(|(name, _)| word.contains(&format!("{name}[@]"))) {
                Some((_, list)) => words.extend(list.clone()),
                None => words.push(word),
            }
        }
        run.push(name_of(&words));
    }
    assert_eq!(run, ["run", "review"]);
}

/// The subcommand of a complete command line.
fn name_of(words: &[String]) -> String {
    let matches = accepted(words).unwrap_or_else(|error| panic!("{words:?}\n{error}"));
    matches.subcommand_name().expect("a command").to_owned()
}

fn accepted(words: &[String]) -> Result<clap::ArgMatches, clap::Error> {
    Arguments::program().try_get_matches_from(words)
}

fn is_incomplete(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
    )
}

fn text(file: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The lines of shell blocks, with continued lines joined, and the text between backquotes elsewhere.
fn code(document: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut mentions) = (Vec::new(), Vec::new());
    let mut inside: Option<bool> = None;
    let mut begun = String::new();
    for line in document.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = if inside.is_some() { None } else { Some(language == "sh") };
            continue;
        }
        match inside {
            Some(true) => match line.trim().strip_suffix('\\') {
                Some(part) => begun.push_str(part),
                None => blocks.push(std::mem::take(&mut begun) + line.trim()),
            },
            Some(false) => {}
            None => mentions.extend(line.split('`').skip(1).step_by(2).map(str::to_owned)),
        }
    }
    (blocks, mentions)
}

/// The calls of the program in a line of a script, each split into words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let starters = ["cargo run --release -- ", "uvx canonry ", "npx canonry "];
    let line = starters.iter().fold(line.to_owned(), |line, starter| line.replace(starter, "canonry "));
    // `pause|resume` in a sentence means either; the first is tested for both.
    let line = line.split("\\|").next().unwrap_or_default();
    line.split(" && ")
        .map(str::trim)
        .filter(|part| part.starts_with("canonry "))
        .filter(|part| !part.contains('…') || PLACEHOLDERS.iter().any(|(name, _)| part.contains(name)))
        .map(words_of)
        .collect()
}

/// Splits a simple command into words as a shell does, with placeholders filled in.
fn words_of(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#' | '>' | '|' | ';') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words.into_iter().map(|word| filled(&word)).collect()
}

fn filled(word: &str) -> String {
    let value = |told: &str| PLACEHOLDERS.iter().find(|(name, _)| *name == told).map(|(_, value)| (*value).to_owned());
    // `--option=$VALUE` is filled in like `--option $VALUE`.
    let joined = || word.split_once('=').and_then(|(name, told)| Some(format!("{name}={}", value(told)?)));
    value(word).or_else(joined).unwrap_or_else(|| word.to_owned())
}
