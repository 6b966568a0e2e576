//! Parses the `Link` header, which contains the address of the next page.

/// The target of `rel="next"`, if the header contains one.
///
/// Parsed by RFC 8288 as far as GitHub and its proxies use it: several links separated by commas, parameters in any
/// order and letter case, quoted or bare, commas and semicolons inside `<…>` or quotes left alone. Anything else is
/// skipped.
pub(crate) fn next_link(header: &str) -> Option<&str> {
    split_outside(header, ',').into_iter().find_map(|link| {
        let link = link.trim();
        let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
        let is_next = split_outside(parameters, ';').into_iter().any(|parameter| names_next(parameter.trim()));
        is_next.then(|| target.trim())
    })
}

fn names_next(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    if !name.trim().eq_ignore_ascii_case("rel") {
        return false;
    }
    // A relation may be a list of words: rel="next last".
    value.trim().trim_matches('"').split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("next"))
}

/// Splits at `separator` unless it is in `<…>` or in quotes.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut in_target, mut in_quotes) = (0, false, false);
    for (index, character) in text.char_indices() {
        match character {
            '<' if !in_quotes => in_target = true,
            '>' if !in_quotes => in_target = false,
            '"' if !in_target => in_quotes = !in_quotes,
            _ if character == separator && !in_target && !in_quotes => {
                parts.push(&text[start..index]);
                start = index + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::next_link;
    use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

    #[test]
    fn finds_the_next_link() {
        let table = [
            (
                r#"<https://a/x?after=Y3Vyc29y>; rel="next", <https://a/x>; rel="first""#,
                Some("https://a/x?after=Y3Vyc29y"),
            ),
            (r#"<https://a/x?labels=a,b;c>; rel="next""#, Some("https://a/x?labels=a,b;c")),
            (r#"<https://a/1>; rel="prev", <https://a/3>; title="a, b"; REL=Next"#, Some("https://a/3")),
            (r#"<https://a/1>; rel="last next""#, Some("https://a/1")),
            (r#"<https://a/1>; rel="prev", <https://a/9>; rel="last""#, None),
            (r#"<https://a/1>; rel="nextish""#, None),
            (r#"https://a/1; rel="next""#, None),
            ("<https://a/1", None),
            ("", None),
        ];
        for (header, expected) in table {
            assert_eq!(next_link(header), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_answers_a_part_of_the_header(header in any::<String>()) {
            if let Some(target) = next_link(&header) {
                prop_assert_eq!(header.contains(target), true);
            }
        }

        #[test]
        fn finds_next_wherever_it_stands(
            cursor in "[A-Za-z0-9=,;&%]{0,40}",
            before in proptest::collection::vec(prop_oneof![Just("prev"), Just("first"), Just("last")], 0..3),
            after in proptest::collection::vec(prop_oneof![Just("prev"), Just("first"), Just("last")], 0..3),
        ) {
            let target = format!("https://api.example/issues?after={cursor}");
            let other = |rel: &&str| format!("<https://api.example/issues?page=1>; rel=\"{rel}\"");
            let mut links: Vec<String> = before.iter().map(other).collect();
            links.push(format!("<{target}>; rel=\"next\""));
            links.extend(after.iter().map(other));
            let header = links.join(", ");
            prop_assert_eq!(next_link(&header), Some(target.as_str()));
        }
    }
}
