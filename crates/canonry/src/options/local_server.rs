//! Names for model servers on this machine, in the place of a base URL.

use canonry_models::chat::ChatSettings;

/// A server with OpenAI's API at the address it listens on by default.
struct LocalServer {
    name: &'static str,
    base_url: &'static str,
    /// The model if none is named; `None` where the server has no default model.
    model: Option<&'static str>,
}

const LOCAL_SERVERS: [LocalServer; 2] = [
    // It serves the one model that it was started with, whatever the name.
    LocalServer { name: "llama.cpp", base_url: "http://127.0.0.1:8080/v1", model: Some("local") },
    LocalServer { name: "ollama", base_url: "http://127.0.0.1:11434/v1", model: None },
];

/// Sets the server of a base URL, or of a name for one, and the model.
pub(crate) fn set_server(
    settings: &mut ChatSettings,
    base_url: Option<&str>,
    model: Option<&str>,
) -> Result<(), String> {
    let server = base_url.and_then(|name| LOCAL_SERVERS.iter().find(|server| server.name == name));
    if let Some(server) = server {
        let model = model.or(server.model);
        let Some(model) = model else {
            return Err(format!("{} has no default model: name one with --model", server.name));
        };
        server.base_url.clone_into(&mut settings.base_url);
        model.clone_into(&mut settings.model);
        return Ok(());
    }
    if let Some(model) = model {
        model.clone_into(&mut settings.model);
    }
    if let Some(base_url) = base_url {
        base_url.clone_into(&mut settings.base_url);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use canonry_models::chat::{ChatProvider, ChatSettings};

    use super::set_server;

    fn set(base_url: Option<&str>, model: Option<&str>) -> Result<(String, String), String> {
        let mut settings =
            ChatSettings { model: "usual".to_owned(), ..ChatSettings::from_environment(ChatProvider::OpenAi) };
        set_server(&mut settings, base_url, model).map(|()| (settings.base_url, settings.model))
    }

    #[test]
    fn servers_on_this_machine_have_names() {
        let pair = |base_url: &str, model: &str| Ok((base_url.to_owned(), model.to_owned()));
        assert_eq!(set(Some("llama.cpp"), None), pair("http://127.0.0.1:8080/v1", "local"));
        assert_eq!(set(Some("ollama"), Some("qwen3:8b")), pair("http://127.0.0.1:11434/v1", "qwen3:8b"));
        assert_eq!(set(Some("ollama"), None), Err("ollama has no default model: name one with --model".to_owned()));
        assert_eq!(set(Some("http://127.0.0.1:9/v1"), None), pair("http://127.0.0.1:9/v1", "usual"));
    }
}
