//! Formats bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two lowercase digits for each byte.
pub fn hex_digits(bytes: impl AsRef<[u8]>) -> String {
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_digits_for_each_byte() {
        assert_eq!(super::hex_digits([0, 9, 0xaf, 0xff]), "0009afff");
    }
}
