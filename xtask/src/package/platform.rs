//! Reads from a built program where it runs: system, processor, and the C library it needs.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux {
        processor: Processor,
        c_library: CLibrary,
    },
    /// With the oldest version of macOS that the linker allowed.
    MacOs {
        processor: Processor,
        oldest: (u32, u32),
    },
    Windows {
        processor: Processor,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    X64,
    Arm64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CLibrary {
    /// Linked statically: it runs with every C library.
    Static,
    /// glibc 2 of at least this minor version.
    Glibc(u32),
}

/// The glibc of manylinux2014. Older systems cannot install current wheels at all.
const OLDEST_GLIBC: u32 = 17;

/// Libraries that every system with glibc has, by the rules for manylinux wheels.
const SYSTEM_LIBRARIES: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

impl Platform {
    pub(crate) fn of(program: &[u8]) -> Result<Self> {
        match program {
            [0x7f, b'E', b'L', b'F', 2, 1, ..] => read_elf(program),
            [0xcf, 0xfa, 0xed, 0xfe, ..] => read_mach_o(program),
            [b'M', b'Z', ..] => read_pe(program),
            _ => bail!("it is no program for a 64-bit Linux, macOS or Windows"),
        }
    }

    /// The platform part of a wheel's name; several tags are joined by dots.
    ///
    /// A static program needs no C library, so it satisfies the rules of manylinux and of musllinux.
    pub(crate) fn wheel_tags(self) -> Vec<String> {
        match self {
            Self::Linux { processor, c_library } => {
                let arch = processor.in_wheels();
                let minor = if let CLibrary::Glibc(minor) = c_library { minor } else { OLDEST_GLIBC };
                let mut tags = vec![format!("manylinux_2_{minor}_{arch}")];
                if minor == OLDEST_GLIBC {
                    tags.push(format!("manylinux2014_{arch}"));
                }
                if c_library == CLibrary::Static {
                    tags.push(format!("musllinux_1_1_{arch}"));
                }
                tags
            }
            Self::MacOs { processor, oldest: (major, minor) } => {
                let arch = if processor == Processor::Arm64 { "arm64" } else { "x86_64" };
                vec![format!("macosx_{major}_{minor}_{arch}")]
            }
            Self::Windows { processor: Processor::X64 } => vec!["win_amd64".to_owned()],
            Self::Windows { processor: Processor::Arm64 } => vec!["win_arm64".to_owned()],
        }
    }

    /// Node's names of the system and the processor.
    pub(crate) fn in_node(self) -> (&'static str, &'static str) {
        let (system, processor) = match self {
            Self::Linux { processor, .. } => ("linux", processor),
            Self::MacOs { processor, .. } => ("darwin", processor),
            Self::Windows { processor } => ("win32", processor),
        };
        (system, if processor == Processor::Arm64 { "arm64" } else { "x64" })
    }

    pub(crate) fn file_name(self) -> &'static str {
        if matches!(self, Self::Windows { .. }) { "canonry.exe" } else { "canonry" }
    }
}

impl Processor {
    fn in_wheels(self) -> &'static str {
        match self {
            Self::X64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }
}

fn read_elf(program: &[u8]) -> Result<Platform> {
    let processor = match u16_at(program, 18)? {
        62 => Processor::X64,
        183 => Processor::Arm64,
        other => bail!("there are no packages for ELF machine {other}"),
    };
    let elf = Elf { program, segments: segments(program)? };
    let Some(dynamic) = elf.segments.iter().find(|segment| segment.kind == SEGMENT_DYNAMIC) else {
        return Ok(Platform::Linux { processor, c_library: CLibrary::Static });
    };
    let entries = elf.dynamic_entries(dynamic)?;
    let value = |tag: u64| entries.iter().find(|(found, _)| *found == tag).map(|(_, value)| *value);
    let strings = elf.offset_of(value(TAG_STRINGS).context("it has no table of strings")?)?;
    let mut libraries = BTreeSet::new();
    for (_, name) in entries.iter().filter(|(tag, _)| *tag == TAG_NEEDED) {
        libraries.insert(text_at(program, strings + *name as usize)?);
    }
    if libraries.is_empty() {
        return Ok(Platform::Linux { processor, c_library: CLibrary::Static });
    }
    if let Some(library) = libraries.iter().find(|library| !SYSTEM_LIBRARIES.contains(library)) {
        bail!("it needs {library}, which not every system has; link it statically");
    }
    let mut minor = OLDEST_GLIBC;
    if let (Some(table), Some(count)) = (value(TAG_VERSION_NEEDS), value(TAG_VERSION_NEEDS_COUNT)) {
        for version in elf.needed_versions(elf.offset_of(table)?, count, strings)? {
            let Some(glibc) = version.strip_prefix("GLIBC_") else { continue };
            let needed = glibc.strip_prefix("2.").and_then(|rest| rest.split('.').next()?.parse().ok());
            minor = minor.max(needed.with_context(|| format!("{version} is no version of glibc 2"))?);
        }
    }
    Ok(Platform::Linux { processor, c_library: CLibrary::Glibc(minor) })
}

const SEGMENT_LOADED: u32 = 1;
const SEGMENT_DYNAMIC: u32 = 2;
const TAG_NEEDED: u64 = 1;
const TAG_STRINGS: u64 = 5;
const TAG_VERSION_NEEDS: u64 = 0x6fff_fffe;
const TAG_VERSION_NEEDS_COUNT: u64 = 0x6fff_ffff;

struct Elf<'a> {
    program: &'a [u8],
    segments: Vec<ElfSegment>,
}

struct ElfSegment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

fn segments(program: &[u8]) -> Result<Vec<ElfSegment>> {
    let table = u64_at(program, 32)? as usize;
    let (size, count) = (u16_at(program, 54)? as usize, u16_at(program, 56)? as usize);
    (0..count)
        .map(|at| {
            let entry = table + at * size;
            Ok(ElfSegment {
                kind: u32_at(program, entry)?,
                offset: u64_at(program, entry + 8)? as usize,
                address: u64_at(program, entry + 16)?,
                size: u64_at(program, entry + 32)? as usize,
            })
        })
        .collect()
}

impl<'a> Elf<'a> {
    /// The place in the file of an address in memory.
    fn offset_of(&self, address: u64) -> Result<usize> {
        let inside = |segment: &&ElfSegment| {
            segment.kind == SEGMENT_LOADED
                && address >= segment.address
                && address - segment.address < segment.size as u64
        };
        let segment = self.segments.iter().find(inside).context("an address in it is in no segment")?;
        Ok(segment.offset + (address - segment.address) as usize)
    }

    fn dynamic_entries(&self, dynamic: &ElfSegment) -> Result<Vec<(u64, u64)>> {
        let mut entries = Vec::new();
        for at in (dynamic.offset..dynamic.offset.saturating_add(dynamic.size)).step_by(16) {
            match u64_at(self.program, at)? {
                0 => break,
                tag => entries.push((tag, u64_at(self.program, at + 8)?)),
            }
        }
        Ok(entries)
    }

    /// Names such as `GLIBC_2.28`: a list of libraries, each with a list of versions.
    fn needed_versions(&self, table: usize, libraries: u64, strings: usize) -> Result<Vec<&'a str>> {
        let mut versions = Vec::new();
        let mut library = table;
        for _ in 0..libraries {
            let mut version = library + u32_at(self.program, library + 8)? as usize;
            for _ in 0..u16_at(self.program, library + 2)? {
                versions.push(text_at(self.program, strings + u32_at(self.program, version + 8)? as usize)?);
                version += u32_at(self.program, version + 12)? as usize;
            }
            library += u32_at(self.program, library + 12)? as usize;
        }
        Ok(versions)
    }
}

fn read_mach_o(program: &[u8]) -> Result<Platform> {
    const BUILD_VERSION: u32 = 0x32;
    const OLDEST_MACOS: u32 = 0x24;
    let processor = match u32_at(program, 4)? {
        0x0100_0007 => Processor::X64,
        0x0100_000c => Processor::Arm64,
        other => bail!("there are no packages for Mach-O processor {other:#x}"),
    };
    let mut at = 32;
    for _ in 0..u32_at(program, 16)? {
        let version = match u32_at(program, at)? {
            BUILD_VERSION => Some(u32_at(program, at + 12)?),
            OLDEST_MACOS => Some(u32_at(program, at + 8)?),
            _ => None,
        };
        if let Some(version) = version {
            // Since macOS 11, wheels name the major version alone.
            let (major, minor) = (version >> 16, (version >> 8) & 0xff);
            return Ok(Platform::MacOs { processor, oldest: (major, if major >= 11 { 0 } else { minor }) });
        }
        at += u32_at(program, at + 4)? as usize;
    }
    bail!("it does not say which macOS it needs")
}

fn read_pe(program: &[u8]) -> Result<Platform> {
    let header = u32_at(program, 0x3c)? as usize;
    ensure!(program.get(header..header + 4) == Some(b"PE\0\0"), "it is no program for Windows");
    match u16_at(program, header + 4)? {
        0x8664 => Ok(Platform::Windows { processor: Processor::X64 }),
        0xaa64 => Ok(Platform::Windows { processor: Processor::Arm64 }),
        other => bail!("there are no packages for Windows machine {other:#x}"),
    }
}

fn bytes_at<const N: usize>(program: &[u8], at: usize) -> Result<[u8; N]> {
    let found = program.get(at..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().context("it is cut off")
}

fn u16_at(program: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(bytes_at(program, at)?))
}

fn u32_at(program: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes_at(program, at)?))
}

fn u64_at(program: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from_le_bytes(bytes_at(program, at)?))
}

fn text_at(program: &[u8], at: usize) -> Result<&str> {
    let rest = program.get(at..).context("it is cut off")?;
    let end = rest.iter().position(|byte| *byte == 0).context("a name in it has no end")?;
    std::str::from_utf8(&rest[..end]).context("a name in it is not UTF-8")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{CLibrary, OLDEST_GLIBC, Platform, Processor};

    fn tags(platform: Platform) -> String {
        platform.wheel_tags().join(".")
    }

    #[test]
    fn tags_say_what_the_program_needs() {
        let linux = |c_library| tags(Platform::Linux { processor: Processor::X64, c_library });
        assert_eq!(linux(CLibrary::Static), "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64");
        assert_eq!(linux(CLibrary::Glibc(17)), "manylinux_2_17_x86_64.manylinux2014_x86_64");
        assert_eq!(linux(CLibrary::Glibc(34)), "manylinux_2_34_x86_64");
        assert_eq!(tags(Platform::MacOs { processor: Processor::Arm64, oldest: (12, 0) }), "macosx_12_0_arm64");
        assert_eq!(tags(Platform::Windows { processor: Processor::X64 }), "win_amd64");
    }

    /// This test's own program, compared with what readelf shows of it.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_glibc_that_a_program_needs_is_the_one_that_readelf_shows() {
        let own = std::env::current_exe().expect("a program runs");
        let platform = Platform::of(&std::fs::read(&own).expect("a file")).expect("a program");
        let Ok(shown) = Command::new("readelf").args(["--version-info", "--wide"]).arg(&own).output() else { return };
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let minors = shown
            .split("GLIBC_2.")
            .skip(1)
            .filter_map(|rest| rest.split(|character: char| !character.is_ascii_digit()).next()?.parse::<u32>().ok());
        let expected = minors.max().expect("a version").max(OLDEST_GLIBC);
        let Platform::Linux { c_library, .. } = platform else { panic!("{platform:?}") };
        assert_eq!(c_library, CLibrary::Glibc(expected));
    }

    #[test]
    fn programs_of_other_systems_are_read_from_their_headers() {
        let mut mach_o = vec![0; 64];
        mach_o[..4].copy_from_slice(&[0xcf, 0xfa, 0xed, 0xfe]);
        mach_o[4..8].copy_from_slice(&0x0100_000c_u32.to_le_bytes());
        mach_o[16] = 1;
        mach_o[32] = 0x32;
        mach_o[36] = 24;
        mach_o[44..48].copy_from_slice(&0x000c_0300_u32.to_le_bytes());
        let macos = Platform::MacOs { processor: Processor::Arm64, oldest: (12, 0) };
        assert_eq!(Platform::of(&mach_o).expect("a program"), macos);

        let mut windows = vec![0; 0x90];
        windows[..2].copy_from_slice(b"MZ");
        windows[0x3c] = 0x80;
        windows[0x80..0x84].copy_from_slice(b"PE\0\0");
        windows[0x84..0x86].copy_from_slice(&0x8664_u16.to_le_bytes());
        assert_eq!(Platform::of(&windows).expect("a program"), Platform::Windows { processor: Processor::X64 });
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for (bytes, told) in [
            (&b"#!/bin/sh\n"[..], "no program"),
            (b"\x7fELF\x02\x01", "cut off"),
            (b"MZ", "cut off"),
            (b"\xcf\xfa\xed\xfe", "cut off"),
        ] {
            let refused = Platform::of(bytes).expect_err("refused").to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
