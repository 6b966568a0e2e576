//! Finds fenced code in Markdown, line by line, for the rules about an item's text.

/// The position of a line relative to a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceLine {
    Outside,
    Begins,
    Code,
    Ends,
}

/// Reads a text line by line. A fence ends with the same marks that it began with.
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
