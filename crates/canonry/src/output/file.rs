//! A result file that is either complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A file being written. It gets its name only when it is finished, so that no reader sees half of it and an older
/// file stays until then. Pipes and devices are written directly.
#[derive(Debug)]
pub(crate) struct OutputFile {
    writer: Option<BufWriter<File>>,
    /// The temporary path and the final path; `None` if it is not a regular file.
    places: Option<(PathBuf, PathBuf)>,
    shown: PathBuf,
}

impl OutputFile {
    /// Starts a file. `mark` distinguishes two runs that write the same file.
    pub(crate) fn create(path: &Path, mark: &str) -> Result<Self> {
        Self::begin(path, mark).with_context(|| {
            format!("the file {} cannot be written; check the folder and its permissions", path.display())
        })
    }

    fn begin(path: &Path, mark: &str) -> io::Result<Self> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let shown = path.to_owned();
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let writer = BufWriter::new(OpenOptions::new().write(true).open(path)?);
            return Ok(Self { writer: Some(writer), places: None, shown });
        }
        // The target of a link is replaced, not the link.
        let path = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
        name.push(format!(".{mark}"));
        let unfinished = path.with_file_name(name);
        let file = File::create_new(&unfinished)?;
        let this = Self { writer: Some(BufWriter::new(file)), places: Some((unfinished.clone(), path)), shown };
        if let Some(metadata) = existing {
            fs::set_permissions(&unfinished, metadata.permissions())?;
        }
        Ok(this)
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        self.finish_file().with_context(|| format!("the file {} could not be finished", self.shown.display()))
    }

    fn finish_file(&mut self) -> io::Result<()> {
        let writer = self.writer.take().expect("invariant: a file is finished once");
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some((unfinished, path)) = &self.places {
            file.sync_all()?;
            fs::rename(unfinished, path)?;
            self.places = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().expect("invariant: written before it is finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().expect("invariant: written before it is finished").flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((unfinished, _)) = self.places.take() {
            drop(self.writer.take());
            // A leftover cannot be helped, and the error that led here is the one to report.
            let _ = fs::remove_file(unfinished);
        }
    }
}
