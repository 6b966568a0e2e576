//! Checks the checksums that some vendors put into their tokens: no network is needed to tell a made-up one.

/// Whether the checksum in a token is right; `None` if its format has none.
pub fn has_valid_checksum(token: &str) -> Option<bool> {
    // GitHub does not promise it for `ghs_`, which newer installations of Apps get in another form.
    let base62 = ["ghp_", "gho_", "ghu_", "ghr_", "npm_"].iter().find_map(|prefix| token.strip_prefix(prefix));
    if let Some(body) = base62.filter(|body| body.len() == 36 && body.is_ascii()) {
        let (random, checksum) = body.split_at(30);
        return Some(base62_of(crc32(random.as_bytes())) == checksum);
    }
    let (random, checksum) = token.strip_prefix("glsa_")?.split_once('_')?;
    let expected = crc32(format!("glsa_{random}").as_bytes()).swap_bytes();
    Some(u32::from_str_radix(checksum, 16).ok()? == expected)
}

/// The CRC of zip files and of Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// Six digits of base 62: digits, capitals, small letters.
fn base62_of(mut number: u32) -> String {
    let mut digits = ['0'; 6];
    for digit in digits.iter_mut().rev() {
        let value = u8::try_from(number % 62).expect("invariant: below 62");
        *digit = char::from(match value {
            0..10 => b'0' + value,
            10..36 => b'A' + value - 10,
            _ => b'a' + value - 36,
        });
        number /= 62;
    }
    digits.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{base62_of, crc32, has_valid_checksum};

    #[test]
    fn checksums_of_tokens() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of this CRC");
        assert_eq!(base62_of(crc32(b"hello")), "0zNvy2");
        let random = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5";
        let checksum = base62_of(crc32(random.as_bytes()));
        assert_eq!(has_valid_checksum(&format!("ghp_{random}{checksum}")), Some(true));
        assert_eq!(has_valid_checksum(&format!("npm_{random}{checksum}")), Some(true));
        assert_eq!(has_valid_checksum(&format!("npm_{random}0{}", &checksum[..5])), Some(false));
        let random = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        let checksum = crc32(format!("glsa_{random}").as_bytes()).swap_bytes();
        assert_eq!(has_valid_checksum(&format!("glsa_{random}_{checksum:08x}")), Some(true));
        assert_eq!(has_valid_checksum(&format!("glsa_{random}_{:08x}", checksum ^ 1)), Some(false));
        assert_eq!(has_valid_checksum(&format!("ghs_{random}")), None);
        assert_eq!(has_valid_checksum("glpat-"), None);
    }
}
