//! Writes zip and tar files that depend only on their contents: no times, users or order of a folder.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

/// A file of an archive.
pub(crate) struct Member {
    pub(crate) path: String,
    pub(crate) is_program: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Member {
    pub(crate) fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), is_program: false, bytes: text.into().into_bytes() }
    }

    pub(crate) fn program(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), is_program: true, bytes }
    }

    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Midnight, 1 January 1980: the first date that a zip file can express.
const ZIP_TIME: u16 = 0;
const ZIP_DATE: u16 = 0x21;

pub(crate) fn zip(members: &[Member], compression: Compression) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for member in members {
        let mut deflated = DeflateEncoder::new(Vec::new(), compression);
        deflated.write_all(&member.bytes)?;
        let deflated = deflated.finish()?;
        let mut sum = Crc::new();
        sum.update(&member.bytes);
        let at = small(file.len())?;
        let mut description = Vec::new();
        for number in [20, 0, 8, ZIP_TIME, ZIP_DATE] {
            description.extend(u16::to_le_bytes(number));
        }
        for number in [sum.sum(), small(deflated.len())?, small(member.bytes.len())?] {
            description.extend(number.to_le_bytes());
        }
        description.extend(u16::try_from(member.path.len())?.to_le_bytes());
        description.extend([0, 0]);

        file.extend(b"PK\x03\x04");
        file.extend(&description);
        file.extend(member.path.as_bytes());
        file.extend(deflated);

        // Made on Unix, so that the permissions below count.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&description);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | member.mode()) << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(member.path.as_bytes());
    }
    let at = small(file.len())?;
    let count = u16::try_from(members.len())?.to_le_bytes();
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count);
    file.extend(count);
    file.extend(small(directory.len())?.to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    Ok(file)
}

fn small(number: usize) -> Result<u32> {
    u32::try_from(number).context("a zip file without extensions has at most 4 GB")
}

pub(crate) fn tar_gz(members: &[Member], compression: Compression) -> Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), compression);
    for member in members {
        file.write_all(&tar_header(member)?)?;
        file.write_all(&member.bytes)?;
        file.write_all(&vec![0; member.bytes.len().next_multiple_of(512) - member.bytes.len()])?;
    }
    file.write_all(&[0; 1024])?;
    Ok(file.finish()?)
}

fn tar_header(member: &Member) -> Result<[u8; 512]> {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    anyhow::ensure!(member.path.len() < 100, "{} is too long a name for a tar file", member.path);
    put(0, &member.path);
    put(100, &format!("{:07o}", member.mode()));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", member.bytes.len()));
    put(136, "00000000000");
    // The sum counts its own field as spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use flate2::Compression;

    use super::{Member, tar_gz, zip};
    use crate::process::quietly;

    fn members() -> Vec<Member> {
        vec![Member::text("folder/a.txt", "a\n".repeat(2000)), Member::program("b", vec![7; 513])]
    }

    #[test]
    fn others_read_the_same_files_from_both() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("x.zip"), zip(&members(), Compression::fast()).expect("written")).expect("a file");
        fs::write(folder.path().join("x.tgz"), tar_gz(&members(), Compression::fast()).expect("written"))
            .expect("a file");
        for (name, mut command) in [("zip", Command::new("python3")), ("tar", Command::new("tar"))] {
            let into = folder.path().join(name);
            fs::create_dir(&into).expect("a folder");
            match name {
                "zip" => command.args(["-m", "zipfile", "-e", "../x.zip", "."]),
                _ => command.args(["-xzf", "../x.tgz"]),
            };
            quietly(command.current_dir(&into)).expect("it is read");
            assert_eq!(fs::read_to_string(into.join("folder/a.txt")).expect("a text"), "a\n".repeat(2000), "{name}");
            assert_eq!(fs::read(into.join("b")).expect("a file"), vec![7; 513], "{name}");
        }
        let mode = fs::metadata(folder.path().join("tar/b")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn the_same_contents_make_the_same_file() {
        let once = || zip(&members(), Compression::fast()).expect("written");
        assert_eq!(once(), once());
    }
}
