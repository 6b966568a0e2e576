//! What comments and strings look like, by the extension of a file.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// JavaScript and TypeScript, with all that is made of them.
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

    /// What begins a comment that ends with its line.
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

    /// What begins and ends a string, longest first, and whether it may hold new lines.
    pub(super) fn quotes(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::JavaScript => &[("`", true), ("\"", false), ("'", false)],
            Self::Python => &[("\"\"\"", true), ("'''", true), ("\"", false), ("'", false)],
            Self::Elixir => &[("\"\"\"", true), ("\"", true)],
            // A quote alone is a lifetime as often as a character.
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
