//! Finds the known word that a misspelt word probably means.

/// Returns the nearest known word, if it is near enough for a suggestion.
///
/// Case, `_` and `-` do not count, so that `max_comments` finds `maxComments`. If more than a third of the word's
/// letters differ, a suggestion is more often wrong than helpful.
pub(crate) fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters = letters_of(written);
    known
        .into_iter()
        .filter_map(|candidate| {
            let candidate_letters = letters_of(candidate);
            // A much longer word cannot be near, and a comparison costs the product of both lengths.
            if letters.len() > 2 * candidate_letters.len() {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&letters, &candidate_letters);
            (distance <= (candidate_letters.len() / 3).max(1)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn letters_of(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["maxComments", "minConfidence", "off", "shadow"];
        for (written, expected) in [
            ("maxComment", Some("maxComments")),
            ("max_comments", Some("maxComments")),
            ("MINCONFIDENCE", Some("minConfidence")),
            ("of", Some("off")),
            ("shaodw", Some("shadow")),
            ("everything", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
