//! A wheel whose only content is the program, so that `pip install canonry` puts it on the path.
//!
//! It is assembled here and not by maturin, which has no way to take a program that is already built: the wheel, the
//! npm package and the archive of a release contain the same bytes.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use sha2::{Digest as _, Sha256};

use super::archive::{Member, zip};
use super::project::Project;
use super::{BuiltProgram, PackageFile};

pub(crate) fn wheel(project: &Project, program: &BuiltProgram, compression: Compression) -> Result<PackageFile> {
    let version = python_version(&project.version)?;
    let tags = program.platform.wheel_tags();
    let information = format!("canonry-{version}.dist-info");
    let script = format!("canonry-{version}.data/scripts/{}", program.platform.file_name());
    let mut members = vec![
        Member::program(script, program.bytes.clone()),
        Member::text(format!("{information}/METADATA"), metadata(project, &version)),
        Member::text(format!("{information}/WHEEL"), description(&tags)),
    ];
    for (name, text) in &project.licences {
        members.push(Member::text(format!("{information}/licenses/{name}"), text));
    }
    let record = format!("{information}/RECORD");
    let lines: String = members.iter().map(record_line).collect();
    members.push(Member::text(&record, format!("{lines}{record},,\n")));
    let name = format!("canonry-{version}-py3-none-{}.whl", tags.join("."));
    Ok(PackageFile { name, bytes: zip(&members, compression)? })
}

fn metadata(project: &Project, version: &str) -> String {
    let licence_files: String = project.licences.iter().map(|(name, _)| format!("License-File: {name}\n")).collect();
    format!(
        "Metadata-Version: 2.4\nName: canonry\nVersion: {version}\nSummary: {}\nLicense-Expression: {}\n{licence_files}\
         Requires-Python: >=3.8\nProject-URL: Source, {}\nDescription-Content-Type: text/markdown\n\n{}",
        project.description, project.licence, project.repository, project.about
    )
}

/// One line for each tag: a name with several tags stands for all of them.
fn description(tags: &[String]) -> String {
    let tags: String = tags.iter().map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    format!("Wheel-Version: 1.0\nGenerator: canonry xtask\nRoot-Is-Purelib: false\n{tags}")
}

fn record_line(member: &Member) -> String {
    let sum = URL_SAFE_NO_PAD.encode(Sha256::digest(&member.bytes));
    format!("{},sha256={sum},{}\n", member.path, member.bytes.len())
}

/// Python writes pre-releases in another way than cargo: `1.2.0-rc.1` is `1.2.0rc1`.
fn python_version(version: &str) -> Result<String> {
    let Some((release, pre)) = version.split_once('-') else { return Ok(version.to_owned()) };
    let written = [("alpha.", "a"), ("beta.", "b"), ("rc.", "rc")]
        .into_iter()
        .find_map(|(cargo, python)| Some((python, pre.strip_prefix(cargo)?.parse::<u32>().ok()?)));
    let (python, number) =
        written.with_context(|| format!("{version}: Python has alpha.N, beta.N and rc.N before a release"))?;
    Ok(format!("{release}{python}{number}"))
}

#[cfg(test)]
mod tests {
    use super::python_version;

    #[test]
    fn pre_releases_are_written_as_python_writes_them() {
        for (cargo, python) in [("0.1.0", "0.1.0"), ("0.1.0-rc.2", "0.1.0rc2"), ("1.0.0-alpha.1", "1.0.0a1")] {
            assert_eq!(python_version(cargo).expect("a version"), python);
        }
        assert!(python_version("0.1.0-nightly").expect_err("refused").to_string().contains("rc.N"));
    }
}
