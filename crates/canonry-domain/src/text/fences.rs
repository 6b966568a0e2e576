//! Fenced code in Markdown, line by line, as rules about an item's text read it.

/// What a line is to the fences around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceLine {
    Outside,
    Begins,
    Code,
    Ends,
}

/// Reads a text line by line; a fence ends with the marks that it began with.
#[derive(Debug, Default)]
pub(crate) struct FenceReader {
    open: Option<&'static str>,
}

impl FenceReader {
    pub(crate) fn read(&mut self, line: &str) -> FenceLine {
        let bare = line.trim_start();
        match self.open {
            Some(marks) if bare.starts_with(marks) => {
                self.open = None;
                FenceLine::Ends
            }
            Some(_) => FenceLine::Code,
            None => {
                self.open = ["```", "~~~"].into_iter().find(|marks| bare.starts_with(marks));
                if self.open.is_some() { FenceLine::Begins } else { FenceLine::Outside }
            }
        }
    }
}
