//! Invented secrets, one of each kind that Canonry recognises.

/// The secrets are assembled at run time, so that no scanner reports this file as a leak.
pub fn sample_secrets() -> Vec<String> {
    let body = "x7Kq2mVb9TzR4wYc6NdF1hGj8LpS3aQe5UiO";
    let password = ["hJ7", "kQ9", "zR2", "!mX4"].concat();
    vec![
        format!("ghp_{body}"),
        format!("github_pat_11ABCDEFG0{body}_{body}"),
        format!("glpat-{}", &body[..20]),
        format!("AKIA{}", "J7Q2ZLM4N8PXR5TV"),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}{body}\n-----END RSA PRIVATE KEY-----"),
        format!("xoxb-{}-{body}", "123456789012"),
        format!("sk_live_{body}"),
        format!("sk-ant-api03-{body}"),
        format!("sk-proj-{body}{body}"),
        format!("AIza{}", &body[..35]),
        format!("npm_{body}"),
        format!("eyJ{}.eyJ{}.{body}", &body[..20], &body[..20]),
        format!("postgres://app:{password}@db.example/x"),
        format!("password={password}"),
    ]
}
