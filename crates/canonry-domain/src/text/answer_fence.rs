//! Strips from a model's answer what models often put around it: white space, a byte order mark, one fenced block.

/// Strips the wrapping. Other text around the answer stays, so that the parser can reject it.
pub(crate) fn unwrap_answer(answer: &str) -> &str {
    let text = answer.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((info, content)) = inside.and_then(|inside| inside.split_once('\n')) else {
        return text;
    };
    let is_info = info.trim().chars().all(|character| character.is_ascii_alphanumeric());
    if is_info { content.trim() } else { text }
}

#[cfg(test)]
mod tests {
    use super::unwrap_answer;

    #[test]
    fn one_block_that_is_everything_is_unwrapped() {
        for text in ["{}", " \u{feff}{}\n", "```json\n{}\n```", "```\n{}\n```\n", "```JSON\r\n {} \r\n```"] {
            assert_eq!(unwrap_answer(text), "{}", "{text}");
        }
        assert_eq!(unwrap_answer("```json\n```"), "");
        for text in ["Here:\n```json\n{}\n```", "```json\n{}\n```\nDone.", "```json\n{}", "``` {}```", "```"] {
            assert_eq!(unwrap_answer(text), text);
        }
    }
}
