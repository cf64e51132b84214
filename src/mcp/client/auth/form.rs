use super::options::Secret;
use crate::model::HttpRequest;
use crate::percent;

/// The parameters of a request, in the order in which they are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(&'static str, Secret)>);

impl Form {
    pub(super) fn new(grant_type: &'static str) -> Self {
        Self::default().with("grant_type", grant_type)
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, Secret::new(value)));
        self
    }

    /// Adds a parameter that is left out when it is absent or empty.
    pub(super) fn with_some(self, name: &'static str, value: Option<&str>) -> Self {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The value of a parameter.
    pub(super) fn value(&self, wanted: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.expose())
    }

    /// As `application/x-www-form-urlencoded`.
    pub(super) fn encode(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            if !text.is_empty() {
                text.push('&');
            }
            text.push_str(name);
            text.push('=');
            text.push_str(&percent::encode(value.expose()));
        }
        text
    }

    /// The POST request of these parameters.
    pub(super) fn post(&self, url: &str) -> HttpRequest {
        let mut request =
            HttpRequest { method: "POST", url: url.to_owned(), headers: Vec::new(), body: self.encode().into_bytes() };
        request.set_header("content-type", "application/x-www-form-urlencoded");
        request.set_header("accept", "application/json");
        request
    }

    /// The values that an answer must not repeat to anybody.
    pub(super) fn secrets(&self) -> Vec<String> {
        const PUBLIC: [&str; 7] =
            ["grant_type", "resource", "scope", "client_id", "redirect_uri", "audience", "client_assertion_type"];
        let secret = self.0.iter().filter(|(name, value)| !PUBLIC.contains(name) && !value.expose().is_empty());
        secret.map(|(_, value)| value.expose().to_owned()).collect()
    }
}

/// The value of a parameter in the query of an address. Of a repeated one there is none: it could mean either.
pub(super) fn query_value(url: &str, wanted: &str) -> Option<String> {
    let query = url.split('#').next()?.split_once('?')?.1;
    let mut values = query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name) == wanted).then(|| decode(value))
    });
    values.next().filter(|_| values.next().is_none())
}

fn decode(text: &str) -> String {
    percent::decode(&text.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_once_and_read_back() {
        let form = Form::new("refresh_token").with("a", "x y&z=").with_some("b", None).with_some("c", Some(""));
        assert_eq!(form.encode(), "grant_type=refresh_token&a=x%20y%26z%3D");
        assert!(!format!("{form:?}").contains("x y"));
        let url = format!("http://localhost/callback?{}&plus=a+b#code=fragment", form.encode());
        assert_eq!(query_value(&url, "a").as_deref(), Some("x y&z="));
        assert_eq!(query_value(&url, "plus").as_deref(), Some("a b"));
        assert_eq!(query_value(&url, "code"), None);
        assert_eq!(query_value("http://localhost/?code=1&code=2", "code"), None);
    }
}
