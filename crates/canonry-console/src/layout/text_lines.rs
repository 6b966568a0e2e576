//! Compares two texts line by line.

/// The most lines of each text that are compared; longer texts are easier to read side by side.
const MOST_LINES: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineSide {
    Both,
    First,
    Second,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ComparedLine {
    pub(crate) side: LineSide,
    pub(crate) text: String,
}

/// Both texts merged in order; `None` if one is too long.
pub(crate) fn compared_lines(first: &str, second: &str) -> Option<Vec<ComparedLine>> {
    let (first, second): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    if first.len() > MOST_LINES || second.len() > MOST_LINES {
        return None;
    }
    let same = |one: usize, two: usize| first[one].trim_end() == second[two].trim_end();
    // The number of lines that both have in common from here on.
    let width = second.len() + 1;
    let mut common = vec![0_u16; (first.len() + 1) * width];
    for one in (0..first.len()).rev() {
        for two in (0..second.len()).rev() {
            common[one * width + two] = if same(one, two) {
                common[(one + 1) * width + two + 1] + 1
            } else {
                common[(one + 1) * width + two].max(common[one * width + two + 1])
            };
        }
    }
    let (mut one, mut two) = (0, 0);
    let mut lines = Vec::with_capacity(first.len() + second.len());
    while one < first.len() || two < second.len() {
        let (side, text) = match (one < first.len(), two < second.len()) {
            (true, true) if same(one, two) => (LineSide::Both, first[one]),
            (true, true) if common[(one + 1) * width + two] >= common[one * width + two + 1] => {
                (LineSide::First, first[one])
            }
            (true, false) => (LineSide::First, first[one]),
            _ => (LineSide::Second, second[two]),
        };
        one += usize::from(side != LineSide::Second);
        two += usize::from(side != LineSide::First);
        lines.push(ComparedLine { side, text: text.to_owned() });
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{LineSide, compared_lines};

    fn shown(first: &str, second: &str) -> Vec<String> {
        let lines = compared_lines(first, second).expect("short");
        let sign = |side| match side {
            LineSide::Both => ' ',
            LineSide::First => '-',
            LineSide::Second => '+',
        };
        lines.iter().map(|line| format!("{}{}", sign(line.side), line.text)).collect()
    }

    #[test]
    fn what_both_have_is_told_once() {
        assert_eq!(shown("a\nb\nc", "a\nx\nc\nd"), [" a", "-b", "+x", " c", "+d"]);
        assert_eq!(shown("", "a"), ["+a"]);
        assert_eq!(compared_lines(&"a\n".repeat(401), "a"), None);
    }

    proptest! {
        #[test]
        fn both_texts_are_in_it(first in "([ab]{0,2}\n){0,12}", second in "([ab]{0,2}\n){0,12}") {
            let lines = compared_lines(&first, &second).expect("short");
            let of = |other: LineSide| lines.iter().filter(|line| line.side != other).map(|line| line.text.as_str()).collect::<Vec<_>>();
            prop_assert_eq!(of(LineSide::Second), first.lines().collect::<Vec<_>>());
            prop_assert_eq!(of(LineSide::First), second.lines().collect::<Vec<_>>());
        }
    }
}
