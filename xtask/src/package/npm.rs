//! The npm packages: `canonry`, which starts the program, and one with the program for each platform.
//!
//! npm installs the optional dependency whose `os` and `cpu` match, so nothing is downloaded by an install script.

use anyhow::Result;
use flate2::Compression;
use serde_json::{Value, json};

use super::archive::{Member, tar_gz};
use super::platform::{CLibrary, Platform};
use super::project::Project;
use super::{BuiltProgram, PackageFile};

/// The platforms that a release is built for, by Node's names.
pub(crate) const PLATFORMS: [&str; 5] = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"];

/// Read when it is used, like every text of a package, so that changing it compiles nothing.
const LAUNCHER: &str = "packages/npm/canonry.js";

/// The package that people name.
pub(crate) fn launcher(project: &Project, compression: Compression) -> Result<PackageFile> {
    let mut description = common(project, "canonry");
    description["bin"] = json!({"canonry": "canonry.js"});
    let platforms = PLATFORMS.iter().map(|platform| (format!("@canonry/{platform}"), json!(project.version)));
    description["optionalDependencies"] = Value::Object(platforms.collect());
    let program = Member::program("package/canonry.js", std::fs::read(crate::process::root().join(LAUNCHER))?);
    packed(project, "canonry", &description, program, compression)
}

/// The package with the program for one platform.
pub(crate) fn platform(project: &Project, program: &BuiltProgram, compression: Compression) -> Result<PackageFile> {
    let (system, processor) = program.platform.in_node();
    let mut description = common(project, &format!("@canonry/{system}-{processor}"));
    description["os"] = json!([system]);
    description["cpu"] = json!([processor]);
    if let Platform::Linux { c_library: CLibrary::Glibc(_), .. } = program.platform {
        description["libc"] = json!(["glibc"]);
    }
    // Yarn would leave it in an archive, from which nothing can be started.
    description["preferUnplugged"] = json!(true);
    let path = format!("package/bin/{}", program.platform.file_name());
    let member = Member::program(path, program.bytes.clone());
    packed(project, &format!("canonry-{system}-{processor}"), &description, member, compression)
}

fn common(project: &Project, name: &str) -> Value {
    json!({
        "name": name,
        "version": project.version,
        "description": project.description,
        "license": project.licence,
        "homepage": project.repository,
        "repository": {"type": "git", "url": format!("git+{}.git", project.repository)},
        "engines": {"node": ">=18"},
    })
}

fn packed(
    project: &Project,
    name: &str,
    description: &Value,
    program: Member,
    compression: Compression,
) -> Result<PackageFile> {
    let mut members = vec![
        Member::text("package/package.json", format!("{description:#}\n")),
        Member::text("package/README.md", &project.about),
        program,
    ];
    members.extend(project.licences.iter().map(|(name, text)| Member::text(format!("package/{name}"), text)));
    Ok(PackageFile { name: format!("{name}-{}.tgz", project.version), bytes: tar_gz(&members, compression)? })
}
