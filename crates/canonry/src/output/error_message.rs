//! An error as one sentence for a person.

use crate::output::printable::one_line;

/// The whole chain of causes, each once, harmless for a terminal.
pub(crate) fn error_message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // Many errors already quote their cause.
        if message.contains(&cause) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&cause);
    }
    one_line(&message)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::error_message;

    #[test]
    fn a_cause_that_is_quoted_already_is_not_said_twice() {
        let error = anyhow!("disk full").context("the file failed: disk full").context("failed to export");
        assert_eq!(error_message(&error), "failed to export: the file failed: disk full");
        assert_eq!(error_message(&anyhow!("a\u{1b}[0m")), "a\\u{1b}[0m");
    }
}
