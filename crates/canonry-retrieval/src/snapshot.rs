//! An index on disk, so that a start need not read and count every text again.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use canonry_domain::{ItemNumber, ItemType};

use crate::dense::DenseIndex;
use crate::item_index::ItemIndex;
use crate::lexical::LexicalIndex;
use crate::slots::{Slot, Slots};
use crate::title_shape::TitleShape;

/// Raised whenever the format, the tokens, the facts or the hash of a term change. An old snapshot is then rebuilt;
/// otherwise it would be searched for terms that it does not contain.
pub const SNAPSHOT_VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"CANONRYI";
/// Magic, version, and the checksum at the end.
const FRAME: u64 = 8 + 4 + 8;

/// Why a snapshot cannot be used. In every case the index can be rebuilt from the store.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("read or write {path:?}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("use {path:?}: {what}", path = path.display())]
    Damaged { path: PathBuf, what: &'static str },
    #[error("use {path:?}: it has format {found}, this Canonry reads format {SNAPSHOT_VERSION}", path = path.display())]
    Version { path: PathBuf, found: u32 },
    /// It contains other items or another model's vectors.
    #[error("use {path:?}: it holds {found_type} items with vectors of {found_model:?}", path = path.display())]
    OfAnother { path: PathBuf, found_type: ItemType, found_model: String },
}

/// Writes an index to a temporary file beside its path and renames it, so that a crash leaves the old file or the new
/// one.
pub fn write_snapshot(index: &ItemIndex, path: &Path) -> Result<(), SnapshotError> {
    let failed = |source| SnapshotError::Io { path: path.to_owned(), source };
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.partial", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_file(index, &beside).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The reason for the failure matters more than a leftover file.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(failed)
}

pub fn read_snapshot(path: &Path, item_type: ItemType, model: &str) -> Result<ItemIndex, SnapshotError> {
    let failed = |source| SnapshotError::Io { path: path.to_owned(), source };
    let damaged = |what| SnapshotError::Damaged { path: path.to_owned(), what };
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length < FRAME {
        return Err(damaged("it is cut off"));
    }
    let mut start = [0_u8; 12];
    file.read_exact(&mut start).map_err(failed)?;
    if start[..8] != MAGIC {
        return Err(damaged("it is not a snapshot of an index"));
    }
    let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if version != SNAPSHOT_VERSION {
        return Err(SnapshotError::Version { path: path.to_owned(), found: version });
    }
    // The whole file is checked before any part of it is trusted: lengths in a damaged file could request any amount
    // of memory.
    check(&mut file, length - FRAME).map_err(failed)?.then_some(()).ok_or_else(|| damaged("its checksum is wrong"))?;
    file.seek(io::SeekFrom::Start(12)).map_err(failed)?;
    let mut source =
        SnapshotSource { reader: BufReader::with_capacity(1 << 18, file), left: length - FRAME, buffer: Vec::new() };
    let index = read_index(&mut source).map_err(|read| match read {
        ReadError::Io(source) => failed(source),
        ReadError::Damaged(what) => damaged(what),
    })?;
    if index.item_type != item_type || index.model != model {
        return Err(SnapshotError::OfAnother {
            path: path.to_owned(),
            found_type: index.item_type,
            found_model: index.model,
        });
    }
    Ok(index)
}

fn write_file(index: &ItemIndex, path: &Path) -> io::Result<()> {
    // It contains words of private repositories, so only its user may read it.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let mut sink =
        Sink { writer: BufWriter::with_capacity(1 << 18, &file), checksum: Checksum::default(), buffer: Vec::new() };
    sink.writer.write_all(&MAGIC)?;
    sink.writer.write_all(&SNAPSHOT_VERSION.to_le_bytes())?;
    write_index(index, &mut sink)?;
    let checksum = sink.checksum.finish();
    sink.writer.write_all(&checksum.to_le_bytes())?;
    sink.writer.flush()?;
    drop(sink);
    file.sync_all()
}

fn write_index(index: &ItemIndex, sink: &mut Sink<'_>) -> io::Result<()> {
    sink.text(index.item_type.as_str())?;
    sink.text(&index.model)?;
    sink.count(index.slots.places().len())?;
    for (slot, number) in index.slots.places().iter().enumerate() {
        sink.long(number.map_or(0, ItemNumber::get).cast_unsigned())?;
        sink.long(index.stamps[slot])?;
        sink.long(index.shapes[slot].to_bits())?;
    }
    for part in [&index.text, &index.evidence, &index.paths, &index.diff] {
        write_lexical(part, sink)?;
    }
    sink.count(index.dense.dimension())?;
    sink.count(index.dense.len())?;
    sink.count(index.dense.slots().len())?;
    for vector in index.dense.slots() {
        sink.bytes(&[u8::from(vector.is_some())])?;
        sink.words(vector.unwrap_or_default().iter().map(|number| number.to_bits()))?;
    }
    Ok(())
}

fn write_lexical(part: &LexicalIndex, sink: &mut Sink<'_>) -> io::Result<()> {
    sink.count(part.lengths().len())?;
    for lengths in part.lengths() {
        let (length, title_length) = lengths.unwrap_or((u32::MAX, 0));
        sink.bytes(&length.to_le_bytes())?;
        sink.bytes(&title_length.to_le_bytes())?;
    }
    sink.count(part.terms().len())?;
    for (hash, postings) in part.terms() {
        sink.long(hash)?;
        sink.count(postings.len())?;
        sink.words(postings.iter().copied())?;
    }
    Ok(())
}

fn read_index(source: &mut SnapshotSource) -> Result<ItemIndex, ReadError> {
    let item_type = source.text()?.parse().map_err(|_| ReadError::Damaged("its type of items is unknown"))?;
    let model = source.text()?;
    let mut index = ItemIndex::new(item_type, &model);
    let places = source.count(24)?;
    let mut numbers = Vec::with_capacity(places);
    index.stamps.reserve_exact(places);
    index.shapes.reserve_exact(places);
    for _ in 0..places {
        numbers.push(ItemNumber::new(source.long()?.cast_signed()).ok());
        index.stamps.push(source.long()?);
        index.shapes.push(TitleShape::from_bits(source.long()?));
    }
    index.slots = Slots::from_places(numbers).ok_or(ReadError::Damaged("a number stands twice in it"))?;
    index.text = read_lexical(source, places)?;
    index.evidence = read_lexical(source, places)?;
    index.paths = read_lexical(source, places)?;
    index.diff = read_lexical(source, places)?;
    let dimension = source.count(0)?;
    // The number of vectors; each is read below.
    source.count(4 * dimension as u64)?;
    let slots = source.count(1)?;
    if slots > places {
        return Err(ReadError::Damaged("it has more vectors than items"));
    }
    index.dense = DenseIndex::of_dimension(dimension);
    let mut vector = vec![0.0; dimension];
    for slot in 0..slots {
        if source.bytes::<1>()?[0] == 0 {
            continue;
        }
        for (number, bits) in vector.iter_mut().zip(source.words(dimension)?) {
            *number = f32::from_bits(bits);
        }
        let unusable = |_| ReadError::Damaged("a vector in it is unusable");
        index.dense.put_unit(Slot::at(slot), &vector).map_err(unusable)?;
    }
    if source.left != 0 {
        return Err(ReadError::Damaged("it goes on after its end"));
    }
    Ok(index)
}

fn read_lexical(source: &mut SnapshotSource, places: usize) -> Result<LexicalIndex, ReadError> {
    let count = source.count(8)?;
    if count > places {
        return Err(ReadError::Damaged("the snapshot has more texts than items"));
    }
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let [length, title_length] = [u32::from_le_bytes(source.bytes()?), u32::from_le_bytes(source.bytes()?)];
        lengths.push((length != u32::MAX).then_some((length, title_length)));
    }
    let count = source.count(16)?;
    let mut terms = Vec::with_capacity(count);
    for _ in 0..count {
        let hash = source.long()?;
        let postings = source.count(4)?;
        terms.push((hash, source.words(postings)?.collect()));
    }
    LexicalIndex::from_parts(lengths, terms).ok_or(ReadError::Damaged("its words and items do not fit together"))
}

/// Whether the payload matches the checksum at the end.
fn check(file: &mut File, payload: u64) -> io::Result<bool> {
    let mut checksum = Checksum::default();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut left = payload;
    let mut buffer = vec![0_u8; 1 << 16];
    while left > 0 {
        let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        reader.read_exact(&mut buffer[..want])?;
        checksum.add(&buffer[..want]);
        left -= want as u64;
    }
    let mut stored = [0_u8; 8];
    reader.read_exact(&mut stored)?;
    Ok(checksum.finish() == u64::from_le_bytes(stored))
}

struct Sink<'a> {
    writer: BufWriter<&'a File>,
    checksum: Checksum,
    buffer: Vec<u8>,
}

impl Sink<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.add(bytes);
        self.writer.write_all(bytes)
    }

    fn long(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        self.long(count as u64)
    }

    /// Writes many at once: one call for each of 40 million numbers takes noticeable time.
    fn words(&mut self, words: impl Iterator<Item = u32>) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(words.flat_map(u32::to_le_bytes));
        self.checksum.add(&self.buffer);
        self.writer.write_all(&self.buffer)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.len())?;
        self.bytes(text.as_bytes())
    }
}

struct SnapshotSource {
    reader: BufReader<File>,
    left: u64,
    buffer: Vec<u8>,
}

enum ReadError {
    Io(io::Error),
    Damaged(&'static str),
}

impl SnapshotSource {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ReadError> {
        self.left =
            self.left.checked_sub(bytes.len() as u64).ok_or(ReadError::Damaged("it ends in the middle of a part"))?;
        self.reader.read_exact(bytes).map_err(ReadError::Io)
    }

    fn words(&mut self, count: usize) -> Result<impl Iterator<Item = u32> + '_, ReadError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(4 * count, 0);
        let filled = self.fill(&mut buffer);
        self.buffer = buffer;
        filled?;
        Ok(self.buffer.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)))
    }

    fn long(&mut self) -> Result<u64, ReadError> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Reads a count of things with at least `bytes_each` bytes, so it cannot exceed what fits into the remaining
    /// bytes.
    fn count(&mut self, bytes_each: u64) -> Result<usize, ReadError> {
        let count = self.long()?;
        if count.checked_mul(bytes_each).is_none_or(|bytes| bytes > self.left) || count > u64::from(u32::MAX) {
            return Err(ReadError::Damaged("a length in it is too large"));
        }
        usize::try_from(count).map_err(|_| ReadError::Damaged("a length in it is too large"))
    }

    fn text(&mut self) -> Result<String, ReadError> {
        let mut bytes = vec![0; self.count(1)?];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| ReadError::Damaged("a text in it is not UTF-8"))
    }
}

/// A checksum against damage, not against forgery: eight bytes at a time, independent of how the bytes are split.
#[derive(Default)]
struct Checksum {
    state: u64,
    length: u64,
    pending: u64,
    pending_bytes: u32,
}

impl Checksum {
    fn add(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        while self.pending_bytes != 0 {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            self.push(byte);
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.push(byte);
        }
    }

    fn push(&mut self, byte: u8) {
        self.pending |= u64::from(byte) << (8 * self.pending_bytes);
        self.pending_bytes += 1;
        if self.pending_bytes == 8 {
            let word = std::mem::take(&mut self.pending);
            self.pending_bytes = 0;
            self.mix(word);
        }
    }

    fn mix(&mut self, word: u64) {
        let mixed = (self.state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.state = mixed ^ (mixed >> 32);
    }

    fn finish(&mut self) -> u64 {
        let (pending, length) = (self.pending, self.length);
        self.mix(pending);
        self.mix(length);
        self.state
    }
}
