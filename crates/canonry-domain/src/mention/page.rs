//! Generates the help and the documentation from the table of commands.

use super::commands::{ANSWERED_A_DAY, ANSWERED_AN_HOUR, ANSWERED_AN_HOUR_IN_ALL, DEFAULT_HANDLE, MENTIONS};

/// The answer to `help`.
pub fn mention_help(handle: &str) -> String {
    let mut text = String::from("| Command | Who | What it does |\n|---|---|---|\n");
    for spec in MENTIONS {
        text.push_str(&format!("| `/{handle} {}` | {} | {} |\n", spec.example, spec.who.in_words(), spec.does));
    }
    text.push_str("\nWrite the command at the start of a line in a new comment.");
    text
}

pub fn mentions_page() -> String {
    let mut page = format!(
        "# Mentions\n\n\
        Comments on issues, pull requests and lines of a diff can contain commands. A command is a line of a new comment that \
        begins with `/{DEFAULT_HANDLE}` or with `@` and the handle; no model reads it. The handle is \
        `{DEFAULT_HANDLE}` unless `.canonry.yml` on the default branch sets another one:\n\n\
        ```yaml\nmentions: {{handle: tide-helper}}\n```\n\n\
        Then `@tide-helper` and `/tide-helper` work. `/{DEFAULT_HANDLE}` always works and notifies nobody, while \
        `@{DEFAULT_HANDLE}` may be somebody's name on GitHub.\n\n\
        | Command | Who | Where | What it does |\n|---|---|---|---|\n"
    );
    for spec in MENTIONS {
        let says = format!("`/{DEFAULT_HANDLE} {}`", spec.example);
        page.push_str(&format!("| {says} | {} | {} | {} |\n", spec.who.in_words(), spec.scope.in_words(), spec.does));
    }
    let also: Vec<String> = MENTIONS
        .iter()
        .filter(|spec| !spec.also.is_empty())
        .map(|spec| {
            let also: Vec<String> = spec.also.iter().map(|words| format!("`{words}`")).collect();
            format!("{} for `{}`", also.join(" and "), spec.verb)
        })
        .collect();
    page.push_str(&format!(
        "\nOther spellings: {}.\n\n\
        ## What counts as a command\n\n\
        - The first command of a comment counts. Letter case, extra spaces, \"please\" and a full stop do not matter.\n\
        - Quoted, struck or folded text, code, links, tables, footnotes, HTML comments and quoted mail never count. Edits of a \
        comment never count.\n\
        - Commands of bots are ignored, and so are Canonry's own comments.\n\
        - Maintainers are the people who may push to the repository, as GitHub says at that moment, or the list that \
        `canonry maintainers set` made. The author is the person who opened the issue or pull request.\n\n\
        ## How Canonry answers\n\n\
        - A reply confirms what was done. 👀 means that a review has started; 👍 means that Canonry reopened the item, and its \
        comment there says so.\n\
        - A person who may not use a command gets one reply in 24 hours on each item, and a 😕 after that. The same holds \
        for unknown commands, and for more than {ANSWERED_A_DAY} commands of one person on one item.\n\
        - Within an hour, {ANSWERED_AN_HOUR} commands of one person and {ANSWERED_AN_HOUR_IN_ALL} of all people together are \
        answered in one repository; the rest are recorded without an answer. `not a duplicate` is carried out all the same. \
        No limit applies to maintainers.\n\
        - `pause` stops reviews, suggestions and closes until `resume`; commands are still answered. `canonry pause` and \
        `canonry resume` do the same from the command line.\n\
        - `duplicate of` and `not a duplicate` are rulings like those of `canonry override`. In the mode `grace` a ruled \
        duplicate is closed at once, after every safety check; in the other modes it waits for the next close plan.\n",
        also.join(", ")
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::{mention_help, mentions_page};
    use crate::mention::{MENTIONS, MentionVerb};

    #[test]
    fn help_and_page_list_every_command() {
        let (help, page) = (mention_help("tide"), mentions_page());
        for spec in MENTIONS {
            let row = |text: &str, handle: &str| {
                text.contains(&format!("| `/{handle} {}` | {} |", spec.example, spec.who.in_words()))
            };
            assert!(row(&help, "tide") && row(&page, "canonry"), "{}", spec.verb);
            assert!(spec.example.starts_with(spec.verb.as_str()), "{}", spec.verb);
        }
        assert_eq!(help.lines().filter(|line| line.starts_with("| `")).count(), MentionVerb::ALL.len());
    }
}
