//! The small vectors of a text's tokens, for the close comparison of two texts.

/// One vector of length 1 for each token of a text, in signed bytes: 127 means 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenVectors {
    width: usize,
    codes: Vec<i8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read token vectors: {codes} numbers are not rows of {width}")]
pub struct InvalidTokenVectors {
    width: usize,
    codes: usize,
}

/// The maximum number of components of a vector.
const WIDEST: usize = 255;

impl TokenVectors {
    /// Creates the vectors from rows of `width` numbers, one after another.
    pub fn new(width: usize, codes: Vec<i8>) -> Result<Self, InvalidTokenVectors> {
        if width == 0 || width > WIDEST || !codes.len().is_multiple_of(width) {
            return Err(InvalidTokenVectors { width, codes: codes.len() });
        }
        Ok(Self { width, codes })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn len(&self) -> usize {
        self.codes.len() / self.width
    }

    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The vectors, in the order of the tokens.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[i8]> {
        self.codes.chunks_exact(self.width)
    }

    /// All numbers, vector after vector.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// The stored form: the width, then the numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = u8::try_from(self.width).expect("invariant: no vector is wider than a byte can tell");
        std::iter::once(width).chain(self.codes.iter().map(|code| code.cast_unsigned())).collect()
    }

    /// Reads the bytes that [`to_bytes`](Self::to_bytes) made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidTokenVectors> {
        let (width, codes) = bytes.split_first().ok_or(InvalidTokenVectors { width: 0, codes: 0 })?;
        Self::new(usize::from(*width), codes.iter().map(|code| code.cast_signed()).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::TokenVectors;

    #[test]
    fn a_row_that_is_not_whole_is_refused() {
        let error = TokenVectors::new(4, vec![1; 6]).expect_err("six is no multiple of four");
        assert_eq!(error.to_string(), "read token vectors: 6 numbers are not rows of 4");
        assert!(TokenVectors::new(0, Vec::new()).is_err());
        assert!(TokenVectors::from_bytes(&[]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_stored_is_read(width in 1_usize..=255, rows in 0_usize..20, number in any::<i8>()) {
            let vectors = TokenVectors::new(width, vec![number; width * rows]).expect("whole rows");
            prop_assert_eq!(vectors.len(), rows);
            prop_assert_eq!(vectors.rows().len(), rows);
            prop_assert_eq!(TokenVectors::from_bytes(&vectors.to_bytes()), Ok(vectors));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(vectors) = TokenVectors::from_bytes(&bytes) {
                prop_assert!(vectors.to_bytes() == bytes);
            }
        }
    }
}
