//! Maps the lines of a file from one version to another.

use serde::{Deserialize, Serialize};

/// A place where two versions of a file differ: `old` lines from `old_start` became `new` lines from `new_start`.
///
/// As in a unified diff without context, a side without lines names the line before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The first line on the old side, from 1; the line before it if `old` is 0.
    pub old_start: u32,
    pub old: u32,
    /// The first line on the new side, from 1; the line before it if `new` is 0.
    pub new_start: u32,
    pub new: u32,
}

/// Maps each line of the old version to its line in the new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineMap {
    hunks: Vec<Hunk>,
}

impl LineMap {
    /// The map of these differences; an empty list means an unchanged file.
    pub fn new(mut hunks: Vec<Hunk>) -> Self {
        hunks.sort_unstable_by_key(|hunk| (hunk.old_start, hunk.new_start));
        Self { hunks }
    }

    /// The line in the new version; `None` if it was removed or rewritten.
    pub fn line(&self, old: u32) -> Option<u32> {
        let mut shift = 0_i64;
        for hunk in &self.hunks {
            let first = hunk.first_old();
            if old < first {
                break;
            }
            if old < first + hunk.old {
                return None;
            }
            shift += i64::from(hunk.new) - i64::from(hunk.old);
        }
        u32::try_from(i64::from(old) + shift).ok().filter(|line| *line > 0)
    }

    /// The line in the new version that is nearest to the old one, even if that was rewritten.
    pub fn nearest(&self, old: u32) -> u32 {
        let mut shift = 0_i64;
        for hunk in &self.hunks {
            let first = hunk.first_old();
            if old < first {
                break;
            }
            if old < first + hunk.old {
                let within = (old - first).min(hunk.new.saturating_sub(1));
                return (hunk.first_new() + within).max(1);
            }
            shift += i64::from(hunk.new) - i64::from(hunk.old);
        }
        u32::try_from((i64::from(old) + shift).max(1)).unwrap_or(u32::MAX)
    }

    /// Whether a line of the new version was added or rewritten.
    pub fn is_new(&self, line: u32) -> bool {
        self.hunks.iter().any(|hunk| (hunk.first_new()..hunk.first_new() + hunk.new).contains(&line))
    }
}

impl Hunk {
    fn first_old(&self) -> u32 {
        self.old_start + u32::from(self.old == 0)
    }

    fn first_new(&self) -> u32 {
        self.new_start + u32::from(self.new == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Hunk, LineMap};

    fn map(hunks: &[(u32, u32, u32, u32)]) -> LineMap {
        let hunk = |&(old_start, old, new_start, new)| Hunk { old_start, old, new_start, new };
        LineMap::new(hunks.iter().map(hunk).collect())
    }

    #[test]
    fn an_unchanged_file_keeps_its_lines() {
        assert_eq!(map(&[]).line(7), Some(7));
        assert_eq!(map(&[]).nearest(7), 7);
    }

    #[test]
    fn lines_move_with_what_comes_before_them() {
        // Two lines inserted after line 3, lines 10 and 11 became one.
        let map = map(&[(10, 2, 12, 1), (3, 0, 4, 2)]);
        for (old, line, nearest) in
            [(3, Some(3), 3), (4, Some(6), 6), (9, Some(11), 11), (10, None, 12), (11, None, 12), (12, Some(13), 13)]
        {
            assert_eq!((map.line(old), map.nearest(old)), (line, nearest), "{old}");
        }
        assert!(map.is_new(4) && map.is_new(5) && map.is_new(12) && !map.is_new(6) && !map.is_new(13));
    }

    #[test]
    fn the_start_of_a_file() {
        let inserted = map(&[(0, 0, 1, 200)]);
        assert_eq!(inserted.line(1), Some(201));
        let emptied = map(&[(1, 5, 0, 0)]);
        assert_eq!((emptied.line(5), emptied.nearest(5), emptied.line(6)), (None, 1, Some(1)));
    }
}
