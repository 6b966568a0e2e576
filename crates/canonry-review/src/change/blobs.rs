//! Reads the texts of files in a commit, many in one call to git.

use canonry_boxed::boxed;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;

use canonry_domain::review::{CommitSha, RepoPath};

use crate::change::git::{Git, GitError};

/// Larger files are not read: they are not written by hand.
pub(crate) const LARGEST: u64 = 2 * 1024 * 1024;

/// The limit for all files together; files beyond it are left out.
const ALL: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Blob {
    pub id: String,
    pub bytes: u64,
}

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) path: RepoPath,
    pub(crate) id: String,
    pub(crate) kind: TreeEntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeEntryKind {
    File,
    Symlink,
    Submodule,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobContent {
    Text(String),
    /// An image, sound, film or font, by its first bytes: there is no text to read.
    Media(&'static str),
    /// Content that is not read, and why, as the end of "it …".
    Unreadable(&'static str),
}

/// Paths per call to git: well within the limit of a command line, however long the paths are.
const PATHS: usize = 200;

#[boxed]
impl Git {
    /// Blob sizes in bytes, by id. Blobs that are not in the repository are left out.
    pub async fn sizes(&self, ids: &[&str]) -> Result<HashMap<String, u64>, GitError> {
        Ok(self.look_up(ids).await?.into_iter().map(|blob| (blob.id, blob.bytes)).collect())
    }

    /// The folders among these paths in a commit. Nothing is fetched.
    pub async fn folders_at(
        &self,
        commit: &CommitSha,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let mut folders = BTreeSet::new();
        for some in paths.iter().collect::<Vec<_>>().chunks(PATHS) {
            let options = ["ls-tree", "-d", "-z", "--full-tree", "--name-only", commit.as_str(), "--"];
            let arguments: Vec<&str> = options.into_iter().chain(some.iter().map(|path| path.as_str())).collect();
            let answer = self.ask("look for folders", &arguments).await?;
            folders.extend(answer.split(|byte| *byte == 0).filter_map(|name| RepoPath::of_bytes(name).ok()));
        }
        Ok(folders)
    }

    /// All files of a commit, with their blob ids. Nothing is fetched.
    pub async fn all_files(&self, commit: &CommitSha) -> Result<Vec<(RepoPath, String)>, GitError> {
        let answer = self.list_tree(commit).await?;
        Ok(answer.split(|byte| *byte == 0).filter_map(file_of).collect())
    }

    /// All files, symbolic links and submodules of a commit. Nothing is fetched.
    pub(crate) async fn tree(&self, commit: &CommitSha) -> Result<Vec<TreeEntry>, GitError> {
        let answer = self.list_tree(commit).await?;
        Ok(answer.split(|byte| *byte == 0).filter_map(entry_of).collect())
    }

    async fn list_tree(&self, commit: &CommitSha) -> Result<Vec<u8>, GitError> {
        self.ask("list the files", &["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]).await
    }

    /// The blob ids of the files at these paths in a commit. Folders, submodules and missing files are left out.
    /// Nothing is fetched.
    ///
    /// This reads the tree instead of `<commit>:<path>`: git takes a path that ends like `-g1a2b3c4` for the name of a
    /// commit.
    pub async fn files_at(
        &self,
        commit: &CommitSha,
        paths: &[&RepoPath],
    ) -> Result<HashMap<RepoPath, String>, GitError> {
        let mut files = HashMap::new();
        for some in paths.chunks(PATHS) {
            let options = ["ls-tree", "-z", "--full-tree", commit.as_str(), "--"].map(OsString::from);
            let names = some.iter().flat_map(|path| [Some(OsString::from(path.as_str())), name_in_bytes(path)]);
            let arguments: Vec<OsString> = options.into_iter().chain(names.flatten()).collect();
            let answer = self.ask("look for files", &arguments).await?;
            files.extend(answer.split(|byte| *byte == 0).filter_map(file_of));
        }
        Ok(files)
    }

    /// The files at these paths in a commit; missing files are left out.
    pub async fn blobs_at(&self, commit: &CommitSha, paths: &[&RepoPath]) -> Result<HashMap<RepoPath, Blob>, GitError> {
        let files = self.files_at(commit, paths).await?;
        let ids: Vec<&str> = files.values().map(String::as_str).collect();
        let sizes = self.sizes(&ids).await?;
        let found = files.into_iter().filter_map(|(path, id)| {
            let bytes = *sizes.get(&id)?;
            Some((path, Blob { id, bytes }))
        });
        Ok(found.collect())
    }

    /// The texts of blobs, by id. Blobs that are too large or not text are left out.
    pub async fn texts(&self, ids: &[&str]) -> Result<HashMap<String, String>, GitError> {
        let text = |(id, content)| match content {
            BlobContent::Text(text) => Some((id, text)),
            BlobContent::Media(_) | BlobContent::Unreadable(_) => None,
        };
        Ok(self.contents(ids).await?.into_iter().filter_map(text).collect())
    }

    /// The contents of blobs, by id. Blobs that are too large are left out.
    pub async fn contents(&self, ids: &[&str]) -> Result<HashMap<String, BlobContent>, GitError> {
        let mut all = 0;
        let small = self.look_up(ids).await?.into_iter().filter(|blob| blob.bytes <= LARGEST).take_while(|blob| {
            all += blob.bytes;
            all <= ALL
        });
        let small: Vec<u8> = small.flat_map(|blob| blob.id.into_bytes().into_iter().chain([b'\n'])).collect();
        if small.is_empty() {
            return Ok(HashMap::new());
        }
        let arguments = ["cat-file", "--batch=%(objectname) %(objectsize)"];
        Ok(contents_of(&self.as_it_is().tell("read files", &arguments, &small).await?))
    }

    /// Finds the blobs of these ids. If fetching is allowed, all missing blobs are fetched in one call: git itself
    /// would fetch each one alone, and stop at the first that the remote does not have.
    async fn look_up(&self, ids: &[&str]) -> Result<Vec<Blob>, GitError> {
        let (found, missing) = self.look_up_here(ids).await?;
        if missing.is_empty() || !self.fetches() {
            return Ok(found);
        }
        // The review continues without them: files that cannot be read are left out.
        let _ = self.get_objects(&missing).await;
        Ok(self.look_up_here(ids).await?.0)
    }

    async fn look_up_here<'a>(&self, ids: &[&'a str]) -> Result<(Vec<Blob>, Vec<&'a str>), GitError> {
        let asked: Vec<u8> = ids.iter().flat_map(|id| id.bytes().chain([b'\n'])).collect();
        if asked.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let format = "--batch-check=%(objecttype) %(objectname) %(objectsize)";
        let answer = self.as_it_is().tell("measure files", &["cat-file", format], &asked).await?;
        let answer = String::from_utf8_lossy(&answer);
        let missing = ids.iter().zip(answer.lines()).filter(|(_, line)| line.ends_with(" missing"));
        let missing = missing.map(|(id, _)| *id).collect();
        Ok((answer.lines().filter_map(blob_of).collect(), missing))
    }
}

/// The file name in bytes, if the `%XX` in a path encode bytes that are not UTF-8. Such a file has no other path.
#[cfg(unix)]
fn name_in_bytes(path: &RepoPath) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    let mut pieces = path.as_str().split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if !byte.is_ascii() => bytes.extend([byte].iter().chain(&piece.as_bytes()[2..])),
            _ => bytes.extend(b"%".iter().chain(piece.as_bytes())),
        }
    }
    let is_it = bytes != path.as_str().as_bytes() && RepoPath::of_bytes(&bytes).as_ref() == Ok(path);
    is_it.then(|| OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn name_in_bytes(_: &RepoPath) -> Option<OsString> {
    None
}

fn file_of(entry: &[u8]) -> Option<(RepoPath, String)> {
    let entry = entry_of(entry).filter(|entry| entry.kind != TreeEntryKind::Submodule)?;
    Some((entry.path, entry.id))
}

/// `<mode> <type> <id>\t<path>`
fn entry_of(entry: &[u8]) -> Option<TreeEntry> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&entry[..tab]).ok()?;
    let [mode, kind, id] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    let kind = match (mode, kind) {
        ("120000", "blob") => TreeEntryKind::Symlink,
        (_, "blob") => TreeEntryKind::File,
        (_, "commit") => TreeEntryKind::Submodule,
        _ => return None,
    };
    Some(TreeEntry { path: RepoPath::of_bytes(&entry[tab + 1..]).ok()?, id: id.to_owned(), kind })
}

/// `blob <id> <size>`, or `<id> missing`.
fn blob_of(line: &str) -> Option<Blob> {
    let [kind, id, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    (kind == "blob").then_some(Blob { id: id.to_owned(), bytes: bytes.parse().ok()? })
}

/// Reads `<id> <size>\n<content>\n`, repeated. Content that is not UTF-8 is converted lossily, so its lines stay lines.
fn contents_of(mut read: &[u8]) -> HashMap<String, BlobContent> {
    let mut contents = HashMap::new();
    while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read = &read[end + 1..];
        let Some((id, size)) = head.split_once(' ') else { break };
        let Some(content) = size.parse::<usize>().ok().and_then(|size| read.get(..size)) else {
            // `<id> missing`: there is no content.
            continue;
        };
        read = read.get(content.len() + 1..).unwrap_or_default();
        contents.insert(id.to_owned(), BlobContent::of(content));
    }
    contents
}

/// The first bytes of formats without text, after some bytes that may be anything.
const MEDIA: [(&str, usize, &[u8]); 15] = [
    ("a PNG image", 0, b"\x89PNG\r\n\x1a\n"),
    ("a JPEG image", 0, b"\xff\xd8\xff"),
    ("a GIF image", 0, b"GIF8"),
    ("a WebP image", 8, b"WEBP"),
    ("an icon", 0, b"\0\0\x01\0"),
    ("a TIFF image", 0, b"II*\0"),
    ("a TIFF image", 0, b"MM\0*"),
    ("a sound", 8, b"WAVE"),
    ("a sound", 0, b"ID3"),
    ("a sound", 0, b"OggS"),
    ("a sound", 0, b"fLaC"),
    ("a film or a sound", 4, b"ftyp"),
    ("a film", 0, b"\x1a\x45\xdf\xa3"),
    ("a font", 0, b"wOF"),
    ("a font", 0, b"\0\x01\0\0"),
];

impl BlobContent {
    fn of(bytes: &[u8]) -> Self {
        if !bytes.contains(&0) {
            // A byte order mark is not part of the first line.
            let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            return Self::Text(String::from_utf8_lossy(text).into_owned());
        }
        let is_it = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
        if let Some((name, ..)) = MEDIA.iter().find(|(_, at, mark)| is_it(*at, mark)) {
            return Self::Media(name);
        }
        Self::Unreadable(match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "is UTF-16; only UTF-8 is read",
            _ => "contains NUL bytes, so it is not read as text",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Blob, BlobContent, blob_of, contents_of, file_of};

    #[test]
    fn contents_are_told_apart_by_their_sizes() {
        let read = b"aa 5\nx\ny\nz\nbb missing\ncc 3\n\x00\xfe\n\ndd 0\n\nee 2\n\xe9\n\n";
        let contents = contents_of(read);
        let text = |text: &str| Some(BlobContent::Text(text.to_owned()));
        assert_eq!(contents.get("aa").cloned(), text("x\ny\nz"));
        assert_eq!(contents.get("dd").cloned(), text(""));
        assert_eq!(contents.get("ee").cloned(), text("\u{fffd}\n"));
        assert!(matches!(contents.get("cc"), Some(BlobContent::Unreadable(_))));
        assert_eq!(contents.len(), 4);
    }

    #[test]
    fn only_the_bytes_tell_what_has_no_text() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], BlobContent::Media("a PNG image")),
            (b"RIFF\0\0\0\0WEBP", BlobContent::Media("a WebP image")),
            (b"\xff\xfet\0o\0", BlobContent::Unreadable("is UTF-16; only UTF-8 is read")),
            (b"token\0", BlobContent::Unreadable("contains NUL bytes, so it is not read as text")),
            (b"\xef\xbb\xbfx", BlobContent::Text("x".to_owned())),
        ] {
            assert_eq!(BlobContent::of(bytes), expected);
        }
    }

    #[test]
    fn a_file_may_have_any_name() {
        let file = |entry: &[u8]| file_of(entry).map(|(path, id)| (path.as_str().to_owned(), id));
        assert_eq!(file(b"100644 blob abc\ta\tb\n \"c\""), Some(("a\tb\n \"c\"".to_owned(), "abc".to_owned())));
        for other in [&b"160000 commit abc\tsub"[..], b"040000 tree abc\tsrc", b"100644 blob abc\t../up", b""] {
            assert_eq!(file(other), None);
        }
        assert_eq!(blob_of("blob abc 12"), Some(Blob { id: "abc".into(), bytes: 12 }));
        assert_eq!((blob_of("abc missing"), blob_of("tree abc 3")), (None, None));
    }
}
