//! Tells whether the Rust files of a crate name a dependency, or may name it where nobody can read it.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::cargo_manifest::CargoManifest;

/// A Rust file, with its path below the folder of the crate.
pub(super) struct CrateFile<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
}

/// Build scripts with these write code that is not in the repository.
static GENERATOR: LazyLock<Regex> =
    LazyLock::new(|| pattern("prost_build|tonic_build|bindgen|lalrpop|OUT_DIR|protobuf_codegen"));

static GENERATED: LazyLock<Regex> = LazyLock::new(|| pattern("OUT_DIR|include_proto"));

/// Code that is taken from a file in another folder.
static ELSEWHERE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:#\[[^\]\n]{0,200}\bpath\s*=\s*|\binclude!\s*\(\s*)r?#*"(?<up>(?:\.\./)+)"#));

static ELSEWHERE_BY_MANIFEST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\binclude!\s*\([^;]{0,80}CARGO_MANIFEST_DIR"[^;]{0,80}\.\./"#));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("invariant: a constant pattern")
}

/// The Rust files of a crate of which all code is in them.
pub(super) struct CrateCode<'a> {
    files: Vec<CrateFile<'a>>,
    words: HashSet<&'a str>,
}

impl<'a> CrateCode<'a> {
    /// `None` if a part of the code is elsewhere: it is generated, or in another folder.
    pub(super) fn of(manifest: &CargoManifest, files: Vec<CrateFile<'a>>) -> Option<Self> {
        let build_script = manifest.build_script.as_deref().unwrap_or("build.rs");
        let is_build_script = |path: &str| path == "build.rs" || path == build_script.trim_start_matches("./");
        let is_elsewhere = |file: &CrateFile<'_>| {
            GENERATED.is_match(file.text)
                || (is_build_script(file.path) && GENERATOR.is_match(file.text))
                || reaches_outside(file)
        };
        let is_complete = !files.is_empty() && !manifest.reaches_outside && !files.iter().any(is_elsewhere);
        is_complete.then(|| Self { words: files.iter().flat_map(|file| words(file.text)).collect(), files })
    }

    /// Whether a file has the name of the dependency anywhere, also in a comment, or probably the name of its library.
    pub(super) fn names(&self, dependency: &str) -> bool {
        self.words.contains(dependency.replace('-', "_").as_str()) || self.names_library(dependency)
    }

    /// A library may have another name than its package: that of `md-5` is `md5`.
    fn names_library(&self, dependency: &str) -> bool {
        let names: Vec<String> = library_names(dependency).iter().map(|name| regex::escape(name)).collect();
        if names.is_empty() {
            return false;
        }
        let any = names.join("|");
        let path = format!(
            r"(?:^|[^\w:])(?:r#)?(?:{any})\s*::|\buse\s+(?:::)?(?:{any})\b|extern\s+crate\s+(?:{any})\b|[{{,]\s*(?:{any})::"
        );
        // What cannot be searched counts as named.
        Regex::new(&path).map_or(true, |path| self.files.iter().any(|file| path.is_match(file.text)))
    }
}

/// Whether a file takes code from outside of the crate.
fn reaches_outside(file: &CrateFile<'_>) -> bool {
    let depth = file.path.matches('/').count();
    let mut places = ELSEWHERE.captures_iter(file.text);
    places.any(|place| place["up"].len() / "../".len() > depth) || ELSEWHERE_BY_MANIFEST.is_match(file.text)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words
        .map(|word| word.trim_start_matches(|character: char| character.is_ascii_digit()))
        .filter(|word| !word.is_empty())
}

/// The names that the library of a package may have.
fn library_names(package: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = package.split(['-', '_']).filter(|part| !part.is_empty()).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return BTreeSet::new() };
    let joined = |parts: &[&str]| [parts.join("_"), parts.concat()];
    let count = parts.len();
    let mut pieces: BTreeSet<String> = (1..=count).flat_map(|end| joined(&parts[..end])).collect();
    pieces.extend((1..count).flat_map(|start| joined(&parts[start..])));
    let shorter = pieces.iter().flat_map(|name| [without_number(name), without_suffix(without_prefix(name))]);
    let shorter: Vec<String> = shorter.map(str::to_owned).collect();
    pieces.extend(shorter);

    let has_mark = count > 1 && matches!(*last, "rs" | "rust" | "preview");
    let core = if has_mark { &parts[..count - 1] } else { &parts[..] };
    let mut ends: BTreeSet<String> = (0..core.len()).flat_map(|start| joined(&core[start..])).collect();
    if count > 1 && matches!(*first, "rust" | "rs" | "lib") {
        ends.insert(parts[1..].join("_"));
    }
    let shorter = ends.iter().flat_map(|name| [without_number(name), without_suffix(name), without_prefix(name)]);
    let shorter: Vec<String> = shorter.map(str::to_owned).collect();
    ends.extend(shorter);
    ends.into_iter().filter(|name| name.len() > 1 && pieces.contains(name)).collect()
}

fn without_number(name: &str) -> &str {
    name.trim_end_matches(|character: char| character.is_ascii_digit())
}

fn without_prefix(name: &str) -> &str {
    ["lib", "rs", "rust"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

fn without_suffix(name: &str) -> &str {
    ["rs", "rust"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::cargo_manifest::CargoManifest;
    use super::{CrateCode, CrateFile, library_names};

    fn names(manifest: &str, dependency: &str, files: &[(&str, &str)]) -> Option<bool> {
        let manifest = CargoManifest::read(manifest).expect("a manifest");
        let files = files.iter().map(|(path, text)| CrateFile { path, text }).collect();
        CrateCode::of(&manifest, files).map(|code| code.names(dependency))
    }

    #[test]
    fn what_names_a_dependency() {
        for (dependency, code, expected) in [
            ("rand", "use rand::Rng;", true),
            ("rand", "fn a() { $crate::private::rand::thread_rng() }", true),
            ("rand", "my_macro!(rand);", true),
            ("rand", "// rand is not used yet", true),
            ("rand", "r#rand::x()", true),
            ("rand", "let x = 1rand;", true),
            ("rand", "use rand_core::Rng; use srand; random(); 0.rand_2; rand2()", false),
            ("serde-json", "serde_json::to_string(&a)", true),
            ("serde-json", "json!({}); serde", false),
            ("rand", "", false),
            // The library may have another name.
            ("md-5", "use md5::Digest;", true),
            ("kamadak-exif", "let a = exif::Reader::new();", true),
            ("rust-crypto", "extern crate crypto;", true),
            ("prettytable-rs", "use {a, prettytable::Table};", true),
            ("futures-preview", "use ::futures;", true),
            ("md-5", "let md5 = a.md5; b::md5::c();", false),
            ("pin-project-lite", "use pin::Pin;", false),
        ] {
            assert_eq!(names("", dependency, &[("src/lib.rs", code)]), Some(expected), "{dependency}: {code}");
        }
        assert_eq!(names("", "rand", &[("src/lib.rs", ""), ("tests/a.rs", "use rand;")]), Some(true));
    }

    #[test]
    fn code_that_is_elsewhere_is_not_judged() {
        for (manifest, files, is_judged) in [
            ("", &[("src/lib.rs", "#[path = \"../tests/a.rs\"] mod a;")][..], true),
            ("", &[("src/lib.rs", "include!(\"a.rs\");")], true),
            ("", &[("build.rs", "// path = \"../../a.rs\"")], true),
            ("", &[("build.rs", "fn main() {}"), ("src/lib.rs", "")], true),
            ("", &[("src/lib.rs", "mod bindgen;")], true),
            ("[[bin]]\nname = \"a\"\npath = \"tools/a.rs\"", &[("tools/a.rs", "")], true),
            // Not judged: no code, or not all of it.
            ("", &[], false),
            ("", &[("src/lib.rs", "include!(concat!(env!(\"OUT_DIR\"), \"/a.rs\"));")], false),
            ("", &[("src/lib.rs", "tonic::include_proto!(\"a\");")], false),
            ("", &[("build.rs", "prost_build::compile_protos(&[], &[])"), ("src/lib.rs", "")], false),
            ("[package]\nbuild = \"./make.rs\"", &[("make.rs", "use bindgen;")], false),
            ("", &[("src/lib.rs", "#[path = \"../../a.rs\"] mod a;")], false),
            ("", &[("src/lib.rs", "#[cfg_attr(unix, path = \"../../a.rs\")] mod a;")], false),
            ("", &[("lib.rs", "include!(\"../a.rs\");")], false),
            ("", &[("src/lib.rs", "include!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../a.rs\"));")], false),
            ("[lib]\npath = \"../src/lib.rs\"", &[("tests/a.rs", "")], false),
        ] {
            assert_eq!(names(manifest, "rand", files).is_some(), is_judged, "{manifest} {:?}", files.first());
        }
    }

    /// The names that the script with which the rule was measured gives.
    #[test]
    fn names_of_libraries() {
        for (package, expected) in [
            ("rand", "rand"),
            ("a", ""),
            ("md-5", "md md5 md_ md_5"),
            ("kamadak-exif", "exif kamadak_exif kamadakexif"),
            ("rust-crypto", "_crypto crypto rust_crypto rustcrypto"),
            ("prettytable-rs", "prettytable"),
            ("futures-core-preview", "futures_core futurescore"),
            ("pin-project-lite", "lite pin_project_lite pinprojectlite project_lite projectlite"),
            ("lib-rust", "lib rust"),
            ("librs", "librs"),
            ("rs-lib_x2", "_lib_x2 _x2 lib_x lib_x2 libx libx2 rs_lib_x rs_lib_x2 rslibx rslibx2 x2"),
            (
                "new_debug_unreachable",
                "debug_unreachable debugunreachable new_debug_unreachable newdebugunreachable unreachable",
            ),
            ("x--y", "x_y xy"),
            ("serde1", "serde serde1"),
            ("-_", ""),
        ] {
            let names: Vec<String> = library_names(package).into_iter().collect();
            assert_eq!(names.join(" "), expected, "{package}");
        }
    }
}
