//! A plain SVG writer: escapes every text, and writes no number that is not finite.

use std::fmt::Write;

/// The value of an attribute.
pub(crate) enum Value<'a> {
    Number(f64),
    Text(&'a str),
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::Text(text)
    }
}

/// Attributes in the order in which they are written.
pub(crate) type Attributes<'a> = &'a [(&'a str, Value<'a>)];

/// Short for attribute lists: `attributes!["x" = 1.0, "class" = "axis"]`.
macro_rules! attributes {
    ($($name:literal = $value:expr),* $(,)?) => { &[$(($name, $crate::chart::svg::Value::from($value))),*] };
}
pub(crate) use attributes;

/// Text under construction.
#[derive(Default)]
pub(crate) struct Svg {
    out: String,
    open: Vec<&'static str>,
}

impl Svg {
    /// Opens an element that [`close`](Svg::close) closes.
    pub(crate) fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.out.push_str(">\n");
        self.open.push(name);
    }

    /// Closes the element opened last.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str(&format!("</{name}>\n"));
        }
    }

    /// An element without content.
    pub(crate) fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.out.push_str("/>\n");
    }

    /// An element whose content is text.
    pub(crate) fn text(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.tag(name, attributes);
        self.out.push_str(&format!(">{}</{name}>\n", escaped(text)));
    }

    /// An element whose content is ours and needs no escaping (a style sheet).
    pub(crate) fn raw(&mut self, name: &'static str, content: &str) {
        self.out.push_str(&format!("<{name}>\n{content}</{name}>\n"));
    }

    /// Adds a finished drawing.
    pub(crate) fn nested(&mut self, drawing: &str) {
        self.out.push_str(drawing);
    }

    /// Adds what another writer wrote.
    pub(crate) fn append(&mut self, other: Svg) {
        self.out.push_str(&other.finish());
    }

    /// The finished text.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn tag(&mut self, name: &'static str, attributes: Attributes<'_>) {
        let _ = write!(self.out, "<{name}");
        for (key, value) in attributes {
            let text = match value {
                Value::Number(number) => coordinate(*number),
                Value::Text(text) => escaped(text),
            };
            let _ = write!(self.out, " {key}=\"{text}\"");
        }
    }
}

/// A coordinate to a hundredth of a pixel. What is not finite is zero: callers drop such points before.
pub(crate) fn coordinate(value: f64) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// `text` for use as content or attribute of XML and HTML; characters that XML 1.0 forbids are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_finite() {
        let mut svg = Svg::default();
        svg.open("g", attributes!["x" = f64::NAN, "y" = -0.001, "z" = 1.5, "class" = "a\"b"]);
        svg.text("text", &[], "<&>'\u{1}");
        assert_eq!(
            svg.finish(),
            "<g x=\"0\" y=\"0\" z=\"1.5\" class=\"a&quot;b\">\n<text>&lt;&amp;&gt;&#39;\u{fffd}</text>\n</g>\n"
        );
    }
}
