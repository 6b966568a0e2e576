//! Reads a streamed answer: the events of a body in the form of server-sent events.

use serde_json::Value;

use crate::remote_failure::RemoteFailure;

/// The JSON of each event, in order. An event that reports an error is the result.
pub(super) fn read_events(body: &[u8]) -> Result<Vec<Value>, RemoteFailure> {
    let text = String::from_utf8_lossy(body);
    let (mut events, mut data) = (Vec::new(), String::new());
    for line in text.lines().chain([""]) {
        if let Some(part) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(part.strip_prefix(' ').unwrap_or(part));
        } else if line.is_empty() && !data.is_empty() {
            let event = std::mem::take(&mut data);
            if event.trim() == "[DONE]" {
                continue;
            }
            let event: Value =
                serde_json::from_str(&event).map_err(|error| RemoteFailure::Malformed(error.to_string()))?;
            if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
                let said = error.pointer("/message").and_then(Value::as_str);
                let said = said.map_or_else(|| error.to_string(), str::to_owned);
                return Err(RemoteFailure::BrokenOff { said });
            }
            events.push(event);
        }
    }
    Ok(events)
}

/// The failure of a stream without an end: half an answer must not count as one.
pub(super) fn without_end() -> RemoteFailure {
    RemoteFailure::BrokenOff { said: "the stream has no end".to_owned() }
}

/// Appends the text at a place of an event.
pub(super) fn push_text(text: &mut String, event: &Value, at: &str) {
    text.push_str(event.pointer(at).and_then(Value::as_str).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read_events;
    use crate::remote_failure::RemoteFailure;

    #[test]
    fn events_are_read_whatever_the_line_ends() {
        let body = b": hello\r\nevent: a\r\ndata: {\"n\":\r\ndata: 1}\r\n\r\ndata:{\"n\":2}\n\nid: 7\n\ndata: [DONE]\n\ndata: {\"n\":3}";
        assert_eq!(read_events(body), Ok(vec![json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]));
        assert_eq!(read_events(b""), Ok(Vec::new()));
    }

    #[test]
    fn an_error_in_the_middle_is_the_result() {
        let body = b"data: {\"n\":1}\n\ndata: {\"type\":\"error\",\"error\":{\"message\":\"Overloaded\"}}\n\n";
        assert_eq!(read_events(body), Err(RemoteFailure::BrokenOff { said: "Overloaded".to_owned() }));
        assert!(matches!(read_events(b"data: {\"n\":\n\n"), Err(RemoteFailure::Malformed(_))));
        assert_eq!(read_events(b"data: {\"error\":null}\n\n").map(|events| events.len()), Ok(1));
    }
}
