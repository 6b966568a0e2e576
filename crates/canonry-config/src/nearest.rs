//! The known word that a misspelt one was probably meant to be.

/// The nearest of the known words, if any is near enough to be worth saying.
///
/// Case, `_` and `-` do not count, so that `max_comments` finds `maxComments`. Beyond a third of
/// the word's letters a guess is more often wrong than helpful.
pub(crate) fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters = letters_of(written);
    known
        .into_iter()
        .filter_map(|candidate| {
            let candidate_letters = letters_of(candidate);
            // A longer word cannot be near, and comparing costs the product of both lengths.
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
