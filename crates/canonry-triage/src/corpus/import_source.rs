//! Opens, decompresses and checks import files before anything is written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::corpus::record_reader::{RecordReader, Unreadable};

/// An open file that is read twice: once to check it, once to import it.
#[derive(Debug)]
pub(crate) struct ImportSource {
    pub(crate) name: String,
    file: File,
}

/// Why a file cannot be imported. Nothing from any file has been written then.
#[derive(Debug, thiserror::Error)]
#[error("{file} cannot be imported: {reason}; nothing was imported")]
pub struct UnusableFile {
    file: String,
    reason: String,
}

impl ImportSource {
    /// Opens a file; `-` is the standard input, which is copied to a temporary file so that it can be read twice.
    pub(crate) fn open(path: &Path) -> Result<Self, UnusableFile> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        let opened = if path == Path::new("-") { spool(&mut io::stdin().lock()) } else { open_file(path) };
        match opened {
            Ok(file) => Ok(Self { name, file }),
            Err(error) => Err(UnusableFile { file: name, reason: error.to_string() }),
        }
    }

    /// Reads the file to its end, to find a truncated archive or a broken array before the first write. Returns the
    /// number of records, bad ones included.
    pub(crate) fn check(&self) -> Result<u64, UnusableFile> {
        let mut records = self.records()?;
        let mut count = 0;
        while let Some(span) = records.next_span() {
            span.map_err(|error| self.unusable(&error))?;
            count += 1;
        }
        if count == 0 {
            return Err(UnusableFile { file: self.name.clone(), reason: "it is empty".to_owned() });
        }
        Ok(count)
    }

    pub(crate) fn records(&self) -> Result<RecordReader<Box<dyn BufRead + Send>>, UnusableFile> {
        let unpacked = self.unpacked().map_err(|error| self.unusable(&Unreadable::Io(error)))?;
        RecordReader::new(unpacked).map_err(|error| self.unusable(&error))
    }

    fn unpacked(&self) -> io::Result<Box<dyn BufRead + Send>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let mut packed = BufReader::with_capacity(256 * 1024, file);
        if packed.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            return Ok(Box::new(BufReader::with_capacity(256 * 1024, MultiGzDecoder::new(packed))));
        }
        Ok(Box::new(packed))
    }

    pub(crate) fn unusable(&self, error: &Unreadable) -> UnusableFile {
        UnusableFile { file: self.name.clone(), reason: error.to_string() }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    // A pipe or a device can be read only once.
    if file.metadata()?.is_file() { Ok(file) } else { spool(&mut file) }
}

fn spool(from: &mut dyn Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(from, &mut file)?;
    file.flush()?;
    Ok(file)
}

/// Opens and checks every file before the first one is imported.
pub(crate) fn open_all(paths: &[PathBuf]) -> Result<(Vec<ImportSource>, u64), UnusableFile> {
    let mut sources = Vec::new();
    let mut total = 0;
    for path in paths {
        let source = ImportSource::open(path)?;
        total += source.check()?;
        sources.push(source);
    }
    Ok((sources, total))
}
