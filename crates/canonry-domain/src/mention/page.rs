//! Help and documentation, made of the table.

use super::commands::{ANSWERED_A_DAY, ANSWERED_AN_HOUR, ANSWERED_AN_HOUR_IN_ALL, DEFAULT_HANDLE, MENTIONS};

/// The answer to `help`.
pub fn mention_help(handle: &str) -> String {
    let mut text = String::from("What I can do, and for whom:\n\n| Say | Who | What I do |\n|---|---|---|\n");
    for spec in MENTIONS {
        text.push_str(&format!("| `/{handle} {}` | {} | {} |\n", spec.example, spec.who.in_words(), spec.does));
    }
    text.push_str("\nPut it at the beginning of a line of a new comment.");
    text
}

pub fn mentions_page() -> String {
    let mut page = format!(
        "# Mentions\n\n\
        People talk to Canonry in comments on issues, pull requests and lines of a diff. A line of a new comment that \
        begins with `/{DEFAULT_HANDLE}` or with `@` and the handle is a command; no model reads it. The handle is \
        `{DEFAULT_HANDLE}` unless `.canonry.yml` on the default branch says otherwise:\n\n\
        ```yaml\nmentions: {{handle: tide-helper}}\n```\n\n\
        Then `@tide-helper` and `/tide-helper` work. `/{DEFAULT_HANDLE}` works everywhere and pings nobody, while \
        `@{DEFAULT_HANDLE}` may be somebody's name on GitHub.\n\n\
        | Say | Who | Where | What happens |\n|---|---|---|---|\n"
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
        "\nAlso understood: {}.\n\n\
        ## What counts\n\n\
        - The first command of a comment counts. Letter case, surplus blanks, \"please\" and a full stop do not matter.\n\
        - What GitHub shows as quoted, struck, code, a link, a table or a footnote never counts, nor HTML comments, \
        folded `<details>` and mail below an answer, nor a comment that is edited later.\n\
        - Bots are not heard, and neither is Canonry itself.\n\
        - Maintainers are who may push to the repository, as GitHub says at that moment, or the list that \
        `canonry maintainers set` made. The author is who opened the issue or the pull request.\n\n\
        ## What comes back\n\n\
        - 👀 when a review is on its way, 👍 when something is done and shows by itself, otherwise one short reply.\n\
        - Who may not ask for something is told so once in 24 hours on each item, and after that gets a 😕. The same holds \
        for what is not understood, and for more than {ANSWERED_A_DAY} questions of one person on one item who is no \
        maintainer.\n\
        - Maintainers apart, {ANSWERED_AN_HOUR} mentions of one person and {ANSWERED_AN_HOUR_IN_ALL} of all together are \
        answered in one repository within an hour; the rest is recorded and not answered. `not a duplicate` is done all the \
        same.\n\
        - `pause` holds back reviews, suggestions and closes until somebody says `resume`; answers to mentions still \
        come. `canonry pause` and `canonry resume` do the same from the command line.\n\
        - `duplicate of` and `not a duplicate` are rulings like those of `canonry override`. In the mode `grace` a ruled \
        duplicate is closed at once, with every check that a close has; in the other modes it waits for the next plan.\n",
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
