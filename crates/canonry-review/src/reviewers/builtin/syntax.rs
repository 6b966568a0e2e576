//! Describes comments and strings of a language, chosen by file extension.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// JavaScript, TypeScript and their variants.
    JavaScript,
    Rust,
    Python,
    Ruby,
    Go,
    Java,
    Kotlin,
    CSharp,
    Php,
    Swift,
    Elixir,
    C,
}

impl Language {
    pub(super) fn of(extension: &str) -> Option<Self> {
        Some(match extension {
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" | "vue" | "svelte" => Self::JavaScript,
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "rb" | "rake" => Self::Ruby,
            "go" => Self::Go,
            "java" => Self::Java,
            "kt" | "kts" => Self::Kotlin,
            "cs" => Self::CSharp,
            "php" => Self::Php,
            "swift" => Self::Swift,
            "ex" | "exs" => Self::Elixir,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" => Self::C,
            _ => return None,
        })
    }

    /// The marks that start a comment up to the end of the line.
    pub(super) fn line_comments(self) -> &'static [&'static str] {
        match self {
            Self::Python | Self::Ruby | Self::Elixir => &["#"],
            Self::Php => &["//", "#"],
            _ => &["//"],
        }
    }

    pub(super) fn has_block_comments(self) -> bool {
        !matches!(self, Self::Python | Self::Ruby | Self::Elixir)
    }

    /// The quotes of strings, longest first, and whether such a string may contain line breaks.
    pub(super) fn quotes(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::JavaScript => &[("`", true), ("\"", false), ("'", false)],
            Self::Python => &[("\"\"\"", true), ("'''", true), ("\"", false), ("'", false)],
            Self::Elixir => &[("\"\"\"", true), ("\"", true)],
            // A single quote starts a lifetime as often as a character.
            Self::Rust => &[("\"", true)],
            Self::Go => &[("`", true), ("\"", false)],
            Self::Java | Self::Kotlin | Self::CSharp | Self::Swift => &[("\"\"\"", true), ("\"", false)],
            Self::Php | Self::Ruby => &[("\"", true), ("'", true)],
            Self::C => &[("\"", false)],
        }
    }

    pub(super) fn has_regex_literals(self) -> bool {
        matches!(self, Self::JavaScript | Self::Ruby)
    }
}
