//! Recognises what one author, usually a bot, files again and again under one title: each is about another run or week.

use crate::JudgedItem;
use crate::duplicates::relations::series_title::{BUILD, FAILURE, RECURRING, is_by_one_author, title_words};

/// Whether both and a third item were filed under the same title by the same author, at least half a day apart, and the
/// title is one of an automatic build, a report or a check list. Two may be one problem; under any other title, so may
/// three.
pub(crate) fn is_recurring<'a>(
    one: &JudgedItem<'_>,
    other: &JudgedItem<'_>,
    mut others: impl Iterator<Item = &'a JudgedItem<'a>>,
) -> bool {
    let words = title_words(one.title);
    let comes_again = BUILD.is_match(one.title) || RECURRING.is_match(one.title) && !FAILURE.is_match(one.title);
    let is_again = |item: &JudgedItem<'_>| is_by_one_author(one, item) && title_words(item.title) == words;
    comes_again && is_again(other) && others.any(|third| is_again(third) && is_by_one_author(other, third))
}

#[cfg(test)]
mod tests {
    use super::is_recurring;
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, Login, parse_moment};

    #[test]
    fn the_third_failure_of_a_nightly_build_is_no_duplicate_of_the_first() {
        let bot: Login = "ci-watch[bot]".parse().expect("a login");
        let person: Login = "ann".parse().expect("a login");
        let filed = |title, author, day: u32| JudgedItem {
            number: ItemNumber::new(i64::from(day)).expect("positive"),
            state: ItemState::Open,
            item_type: ItemType::Issue,
            title,
            body: "",
            labels: &[],
            origin: ItemOrigin {
                author: Some(author),
                created_at: parse_moment(&format!("2025-03-{day:02}T10:00:00Z")).ok(),
                ..ItemOrigin::default()
            },
        };
        let recurs =
            |title, third: JudgedItem<'_>| is_recurring(&filed(title, &bot, 9), &filed(title, &bot, 7), [third].iter());
        for title in ["Nightly build failed", "Weekly report", "Release checklist"] {
            assert!(recurs(title, filed(title, &bot, 3)), "{title}");
            assert!(!recurs(title, filed(title, &person, 3)), "{title} by another author");
            assert!(!recurs(title, filed(title, &bot, 7)), "{title} on the same day");
            assert!(!recurs(title, filed("Something else", &bot, 3)), "{title} only twice");
        }
        for title in ["Crash in the parser", "The update fails"] {
            assert!(!recurs(title, filed(title, &bot, 3)), "{title}: the same problem thrice");
        }
    }
}
