//! The truth file of a backtest: which items are duplicates of which earlier ones.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use canonry_domain::{ItemNumber, ItemType};
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TruthFile {
    pub lines: Vec<TruthLine>,
    pub mistakes: Vec<TruthMistake>,
}

/// An item and the earlier items that it is a duplicate of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthLine {
    /// The line number in the file, from 1.
    pub line: u64,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub relevant: BTreeSet<ItemNumber>,
}

/// A line that cannot be used, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TruthMistake {
    /// The line number in the file, from 1.
    pub line: u64,
    pub message: String,
}

/// A truth file that cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("the truth file {file} cannot be read: {reason}")]
pub struct UnreadableTruth {
    file: String,
    reason: String,
}

/// A line of the file; other keys are ignored.
#[derive(Deserialize)]
struct RawTruthLine {
    #[serde(rename = "type")]
    item_type: ItemType,
    number: ItemNumber,
    relevant: Vec<ItemNumber>,
}

impl TruthFile {
    /// Reads a file of JSON lines, plain or gzip.
    pub fn read(path: &Path) -> Result<Self, UnreadableTruth> {
        let unreadable = |reason: String| UnreadableTruth { file: path.display().to_string(), reason };
        let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            return Ok(Self::parse(&bytes));
        }
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes.as_slice())
            .read_to_end(&mut unpacked)
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(Self::parse(&unpacked))
    }

    /// Parses JSON lines; empty lines are ignored.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut file = Self::default();
        for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if text.trim_ascii().is_empty() {
                continue;
            }
            match truth_line(line, text) {
                Ok(read) => file.lines.push(read),
                Err(message) => file.mistakes.push(TruthMistake { line, message }),
            }
        }
        file
    }
}

fn truth_line(line: u64, text: &[u8]) -> Result<TruthLine, String> {
    let written: RawTruthLine = serde_json::from_slice(text).map_err(|error| {
        // The message already names the line of the file; serde counts within this line.
        error.to_string().replace(" at line 1 column", " at column")
    })?;
    let RawTruthLine { item_type, number, relevant } = written;
    let relevant: BTreeSet<ItemNumber> = relevant.into_iter().filter(|other| *other != number).collect();
    if relevant.is_empty() {
        return Err(format!("relevant names no other item than #{number}"));
    }
    Ok(TruthLine { line, item_type, number, relevant })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use canonry_domain::ItemType;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::TruthFile;

    const FILE: &str = r#"{"type":"issue","number":7,"relevant":[3,2,3],"pool_before":6}

{"type":"pr","number":9,"relevant":[8]}
{"type":"card","number":9,"relevant":[8]}
{"type":"issue","number":0,"relevant":[8]}
{"type":"issue","number":9}
not json
{"type":"issue","number":9,"relevant":[9]}
"#;

    #[test]
    fn good_lines_are_read_and_bad_ones_named() {
        let file = TruthFile::parse(FILE.as_bytes());
        let read: Vec<(u64, ItemType, i64, Vec<i64>)> = file
            .lines
            .iter()
            .map(|line| {
                (line.line, line.item_type, line.number.get(), line.relevant.iter().map(|other| other.get()).collect())
            })
            .collect();
        assert_eq!(read, [(1, ItemType::Issue, 7, vec![2, 3]), (3, ItemType::Pr, 9, vec![8])]);
        let mistakes: Vec<u64> = file.mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(mistakes, [4, 5, 6, 7, 8]);
        assert_eq!(file.mistakes[2].message, "missing field `relevant` at column 27");
        assert_eq!(file.mistakes[4].message, "relevant names no other item than #9");
    }

    #[test]
    fn gzip_is_unpacked_and_a_cut_one_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("truth.jsonl.gz");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(FILE.as_bytes()).expect("a vector takes everything");
        let packed = packed.finish().expect("a vector takes everything");
        std::fs::write(&path, &packed).expect("written");
        assert_eq!(TruthFile::read(&path).expect("whole"), TruthFile::parse(FILE.as_bytes()));
        std::fs::write(&path, &packed[..packed.len() / 2]).expect("written");
        let refused = TruthFile::read(&path).expect_err("cut").to_string();
        assert!(refused.starts_with(&format!("the truth file {} cannot be read: ", path.display())), "{refused}");
    }
}
