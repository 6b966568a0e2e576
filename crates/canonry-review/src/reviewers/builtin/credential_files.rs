//! Finds passwords in files that programs keep them in, where any value is one: it need not look random.

use std::sync::LazyLock;

use canonry_domain::review::RepoPath;
use regex::Regex;

use super::reading::ReadFile;
use super::usual_passwords::is_usual_password;

/// The ends of the paths of such files, and how a line of them holds a secret.
const FILES: [(&[&str], &str); 17] = [
    (&[".netrc", "_netrc"], r"\bpassword\s+(\S+)"),
    (
        &[".npmrc", ".yarnrc", ".yarnrc.yml"],
        r#"(?:_auth|_authToken|_password|npmAuthToken|npmAuthIdent)["']?\s*[=:]\s*["']?([^\s"']+)"#,
    ),
    (
        &[".pypirc", ".my.cnf", ".s3cfg", ".boto", ".passwd-s3fs"],
        r"^\s*(?:password|secret_key|\w*secret_access_key)\s*[=:]\s*(\S+)",
    ),
    (&[".pgpass", "pgpass.conf"], r"^[^#:]+:[^:]*:[^:]*:[^:]*:(\S+)"),
    (&[".git-credentials"], r"://[^\s:/]*:(\S+)@"),
    (&[".dockercfg", ".docker/config.json"], r#""(?:auth|identitytoken|registrytoken|password)"\s*:\s*"([^"]+)""#),
    (
        &[
            ".ftpconfig",
            ".ftppass",
            ".vscode/sftp.json",
            ".vscode/ftp-sync.json",
            "sftp-config.json",
            ".remote-sync.json",
            "deployment-config.json",
            "robomongo.json",
            "robo3t.json",
        ],
        r#""(?:pass|password|passphrase|userPassword|sshPassphrase|sshUserPassword)"\s*:\s*"([^"]+)""#,
    ),
    (&["filezilla.xml", "recentservers.xml", "sitemanager.xml"], r"<Pass(?: [^>]*)?>([^<]+)</Pass>"),
    (
        &["data-sources.xml", ".dbeaver-data-sources.xml", "dbeaver-data-sources.xml", ".idea/webservers.xml"],
        r#"\spassword="([^"]+)""#,
    ),
    (&[".htpasswd", "htpasswd"], r"^[^:#\s]+:(\{SHA\}[^\s:]{20,}|[./A-Za-z0-9]{13})$"),
    (&["wp-config.php"], r#"define\(\s*['"](?:DB_PASSWORD|\w+_(?:KEY|SALT))['"]\s*,\s*['"]([^'"]+)['"]"#),
    (
        &["config/master.key", "config/credentials/production.key", "config/credentials/staging.key"],
        r"^([0-9a-f]{32})$",
    ),
    (&[".esmtprc", ".msmtprc", ".fetchmailrc"], r#"^\s*password\s+"?([^"\s]+)"#),
    (&["hub", "gh/hosts.yml"], r#"^\s*oauth_token:\s*["']?(\w{20,})"#),
    (&[".tugboat"], r#"^\s*(?:access_token|api_key):\s*["']?(\w{20,})"#),
    (&[".aws/credentials", ".credentials"], r"^\s*aws_secret_access_key\s*=\s*(\S+)"),
    (
        &[".bashrc", ".bash_profile", ".zshrc", ".zshenv", ".profile", ".bash_aliases"],
        r#"^\s*export\s+\w*(?:PASSWORD|PASSWD|PASS|TOKEN|API_KEY|SECRET|ACCESS_KEY)=["']?([^\s"'$`]{6,})"#,
    ),
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    FILES.iter().map(|(_, pattern)| Regex::new(pattern).expect("invariant: a constant pattern")).collect()
});

/// The added lines of the file that hold a secret.
pub(super) fn lines_with_secrets<'f>(file: &'f ReadFile<'_>) -> impl Iterator<Item = u32> + 'f {
    let pattern = FILES.iter().position(|(ends, _)| is_one_of(file.path(), ends)).map(|at| &PATTERNS[at]);
    let added = file.change.added.iter();
    added.filter_map(move |(number, line)| {
        let mut values = pattern?.captures_iter(line).filter_map(|captures| captures.get(1));
        values.any(|value| !stands_in(value.as_str())).then_some(*number)
    })
}

fn is_one_of(path: &RepoPath, ends: &[&str]) -> bool {
    let path = path.as_str().to_lowercase();
    ends.iter().any(|end| path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/')))
}

/// Whether a value stands in for a secret that is read from elsewhere, or that everybody knows.
fn stands_in(value: &str) -> bool {
    let lower = value.to_lowercase();
    let words = [
        "your",
        "example",
        "change",
        "xxx",
        "placeholder",
        "dummy",
        "unique phrase",
        "sample",
        "_here",
        "${",
        "{{",
        "***",
    ];
    value.starts_with(['$', '<', '{', '%', '*', '#'])
        || words.iter().any(|word| lower.contains(word))
        || matches!(lower.as_str(), "password" | "secret" | "token" | "true" | "false" | "null" | "none" | "test")
        || is_usual_password(&lower)
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::new_file;
    use super::super::reading::{FileToRead, ReadFile};
    use super::lines_with_secrets;

    #[test]
    fn what_such_files_hold() {
        for (path, text, expected) in [
            (".netrc", "machine a.dev login b password summer7\n", vec![1]),
            ("home/.npmrc", "registry=https://a.dev\n//a.dev/:_authToken=26dfe8d8-889b\n", vec![2]),
            (".pgpass", "# host:port:db:user:password\ndb.acme.dev:5432:shop:app:summer7\n", vec![2]),
            (".git-credentials", "https://mona:summer7@github.com\n", vec![1]),
            (".docker/config.json", "{\n\"auth\": \"bW9uYTpzdW1tZXI3\"\n}\n", vec![2]),
            (".vscode/sftp.json", "{\"password\": \"summer7\"}\n", vec![1]),
            (".vscode/sftp.json", "[{\"password\": \"${env}\"}, {\"password\": \"summer7\"}]\n", vec![1]),
            ("filezilla.xml", "<User>a</User>\n<Pass encoding=\"base64\">c3VtbWVyNw==</Pass>\n", vec![2]),
            ("web/wp-config.php", "define( 'DB_PASSWORD', 'summer7' );\n", vec![1]),
            ("config/master.key", "3ebf21f8e5d1ab86b27a720842c3bb56\n", vec![1]),
            (".htpasswd", "mona:rqXexS6ZhobKA\n", vec![1]),
            (".bashrc", "export DB_PASS=summer7\nexport PATH=/usr/bin:x\n", vec![1]),
            // Placeholders, references, common defaults, and other files.
            (".npmrc", "//a.dev/:_authToken=${NPM_TOKEN}\n", vec![]),
            (
                "wp-config.php",
                "define('AUTH_KEY', 'put your unique phrase here');\ndefine('DB_PASSWORD', 'root');\n",
                vec![],
            ),
            (".bashrc", "export TOKEN=$OTHER\nexport TOKEN=\"$(pass show x)\"\n", vec![]),
            (".pgpass", "localhost:5432:db:postgres:postgres\n", vec![]),
            ("src/sftp.json", "{\"password\": \"summer7\"}\n", vec![]),
            ("a.netrc", "machine a.dev login b password summer7\n", vec![]),
        ] {
            let change = new_file(path, text);
            let file = ReadFile::of(FileToRead { change: &change, text: None, bytes: None });
            assert_eq!(lines_with_secrets(&file).collect::<Vec<_>>(), expected, "{path}: {text}");
        }
    }
}
