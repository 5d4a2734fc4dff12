//! The request to change a running path.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use trunkline_core::Span;

/// A request to change settings of a running path.
///
/// ```
/// use trunkline_control::SetRequest;
/// let text = r#"{"settings": {"delay": "80ms", "up-loss": "1%"}, "after": "2s"}"#;
/// let request: SetRequest = serde_json::from_str(text).unwrap();
/// assert_eq!(request.settings[1], ("up-loss".to_string(), "1%".to_string()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object such as {\"settings\": {\"delay\": \"80ms\"}}")]
pub struct SetRequest {
    /// Names and values, in the order in which they were given; no name twice. One for a direction wins over a plain one.
    #[serde(serialize_with = "write_settings", deserialize_with = "read_settings")]
    pub settings: Vec<(String, String)>,
    /// The path that is meant, by its name, if a run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The time from now at which the change is to happen; at once if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
}

fn write_settings<S: Serializer>(
    settings: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(name, value)| (name, value)))
}

fn read_settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    deserializer.deserialize_map(Settings)
}

struct Settings;

impl<'de> Visitor<'de> for Settings {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings such as {\"delay\": \"80ms\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut settings: Vec<(String, String)> = Vec::new();
        while let Some((name, Text(value))) = map.next_entry::<String, Text>()? {
            if settings.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!("the setting '{name}' is given twice")));
            }
            settings.push((name, value));
        }
        if settings.is_empty() {
            return Err(A::Error::custom("no setting is given: name one, such as delay"));
        }
        Ok(settings)
    }
}

/// The value of a setting: text, as on the command line.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        struct AsText;
        impl Visitor<'_> for AsText {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a setting as text, such as \"80ms\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_string()))
            }
        }
        deserializer.deserialize_str(AsText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SetRequest, String> {
        serde_json::from_str(text).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn order_is_kept_both_ways() {
        let text = r#"{"settings":{"rate":"1mbit","delay":"80ms","a":"1"},"after":"2s"}"#;
        let request = read(text).unwrap();
        let names: Vec<&str> = request.settings.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["rate", "delay", "a"]);
        assert_eq!(request.after, Some(Span::from_secs(2)));
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
    }

    #[test]
    fn complaints_name_the_cause() {
        for (text, part) in [
            ("", "EOF"),
            ("[]", "expected an object such as {\"settings\": {\"delay\": \"80ms\"}}"),
            ("{}", "missing field `settings`"),
            (r#"{"settings":{}}"#, "no setting is given"),
            (r#"{"settings":["delay"]}"#, "expected settings such as"),
            (r#"{"settings":{"loss":1}}"#, "expected a setting as text, such as \"80ms\""),
            (r#"{"settings":{"a":"1","a":"2"}}"#, "'a' is given twice"),
            (r#"{"settings":{"a":"1"},"when":"2s"}"#, "unknown field `when`"),
            (r#"{"settings":{"a":"1"},"after":"2"}"#, "'2' has no unit"),
            (r#"{"settings":{"a":"1"}} x"#, "trailing characters"),
        ] {
            let complaint = read(text).unwrap_err();
            assert!(complaint.contains(part), "{text}: {complaint}");
            assert!(!complaint.contains('\n'), "{text}: {complaint}");
        }
    }
}
