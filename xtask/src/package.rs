//! `cargo xtask package`: wheels, npm packages, formula and bill of materials from programs that are already built.

mod archive;
mod bill_of_materials;
mod formula;
mod npm;
mod platform;
mod project;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;

use self::platform::Platform;
use self::project::Project;
use crate::process::{cargo, quietly, root, step};
use crate::tools::sha256;

#[derive(Debug, clap::Args)]
pub(crate) struct PackageArguments {
    /// A built program, whose platform is read from the file; without one, it is built with the profile `dist`
    #[arg(long, value_name = "FILE")]
    program: Vec<PathBuf>,
    /// Take the programs from a release's archives in this folder, and write the Homebrew formula too
    #[arg(long, value_name = "FOLDER", conflicts_with = "program")]
    archives: Option<PathBuf>,
    /// Where the packages go
    #[arg(long, value_name = "FOLDER", default_value = "target/packages")]
    out: PathBuf,
    /// Compress little: for tests, which install what they made at once
    #[arg(long)]
    quick: bool,
}

/// A program, and where it runs.
struct BuiltProgram {
    platform: Platform,
    bytes: Vec<u8>,
}

/// A file to publish.
struct PackageFile {
    name: String,
    bytes: Vec<u8>,
}

pub(crate) fn package(arguments: &PackageArguments) -> Result<()> {
    let project = Project::read(&root())?;
    let compression = if arguments.quick { Compression::fast() } else { Compression::best() };
    let out = root().join(&arguments.out);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let mut files = Vec::new();
    let programs = match &arguments.archives {
        Some(folder) => {
            let archives = release_archives(folder)?;
            ensure!(
                archives.len() == npm::PLATFORMS.len(),
                "{} has {} archives, and a release has {}",
                folder.display(),
                archives.len(),
                npm::PLATFORMS.len()
            );
            let mut sums = BTreeMap::new();
            for (target, archive) in &archives {
                sums.insert(target.clone(), sha256(&fs::read(archive)?));
            }
            files.push(formula::formula(&project, &sums)?);
            archives.values().map(|archive| program_in(archive)).collect::<Result<Vec<_>>>()?
        }
        None if arguments.program.is_empty() => vec![built_program()?],
        None => arguments.program.iter().map(|file| read_program(file)).collect::<Result<Vec<_>>>()?,
    };
    files.push(bill_of_materials::bill_of_materials(&project, &fs::read_to_string(root().join("Cargo.lock"))?)?);
    files.push(npm::launcher(&project, compression)?);
    for program in &programs {
        files.push(wheel::wheel(&project, program, compression)?);
        files.push(npm::platform(&project, program, compression)?);
    }
    for file in files {
        fs::write(out.join(&file.name), &file.bytes).with_context(|| file.name.clone())?;
        println!("{:>10.1} MB  {}", file.bytes.len() as f64 / 1e6, file.name);
    }
    Ok(())
}

fn read_program(file: &Path) -> Result<BuiltProgram> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    let platform = Platform::of(&bytes).with_context(|| format!("{} cannot be packaged", file.display()))?;
    Ok(BuiltProgram { platform, bytes })
}

/// The program for this machine.
fn built_program() -> Result<BuiltProgram> {
    step("build", cargo().args(["build", "--profile", "dist", "--locked", "--package", "canonry"]))?;
    let metadata = quietly(cargo().args(["metadata", "--format-version", "1", "--locked", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata is not JSON")?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no build folder")?;
    read_program(&Path::new(target).join("dist").join(format!("canonry{}", std::env::consts::EXE_SUFFIX)))
}

/// The archives by their targets: `canonry-v0.1.0-aarch64-apple-darwin.tar.gz`.
fn release_archives(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut archives = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(stem) = name.strip_suffix(".tar.gz").or_else(|| name.strip_suffix(".zip")) else { continue };
        let target = ["x86_64-", "aarch64-"].iter().find_map(|processor| Some(&stem[stem.find(processor)?..]));
        let target = target.with_context(|| format!("{name} does not name its target"))?;
        archives.insert(target.to_owned(), path);
    }
    Ok(archives)
}

fn program_in(archive: &Path) -> Result<BuiltProgram> {
    let folder = tempfile::tempdir()?;
    if archive.extension().is_some_and(|extension| extension == "zip") {
        quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(archive).arg(folder.path()))?;
    } else {
        quietly(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()))?;
    }
    let unpacked = fs::read_dir(folder.path())?.next().context("it is empty")??.path();
    for name in ["canonry", "canonry.exe"] {
        if unpacked.join(name).is_file() {
            return read_program(&unpacked.join(name));
        }
    }
    bail!("{} has no program in it", archive.display())
}
