//! Recognizes commonly known passwords.

/// The default passwords of databases, brokers and examples.
const USUAL: [&str; 26] = [
    "admin",
    "administrator",
    "changeit",
    "default",
    "demo",
    "dev",
    "development",
    "docker",
    "elastic",
    "foobar",
    "guest",
    "letmein",
    "mariadb",
    "minio",
    "minioadmin",
    "mongo",
    "mongodb",
    "mysql",
    "postgres",
    "postgresql",
    "qwerty",
    "rabbitmq",
    "redis",
    "root",
    "sample",
    "user",
];

/// Whether a password consists of such words, such as `postgres` and `root-admin123`.
pub(super) fn is_usual_password(password: &str) -> bool {
    let password = password.to_lowercase();
    let is_usual = |part: &str| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        USUAL.contains(&word) || (word.is_empty() && part.len() <= 4)
    };
    password.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::is_usual_password;

    #[test]
    fn what_everybody_knows() {
        for usual in ["postgres", "Admin123", "root-admin_1", "dev_2024", "user!"] {
            assert!(is_usual_password(usual), "{usual}");
        }
        for own in ["admin-q8Zr27b", "postgresql-main-9fK", "hunter2", "83920184", "rootless"] {
            assert!(!is_usual_password(own), "{own}");
        }
    }
}
