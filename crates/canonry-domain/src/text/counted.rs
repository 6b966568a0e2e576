//! Formats counts for people.

/// A count with commas: `1,204`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A count with its noun: `1 item`, `2,345 items`, `0 repositories`.
pub fn counted(count: u64, noun: &str) -> String {
    let mut shown = thousands(count);
    shown.push(' ');
    // "day" becomes "days", "reply" becomes "replies".
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (count, stem) {
        (1, _) => shown.push_str(noun),
        (_, Some(stem)) => {
            shown.push_str(stem);
            shown.push_str("ies");
        }
        (_, None) => {
            shown.push_str(noun);
            shown.push('s');
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_with_their_nouns() {
        assert_eq!(counted(1, "item"), "1 item");
        assert_eq!(counted(0, "repository"), "0 repositories");
        assert_eq!(counted(3, "day"), "3 days");
        assert_eq!(counted(999, "item"), "999 items");
        assert_eq!(counted(1_234_567, "item"), "1,234,567 items");
    }
}
