//! What `--help` shows: the commands in four groups, and an example first.

use insta::assert_snapshot;

use crate::place::{Place, Ran};

#[test]
fn the_commands_are_in_four_groups() {
    let place = Place::new();
    let help = |columns: &str| {
        let mut command = place.command(&["--help"]);
        Ran::of(command.env("COLUMNS", columns).output().expect("the program starts")).succeeded().stdout
    };
    assert_snapshot!(help("80"), @"
    Finds duplicate issues and pull requests, closes them safely, and reviews
    changes

    Usage: canonry [OPTIONS] <COMMAND>

    Start:
      demo               Show a week of Canonry on sample repositories, offline
      init               Create or migrate the database, or write a settings file
      doctor             Check the database, GitHub access and the settings file
      sync               Fetch issues and pull requests from GitHub
      refresh            Fetch new items of a repository that was synced before
      import             Import issues and pull requests from files
      export             Write a repository's items as JSON lines
      config             Check or show a repository's settings (.canonry.yml)
      completions        Print completions for a shell
      man                Print the manual page, or write one for each command

    Triage:
      check              Check whether a draft issue or change is already known
      mcp                Answer a coding agent's questions over MCP (stdio)
      dedupe             Find duplicates and plan what to close; closes nothing
      detect-new         Check whether an item duplicates an open one
      show               Show the verdict on an issue or pull request, and why
      search             Search for items like a text or like another item
      plan-close         Plan which duplicates to close; closes nothing
      plan               Show a plan, approve or exclude its rows, export it
      apply              Close the duplicates of a plan on GitHub
      undo               Reopen what a plan closed
      override           Rule that two items are, or are not, duplicates
      canonicalize       List clusters of duplicates and which item stays open
      analyze-intent     Extract what each item wants, as an intent card
      embed              Compute the vectors that items are compared by
      candidates         Find and store each item's nearest neighbours
      judge              Judge whether items duplicate one of their candidates
      backtest           Replay past duplicates and measure the verdicts
      adjudicate         Read pairs of items and say which are the same
      thresholds         Show the score from which Canonry comments, and why
      judge-audit        Measure a cheap judge against a strong one
      report-audit       Show a stored audit and simulate tighter gates
      simulate-learning  Simulate where each learning rule takes the threshold
      calibrate          Fit a remote model's scores to known duplicates

    Review:
      review             Review a change in a clone, or a pull request
      why                Explain the findings near a line
      feedback           Show, clear or restore reactions to findings
      stats              Show review statistics: findings, hidden, fixed
      trends             Show reviews and findings by day

    Operate:
      serve              Run the service: webhooks, triage, reviews, console
      run                Triage in GitHub Actions, without a server
      maintainers        List or set who maintains a repository
      pause              Stop all writes to a repository
      resume             Allow writes again after a pause or too many objections
      jobs               List, show or retry jobs
      deliveries         List, show or replay webhook deliveries
      purge              Delete everything stored about a repository

    Options:
          --json        Print one JSON document
      -v, --verbose...  Show more: exact times, hashes, and the steps on stderr; -vv
                        shows everything
      -q, --quiet       Print nothing on stderr but errors
      -h, --help        Print help
      -V, --version     Print version

    Try it, without an account or a key:
      canonry demo

    Find the duplicates of a repository; nothing is closed:
      canonry sync --repo octo/cat
      canonry dedupe

    Review a change, in a clone:
      canonry review --base main

    `canonry COMMAND --help` explains a command.

    Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but some items failed, 4
    refused by a safety rule, 5 findings that `review --fail-on` asks for, 10 to 13
    answers of `check`.
    ");
    let narrow = help("50");
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
}

#[test]
fn help_begins_with_an_example() {
    let place = Place::new();
    let help = |command: &[&str]| {
        let mut command = place.command(&[command, &["--help"]].concat());
        Ran::of(command.env("COLUMNS", "80").output().expect("the program starts")).succeeded().stdout
    };
    assert_snapshot!(help(&["apply"]), @"
    Example:
      canonry apply 3 --yes
      canonry apply 3 --yes --approved-only

    Close the duplicates of a plan on GitHub.

    Each row is rechecked on GitHub right before each write; a row whose items
    changed since the plan is skipped with the reason. Each closed item gets one
    comment that names the other item, the shared evidence and how to object. The
    command can be stopped and run again: nothing is commented or closed twice.
    `canonry undo` reverts it.

    Usage: canonry apply [OPTIONS] <PLAN>

    Arguments:
      <PLAN>
              The plan's number, as `canonry plan-close` prints it

    Options:
          --repo <OWNER/NAME>
              The repository [default: the plan's own]

          --yes
              Confirm that you have read the plan

          --approved-only
              Only rows that were approved with `canonry plan approve`

          --config <FILE>
              The repository's settings file [default: .canonry.yml of its default
              branch, where GitHub can be asked]

          --github-api <URL>
              GitHub's API, for GitHub Enterprise Server https://HOST/api/v3; the
              token comes from GITHUB_TOKEN
              
              [env: CANONRY_GITHUB_API_URL=]
              [default: https://api.github.com]

          --db <URL>
              The database: sqlite:PATH or postgres://USER@HOST/NAME [default:
              sqlite:canonry.db in the data folder]
              
              [env: CANONRY_DATABASE_URL]

      -h, --help
              Print help (see a summary with '-h')

    Output:
          --json
              Print one JSON document

      -v, --verbose...
              Show more: exact times, hashes, and the steps on stderr; -vv shows
              everything

      -q, --quiet
              Print nothing on stderr but errors
    ");
    assert_snapshot!(help(&["plan", "exclude"]), @"
    Example:
      canonry plan exclude 3 --item 12 --item 15

    Exclude rows.

    Neither this plan nor a later one closes them, until somebody approves them or
    removes the ruling.

    Usage: canonry plan exclude [OPTIONS] <PLAN>

    Arguments:
      <PLAN>
              The plan's number, as `canonry plan-close` prints it

    Options:
          --repo <OWNER/NAME>
              The repository [default: the plan's own]

          --db <URL>
              The database: sqlite:PATH or postgres://USER@HOST/NAME [default:
              sqlite:canonry.db in the data folder]
              
              [env: CANONRY_DATABASE_URL]

          --item <NUMBER>...
              The item of a row; may be repeated

          --all
              Every row that closes its item; `approve` skips rows that somebody
              approved or excluded before

          --type <TYPE>
              The type of the items: issue or pr [default: whichever the plan has]

      -h, --help
              Print help (see a summary with '-h')

    Output:
          --json
              Print one JSON document

      -v, --verbose...
              Show more: exact times, hashes, and the steps on stderr; -vv shows
              everything

      -q, --quiet
              Print nothing on stderr but errors
    ");
}
