//! Reads the records of an import file: one JSON object per line, or arrays as GitHub's REST API prints them.

use std::io::{self, BufRead};

use canonry_domain::{ImportLine, parse_import_value};

/// The maximum size of a record, in bytes. GitHub's own limit for a body is 65,536 characters; this leaves room for
/// other trackers and keeps memory bounded whatever a file contains.
pub(crate) const RECORD_LIMIT: usize = 32 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it cannot be read to its end ({0})")]
    Io(#[from] io::Error),
    #[error("it is UTF-16 text; save it as UTF-8")]
    Utf16,
    #[error("the array that begins at line {line} does not end; the file is cut off")]
    OpenArray { line: u64 },
    #[error("line {line} has text after the array; a file contains either lines or arrays")]
    BehindArray { line: u64 },
}

/// The line and bytes of a record that is not parsed yet.
#[derive(Debug)]
pub(crate) enum RecordSpan {
    Record { line: u64, bytes: Vec<u8> },
    TooLong { line: u64 },
}

/// A record, or why the line is not one.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) line: u64,
    pub(crate) bytes: usize,
    pub(crate) parsed: Result<ImportLine, String>,
}

impl RecordSpan {
    pub(crate) fn parse(self) -> Record {
        match self {
            Self::TooLong { line } => {
                let limit = RECORD_LIMIT / (1024 * 1024);
                Record { line, bytes: 0, parsed: Err(format!("the record is longer than {limit} MiB")) }
            }
            Self::Record { line, bytes } => Record { line, bytes: bytes.len(), parsed: parse(&bytes) },
        }
    }
}

fn parse(bytes: &[u8]) -> Result<ImportLine, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))?;
    let value = serde_json::from_str(text).map_err(|error| format!("not JSON: {}", without_place(&error)))?;
    parse_import_value(&value).map_err(|error| error.to_string())
}

/// The parser counts lines within the record; the line in the file is reported next to the message.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text);
    format!("{message} at column {}", error.column())
}

/// Splits a file into records, with at most one of them in memory.
pub(crate) struct RecordReader<R> {
    input: R,
    line: u64,
    shape: FileShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileShape {
    Lines,
    /// Inside an array that began at this line.
    Array {
        began: u64,
    },
    /// Between arrays: `gh api --paginate` prints one after the other.
    BetweenArrays,
    Ended,
}

impl<R: BufRead> RecordReader<R> {
    pub(crate) fn new(mut input: R) -> Result<Self, Unreadable> {
        let head = input.fill_buf()?;
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) || looks_like_utf16(head) {
            return Err(Unreadable::Utf16);
        }
        if head.starts_with(&[0xef, 0xbb, 0xbf]) {
            input.consume(3);
        }
        let mut reader = Self { input, line: 1, shape: FileShape::Lines };
        if reader.skip_white_space()? == Some(b'[') {
            reader.shape = FileShape::BetweenArrays;
        }
        Ok(reader)
    }

    /// The next record; an error ends the file.
    pub(crate) fn next_span(&mut self) -> Option<Result<RecordSpan, Unreadable>> {
        let span = match self.shape {
            FileShape::Lines => self.next_line(),
            FileShape::Array { .. } | FileShape::BetweenArrays => self.next_element(),
            FileShape::Ended => Ok(None),
        };
        if span.is_err() {
            self.shape = FileShape::Ended;
        }
        span.transpose()
    }

    fn next_line(&mut self) -> Result<Option<RecordSpan>, Unreadable> {
        // White space between records, including empty lines, is not an error.
        if self.skip_white_space()?.is_none() {
            return Ok(None);
        }
        let line = self.line;
        let mut taking = RecordBytes::default();
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            taking.extend(&chunk[..end.unwrap_or(chunk.len())]);
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                self.line += 1;
                break;
            }
        }
        Ok(Some(taking.span(line)))
    }

    /// The next element of an array. Only brackets and quotes are parsed, so a mistake inside an element affects only
    /// that element.
    fn next_element(&mut self) -> Result<Option<RecordSpan>, Unreadable> {
        loop {
            let next = self.skip_white_space()?;
            match (self.shape, next) {
                (FileShape::BetweenArrays, None) => return Ok(None),
                (FileShape::BetweenArrays, Some(b'[')) => {
                    self.input.consume(1);
                    self.shape = FileShape::Array { began: self.line };
                }
                (FileShape::BetweenArrays, Some(_)) => return Err(Unreadable::BehindArray { line: self.line }),
                (FileShape::Array { began }, None) => return Err(Unreadable::OpenArray { line: began }),
                (FileShape::Array { .. }, Some(b']')) => {
                    self.input.consume(1);
                    self.shape = FileShape::BetweenArrays;
                }
                (FileShape::Array { .. }, Some(b',')) => self.input.consume(1),
                (FileShape::Array { began }, Some(_)) => return self.element(began).map(Some),
                (FileShape::Lines | FileShape::Ended, _) => return Ok(None),
            }
        }
    }

    fn element(&mut self, array_began: u64) -> Result<RecordSpan, Unreadable> {
        let line = self.line;
        let mut taking = RecordBytes::default();
        let mut nesting = Nesting::default();
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Err(Unreadable::OpenArray { line: array_began });
            }
            let end = chunk.iter().position(|&byte| nesting.ends_before(byte));
            let taken = &chunk[..end.unwrap_or(chunk.len())];
            self.line += newlines(taken);
            taking.extend(taken);
            let used = taken.len();
            self.input.consume(used);
            if end.is_some() {
                return Ok(taking.span(line));
            }
        }
    }

    fn skip_white_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let blank = chunk.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
            self.line += newlines(&chunk[..blank]);
            let next = chunk.get(blank).copied();
            self.input.consume(blank);
            if next.is_some() {
                return Ok(next);
            }
        }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// JSON begins with an ASCII character, so a NUL next to it is the other half of a UTF-16 unit.
fn looks_like_utf16(head: &[u8]) -> bool {
    matches!(head, [0, b'{' | b'[' | b' ', ..] | [b'{' | b'[' | b' ', 0, ..])
}

/// The bytes of a record, discarded once there are too many.
#[derive(Default)]
struct RecordBytes {
    bytes: Vec<u8>,
    too_long: bool,
}

impl RecordBytes {
    fn extend(&mut self, more: &[u8]) {
        if self.too_long || self.bytes.len() + more.len() > RECORD_LIMIT {
            self.too_long = true;
            self.bytes = Vec::new();
            return;
        }
        self.bytes.extend_from_slice(more);
    }

    fn span(self, line: u64) -> RecordSpan {
        if self.too_long { RecordSpan::TooLong { line } } else { RecordSpan::Record { line, bytes: self.bytes } }
    }
}

/// The position of a byte within an element.
#[derive(Default)]
struct Nesting {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Nesting {
    /// Whether the element ends before this byte: at a comma or bracket of the array itself.
    fn ends_before(&mut self, byte: u8) -> bool {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => self.depth -= 1,
            b',' | b']' if self.depth == 0 => return true,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{RecordReader, RecordSpan};

    /// Every record as `line: number` or `line! message`, or the error that ended the file.
    fn read(bytes: &[u8], buffer: usize) -> Vec<String> {
        let mut reader = match RecordReader::new(BufReader::with_capacity(buffer, bytes)) {
            Ok(reader) => reader,
            Err(error) => return vec![error.to_string()],
        };
        let mut seen = Vec::new();
        while let Some(span) = reader.next_span() {
            seen.push(match span.map(RecordSpan::parse) {
                Err(error) => error.to_string(),
                Ok(record) => match record.parsed {
                    Ok(parsed) => format!("{}: {}", record.line, parsed.record.number),
                    Err(message) => format!("{}! {message}", record.line),
                },
            });
        }
        seen
    }

    #[test]
    fn a_broken_line_costs_only_itself() {
        let text = "{\"number\":1,\"title\":\"a\"}\n\n{oops}\r\n{\"number\":3,\"title\":\"c\"}";
        assert_eq!(read(text.as_bytes(), 7), ["1: 1", "3! not JSON: key must be a string at column 2", "4: 3"]);
    }

    #[test]
    fn arrays_one_behind_the_other() {
        let text = "[{\"number\":1,\"title\":\"a ] , \\\" }\"},\n {\"number\":0,\"title\":\"b\"}]\n[]\n[\n{\"number\":2,\n\"title\":\"c\"}\n]\n";
        assert_eq!(
            read(text.as_bytes(), 3),
            ["1: 1", "2! number is 0, which is not a whole number from 1 to 9223372036854775807", "5: 2"]
        );
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(
            read(b"[{\"number\":1,\"title\":\"a\"},", 9),
            ["1: 1", "the array that begins at line 1 does not end; the file is cut off"]
        );
        assert_eq!(read(b"[]\nx", 9), ["line 2 has text after the array; a file contains either lines or arrays"]);
        assert_eq!(read("\u{feff}{}".as_bytes(), 9), ["1! number is missing"]);
        assert_eq!(read(&[0xff, 0xfe, b'{', 0], 9), ["it is UTF-16 text; save it as UTF-8"]);
        assert_eq!(read(&[b'{', 0, b'}', 0], 9), ["it is UTF-16 text; save it as UTF-8"]);
        assert_eq!(read(b"{\"number\":1,\"title\":\"\xe9\"}", 9), ["1! byte 22 is not UTF-8"]);
        assert!(read(b"", 9).is_empty());
    }

    proptest! {
        #[test]
        fn the_buffer_size_never_matters(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{},\"\\\\ \n0-9a-z:]{0,80}") {
            prop_assert_eq!(read(&bytes, 2), read(&bytes, 4096));
            prop_assert_eq!(read(text.as_bytes(), 2), read(text.as_bytes(), 4096));
        }
    }
}
